r"""Penalty on the last layer that keeps its class vectors close, within a bound k that follows.

With the distances :math:`d_{ij} = \|\beta_i - \beta_j\|` of the class vectors it is

.. math::

    \frac{1}{\lambda_0} \Bigl(k + \frac{\alpha}{2} \sum_{i>j} (d_{ij} - k)_+^2\Bigr),
    \qquad \alpha = A / k \text{, a constant in all derivatives.}

**The bound.** In k it is least where :math:`\alpha \sum (d_{ij} - k)_+ = 1`, that is, where the
relative violations add up to :math:`\sum (d_{ij}/k - 1)_+ = 1/A`. The left side falls in k, so
there is one such k; if m distances are larger, :math:`k = S_m / (m + 1/A)` with the sum :math:`S_m`
of the m largest. One more raises this ratio exactly if it is above it, so the right m has the
largest:

.. math::

    k = \max_m \frac{S_m}{m + 1/A}

**The gradient.** k is at its best, so moving it changes nothing to first order (envelope theorem),
and α is a constant. What is left is :math:`\sum w_{ij} \nabla d_{ij}` with
:math:`w_{ij} = A (d_{ij}/k - 1)_+ \ge 0`, which add up to 1: the layer is pulled by a weighted mean
of its largest distances, with force :math:`1/\lambda_0` whatever the number of classes and the size
of the weights. It is the gradient of the penalty at fixed α. That of the printed value, in which α
changes, has weights that differ from these by less than 1 / (2A) in all, and would push pairs apart
that hardly violate k.

**The value** lies between k / λ₀ and 1 + 1 / (2A) times that.

All is in double precision where the device has it: of half a million distances nearly all may
count, each with a violation of some hundred-millionths.
"""

from __future__ import annotations

import warnings
from math import inf
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle, unserializable_hook

from .._parameters import check_choice, check_positive
from ._checks import check_single
from ._class_pairs import bound, bound_and_excess

#: Calls between two inspections of the layer's gradient, and inspections that must agree.
_CALLS_OF_A_LOOK, _LOOKS = 20, 2


class FragilityRegularizer(nn.Module):
    r"""Penalty on the distances between the class vectors of a linear layer.

    Add it to any loss; there is nothing else to do. It has no parameters and nothing to save: the
    bound k is computed from the layer in each call, in closed form, so that training is the same
    for every optimiser. The layer stays with its model: it is not among this module's parameters,
    nor in its ``state_dict``, nor kept alive by it. It follows the layer when its weight is
    replaced, not when it moves to another device: move both.

    The relative violations of k add up to ``1 / sharpness`` at every step, and the layer is pulled
    with the force ``strength`` in the direction in which its largest distances fall. With two
    classes the penalty is about ``strength`` times the distance of their vectors.

    Of networks this is not the first thing to try. Moved images and averaged weights do more for
    the index; at equal calibration the penalty often raises it (docs/torch.md, "What to expect").

    A regulariser belongs to one layer. Where the layer is gone, since it was replaced or its
    network was, the next call raises RuntimeError. Where the layer gets no gradient but that of
    the penalty, as when another layer or a copy of the network is trained instead, a warning says
    so after some 40 calls in training mode. It does not look in compiled code, in CUDA graphs, and
    where the weight is computed from other parameters. Copy and pickle both together: as parts of
    one module, or as ``copy.deepcopy((network, regularizer))``.

    In data-parallel training every process computes the same penalty from the same weights, so
    nothing needs to be exchanged.

    Parameters
    ----------
    layer_or_weight : Module or Tensor
        A layer with a ``weight`` of shape (n_classes, ...), or such a tensor. A single row is one
        logit of two classes; its distance to zero counts. Someone else must hold a layer or a
        parameter.
    strength : float, default=0.1
        Factor of the penalty, :math:`1/\lambda_0`. More is more robust. It may be set later:
        ``regularizer.strength = 0.05``, also between the steps of a compiled or captured graph.
    sharpness : float, default=50.0
        A, so that :math:`\alpha = A / k`; from 20 to 100. The more, the closer k is to the largest
        distance. k is a constant in this factor.
    norm : {2, 1, inf}, default=2
        Norm of the differences. Many classes with the norms 1 and inf are slow.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import FragilityRegularizer
    >>> layer = torch.nn.Linear(2, 3)
    >>> regularizer = FragilityRegularizer(layer)
    >>> penalty = regularizer()
    >>> penalty.backward()
    >>> violations = torch.pdist(layer.weight.double()) / regularizer.k - 1.0
    >>> round(violations.clamp_min(0.0).sum().item(), 6)  # 1 / sharpness
    0.02
    """

    _strength: Tensor
    _look: _OnlyGradient | None

    def __init__(
        self,
        layer_or_weight: nn.Module | Tensor,
        strength: float = 0.1,
        sharpness: float = 50.0,
        norm: float = 2,
    ) -> None:
        super().__init__()
        check_choice(norm, (1, 2, inf), "norm")
        self.sharpness = check_single(check_positive(sharpness, "sharpness"), "sharpness")
        self.norm = float(norm)
        self._source = _held(layer_or_weight)
        weight = self._weight()
        dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        # A tensor, so that a new value reaches compiled code; a setting, so not in the state_dict.
        held = torch.zeros((), dtype=dtype, device=weight.device)
        self.register_buffer("_strength", held, persistent=False)
        self.strength = strength
        self._calls = self._looks_alone = 0  # in training mode; looks that saw no other gradient
        self._look = None

    @property
    def strength(self) -> float:
        """Factor of the penalty."""
        return float(self._strength)

    @strength.setter
    def strength(self, value: float) -> None:
        with torch.no_grad():
            self._strength.fill_(check_single(value, "strength"))

    @property
    def k(self) -> Tensor:
        """The bound for the layer as it is now; zero if all its class vectors are equal."""
        return bound(self._vectors(self._weight()), self.sharpness, self.norm)

    def forward(self) -> Tensor:
        """The penalty, a scalar."""
        weight = self._weight()
        if self.training and not torch.compiler.is_compiling():
            weight = self._watched(weight)
        if weight.device != self._strength.device:
            raise ValueError(
                f"The layer is on {weight.device} and its regulariser on {self._strength.device}. "
                "Move the regulariser too, such as regularizer.to(device)."
            )
        with torch.autocast(weight.device.type, enabled=False):
            k, excess = bound_and_excess(self._vectors(weight), self.sharpness, self.norm)
            # Equal vectors have k = 0 and no excess.
            alpha = self.sharpness / torch.where(k > 0.0, k, 1.0)
            penalty: Tensor = self._strength * (k + 0.5 * alpha * excess)
            return penalty.to(torch.float64 if weight.dtype == torch.float64 else torch.float32)

    def extra_repr(self) -> str:
        """Settings, for printing."""
        return f"sharpness={self.sharpness:g}, norm={self.norm:g}"

    def _vectors(self, weight: Tensor) -> Tensor:
        """The class vectors, in the precision of the computation."""
        precise = torch.float32 if weight.device.type == "mps" else torch.float64
        vectors = weight.flatten(1).to(precise)
        return functional.pad(vectors, (0, 0, 0, 1)) if vectors.shape[0] == 1 else vectors

    def _watched(self, weight: Tensor) -> Tensor:
        """The weight to compute the penalty of, now and then with a look at its gradient."""
        watching = torch.is_grad_enabled() and weight.requires_grad and weight.is_leaf
        recorded = weight.is_cuda and torch.cuda.is_current_stream_capturing()
        if not watching or weight.is_meta or recorded:
            return weight
        if self._look is not None:
            alone, self._look = self._look.finish(), None
            if alone is not None:
                self._looks_alone = self._looks_alone + 1 if alone else 0
        if self._looks_alone == _LOOKS:
            self._looks_alone = 0
            warnings.warn(
                "The layer of this FragilityRegularizer gets no gradient but that of the penalty: "
                "another layer seems to be trained. If the network was copied or its last layer "
                "replaced, make a new FragilityRegularizer of the layer that is trained; if this "
                "one is to stay as it is, layer.requires_grad_(False) says so.",
                UserWarning,
                stacklevel=4,
            )
        self._calls += 1
        if self._calls % _CALLS_OF_A_LOOK:
            return weight
        self._look = _OnlyGradient()
        return self._look.begin(weight)

    def __getstate__(self) -> dict[str, Any]:
        # The layer itself: copied or pickled with its network it stays the network's.
        source = _found(self._source)
        return self.__dict__ | {"_source": source, "_look": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = {"_source": _held(state["_source"])}
        super().__setstate__(state | held)  # type: ignore[no-untyped-call]

    def _weight(self) -> Tensor:
        source = _found(self._source)
        if source is None:
            raise RuntimeError(
                "The layer of this FragilityRegularizer is gone: it was replaced in its network, "
                "or the network was, or the regulariser was copied or loaded without it. Make a "
                "new one of the layer that is trained now, such as "
                "FragilityRegularizer(network.fc). To copy both, copy them together, such as "
                "copy.deepcopy((network, regularizer))."
            )
        weight = source if isinstance(source, Tensor) else getattr(source, "weight", None)
        if not isinstance(weight, Tensor):
            raise TypeError(
                "layer_or_weight must be a layer with a weight, such as torch.nn.Linear, or a "
                f"tensor; got {type(source).__name__}."
            )
        if weight.ndim < 2 or not weight.numel() or not weight.is_floating_point():
            raise ValueError(
                "The weight must be real with one row per class, (n_classes, n_features); got "
                f"shape {tuple(weight.shape)} of {weight.dtype}."
            )
        return weight


class _OnlyGradient:
    """Finds out whether a weight gets gradients from one term only.

    Compares the gradient of a leaf tensor with the part of it that comes from the term, between
    `begin` and `finish`. Each backward pass in between waits for the device.
    """

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._own: Tensor | None = None
        self._any = self._others = False

    def begin(self, weight: Tensor) -> Tensor:
        """A view of the weight for the term, whose gradient is recorded."""
        used = weight.view_as(weight)

        # A network that is saved meanwhile is saved without these.
        @unserializable_hook  # type: ignore[untyped-decorator]
        def of_term(gradient: Tensor) -> None:
            self._own = gradient.detach()

        @unserializable_hook  # type: ignore[untyped-decorator]
        def of_weight(gradient: Tensor) -> None:
            own, self._own = self._own, None
            self._any = True
            self._others |= own is None or not torch.equal(own, gradient)

        self._handles = [used.register_hook(of_term), weight.register_hook(of_weight)]  # type: ignore[no-untyped-call]
        return used

    def finish(self) -> bool | None:
        """Stop watching: True if only the penalty gave a gradient, None if nothing did."""
        for handle in self._handles:
            handle.remove()
        return not self._others if self._any else None


#: A weak reference to a layer or parameter that the model holds; any other tensor is held here.
_Held = ref[Any] | tuple[Any]


def _held(source: Any) -> _Held:
    """A reference that does not keep a layer alive, nor makes it part of a module."""
    return ref(source) if isinstance(source, (nn.Module, nn.Parameter)) else (source,)


def _found(held: _Held) -> nn.Module | Tensor | None:
    return held[0] if isinstance(held, tuple) else held()
