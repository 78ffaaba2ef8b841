r"""The target of robust satisficing: how much loss may be given up for robustness.

Three ways to say it: an absolute loss; a multiple of the lowest loss that any model reaches; or the
share of what a model can learn, :math:`\tau = L_{ERM} + t (L_{trivial} - L_{ERM})`, that may be
given up. The last means the same on easy and on hard data.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from .._parameters import check_number
from ..exceptions import InfeasibleTargetError, TargetError, UndefinedTargetError

#: A target nearer than this to the lowest loss, as a share of the trivial one, is that loss but for
#: rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Target:
    """A target and the losses it is to be seen between.

    Attributes
    ----------
    erm_loss : float
        Infimum of the penalised mean loss.
    trivial_loss : float
        Its minimum over models that use no feature that may shift.
    separable : bool
        Whether the classes can be told apart without a mistake, so that the infimum is 0.
    attained : bool
        Whether some model attains it; hinges do.
    value : float
    """

    value: float
    erm_loss: float
    trivial_loss: float
    separable: bool
    attained: bool = True

    @property
    def learnable(self) -> bool:
        """Whether any model is better than a trivial one."""
        return self.trivial_loss - self.erm_loss > 1e-9 * self.trivial_loss

    @property
    def tight(self) -> bool:
        """Whether there is almost nothing to give up."""
        hard_margin = self.separable and self.attained
        return not hard_margin and self.value - self.erm_loss < 1e-6 * self.trivial_loss

    @classmethod
    def resolved(
        cls,
        *,
        target: float | None,
        target_ratio: float | None,
        slack: float,
        erm_loss: float,
        trivial_loss: float,
        separable: bool,
        attained: bool = True,
    ) -> Target:
        """The target that was asked for, or an error that says why there is none."""
        losses = f"the lowest loss is {erm_loss:.6g}, that of a trivial model {trivial_loss:.6g}"
        if trivial_loss == 0.0 and target is None:
            raise UndefinedTargetError(
                "Features that cannot shift tell the classes apart by themselves: there is "
                "nothing to give up. Give an absolute target, or let those features shift."
            )
        if target_ratio is not None:
            if erm_loss <= 1e-12 * trivial_loss:
                raise UndefinedTargetError(
                    f"target_ratio={target_ratio:g} of a lowest loss of 0 is no target: the "
                    "classes can be told apart without a mistake. Give slack (such as 0.1), an "
                    f"absolute target between 0 and {trivial_loss:.6g}, or a penalty."
                )
            value = target_ratio * erm_loss
        elif target is not None:
            value = target
        else:
            value = erm_loss + slack * (trivial_loss - erm_loss)
        if attained and erm_loss == 0.0:
            value = max(value, _ROUNDING * trivial_loss)  # a hinge of zero, as near as it gets
        if value < erm_loss - _ROUNDING * trivial_loss or (separable and value <= 0.0):
            raise InfeasibleTargetError(
                f"target={value:.6g} cannot be reached: {losses}. Give a larger target, or slack "
                "for a share of what lies between the two."
            )
        return cls(max(value, erm_loss), erm_loss, trivial_loss, separable, attained)


def check_target_choice(target: Any, target_ratio: Any, slack: Any) -> None:
    """Check the three ways to give a target before anything is computed."""
    if target is not None and target_ratio is not None:
        raise TargetError(
            f"Give target or target_ratio, not both; got target={target!r} and "
            f"target_ratio={target_ratio!r}."
        )
    try:
        for name, value in (("target", target), ("target_ratio", target_ratio), ("slack", slack)):
            if value is not None or name == "slack":
                check_number(value, name)
    except ValueError as error:
        raise TargetError(str(error)) from None
    if target_ratio is not None and not target_ratio > 1.0:
        raise TargetError(
            f"target_ratio must be greater than 1, such as 1.1; got {target_ratio!r}: no model's "
            "loss is below the lowest one."
        )
    if target is None and target_ratio is None and not (isfinite(slack) and 0.0 < slack < 1.0):
        raise TargetError(
            f"slack must lie between 0 and 1, such as 0.1; got {slack!r}. It is the share of what "
            "the model learned that may be given up for robustness."
        )
