r"""Penalty on the last layer that keeps its class vectors close, with a learned bound.

.. math::

    \frac{1}{\lambda_0} \Bigl(k + \frac{\alpha}{2} \sum_{i>j} (\|\beta_i - \beta_j\| - k)_+^2\Bigr),
    \qquad \alpha = A / k

The pairs are never held as a C × C × d tensor. Few classes go through `torch.pdist`; many go in
blocks of rows, each computed once more in the backward pass instead of being kept.
"""

from __future__ import annotations

import warnings
from math import expm1, inf, log
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.hooks import RemovableHandle, unserializable_hook

from .._parameters import check_choice, check_positive
from ._checks import check_single

#: Most numbers in one block.
_BLOCK = 1 << 25
#: Up to this many products C·C·d, `pdist` is fastest; on a GPU its backward pass holds them all.
_FEW = 1 << 22
#: Below this share of `k_init` the bound k does not fall: α = A / k must stay finite.
_FLOOR = 0.02
#: Calls between two inspections of the layer's gradient, and inspections that must agree.
_CALLS_OF_A_LOOK, _LOOKS = 20, 2
#: The map that keeps k positive bends below `k_init`, and has slope 1 - exp(-5) there.
_BEND = 5.0


class FragilityRegularizer(nn.Module):
    r"""Penalty on the distances between the class vectors of a linear layer.

    Add it to any loss, and give its one parameter, the bound k, to the optimiser without weight
    decay. The layer stays with its model: it is not among this module's parameters, nor in its
    ``state_dict``, nor kept alive by it. It follows the layer when its weight is replaced, not when
    it moves to another device: move both.

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
        A, so that :math:`\alpha = A / k`; from 20 to 100. k is a constant in this factor.
    k_init : float, default=0.05
        First value of k; small, so that the bound is felt from the start. k stays above 2 % of it.
    norm : {2, 1, inf}, default=2
        Norm of the differences. Many classes with the norms 1 and inf are slow.

    Examples
    --------
    >>> import torch
    >>> from fragility.torch import FragilityRegularizer
    >>> layer = torch.nn.Linear(2, 3)
    >>> regularizer = FragilityRegularizer(layer)
    >>> [round(p.numel()) for p in regularizer.parameters()]
    [1]
    >>> optimiser = torch.optim.Adam(
    ...     [{"params": layer.parameters()}, {"params": regularizer.parameters(), "lr": 1e-2}]
    ... )
    >>> penalty = regularizer()
    >>> penalty.backward()
    """

    _strength: Tensor
    _look: _OnlyGradient | None

    def __init__(
        self,
        layer_or_weight: nn.Module | Tensor,
        strength: float = 0.1,
        sharpness: float = 50.0,
        k_init: float = 0.05,
        norm: float = 2,
    ) -> None:
        super().__init__()
        check_choice(norm, (1, 2, inf), "norm")
        self.sharpness = check_single(check_positive(sharpness, "sharpness"), "sharpness")
        self.k_init = check_single(check_positive(k_init, "k_init"), "k_init")
        self.norm = float(norm)
        self._source = _held(layer_or_weight)
        weight = self._weight()
        dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._beta = _BEND / self.k_init
        soft = (1.0 - _FLOOR) * self.k_init * self._beta
        start = torch.tensor(log(expm1(soft)) / self._beta, dtype=dtype, device=weight.device)
        self.unbounded_k = nn.Parameter(start)
        # A tensor, so that a new value reaches compiled code; a setting, so not in the state_dict.
        self.register_buffer("_strength", torch.zeros_like(start), persistent=False)
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
        """The bound on the distances, positive."""
        free: Tensor = self.unbounded_k
        if free.dtype != torch.float64:
            free = free.float()  # also where the whole model was put into half precision
        return _FLOOR * self.k_init + functional.softplus(free, self._beta)

    def forward(self) -> Tensor:
        """The penalty, a scalar."""
        weight, k = self._weight(), self.k
        if self.training and not torch.compiler.is_compiling():
            weight = self._watched(weight)
        if weight.device != k.device:
            raise ValueError(
                f"The layer is on {weight.device} and its regulariser on {k.device}. Move the "
                "regulariser too, such as regularizer.to(device), before the optimiser is made."
            )
        with torch.autocast(weight.device.type, enabled=False):
            vectors = weight.flatten(1).to(k.dtype)
            if vectors.shape[0] == 1:
                vectors = functional.pad(vectors, (0, 0, 0, 1))
            n, d = vectors.shape
            if n * n * d <= _FEW:
                excess = functional.relu(torch.pdist(vectors, self.norm) - k).square().sum()
            else:
                excess = _blocked_excess(vectors, k, self.norm)
            return self._strength * (k + 0.5 * self.sharpness / k.detach() * excess)

    def extra_repr(self) -> str:
        """Settings, for printing."""
        return f"sharpness={self.sharpness:g}, k_init={self.k_init:g}, norm={self.norm:g}"

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
                "FragilityRegularizer(network.fc), and give its parameter to the optimiser. To "
                "copy both, copy them together, such as copy.deepcopy((network, regularizer))."
            )
        weight = source if isinstance(source, Tensor) else getattr(source, "weight", None)
        if not isinstance(weight, Tensor):
            raise TypeError(
                "layer_or_weight must be a layer with a weight, such as torch.nn.Linear, or a "
                f"tensor; got {type(source).__name__}."
            )
        if weight.ndim < 2 or not weight.is_floating_point():
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
        """Whether no other gradient came; None if none came at all."""
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


def _blocked_excess(vectors: Tensor, k: Tensor, norm: float) -> Tensor:
    """Sum over all pairs of rows of the squared excess of their distance over k."""
    n, d = vectors.shape
    # Centred vectors have the same distances, and lose less to cancellation.
    vectors = vectors - vectors.detach().mean(0)
    block = max(_BLOCK // (n if norm == 2 else n * d), 1)
    excess = _euclidean_excess if norm == 2 else _other_excess
    total = torch.zeros_like(k)
    for start in range(0, n, block):
        rows, others = vectors[start : start + block], vectors[start:]
        total = total + checkpoint(excess, rows, others, k, norm, use_reentrant=False)
    return total


def _euclidean_excess(rows: Tensor, others: Tensor, k: Tensor, norm: float) -> Tensor:
    products = rows @ others.T
    squares = rows.square().sum(1)[:, None] + others.square().sum(1) - 2.0 * products
    # The square root has no derivative at 0; it is taken only for distances above k.
    counted = (squares > k.detach().square()).triu(1)
    distances = torch.where(counted, squares, 1.0).sqrt()
    return torch.where(counted, distances - k, 0.0).square().sum()


def _other_excess(rows: Tensor, others: Tensor, k: Tensor, norm: float) -> Tensor:
    gaps = (rows[:, None] - others).abs()
    distances = gaps.sum(2) if norm == 1 else gaps.amax(2)
    return functional.relu(distances - k).triu(1).square().sum()
