r"""The target of robust satisficing: how much loss may be given up for robustness.

There are four ways to give it: an absolute loss; a multiple of the lowest loss that any model
reaches; the share of what a model can learn,
:math:`\tau = L_{ERM} + t (L_{trivial} - L_{ERM})`, that may be given up, which means the same on
easy and on hard data; or the loss of a tuned model on samples that it was not fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from .._parameters import check_number
from ..exceptions import InfeasibleTargetError, TargetError, UndefinedTargetError

#: The word for a target that cross-validation finds; `Target` takes the number that it found.
OUT_OF_FOLD = "out_of_fold"
#: A target nearer than this to the lowest loss, as a share of the trivial one, is that loss but for
#: rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Target:
    """A target and the losses between which it lies.

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

    def __str__(self) -> str:
        return (
            f"target {self.value:.6g}, lowest loss {self.erm_loss:.6g}, "
            f"trivial loss {self.trivial_loss:.6g}"
        )

    @classmethod
    def resolved(
        cls,
        *,
        target: float | None,
        target_ratio: float | None,
        slack: float | None,
        erm_loss: float,
        trivial_loss: float,
        separable: bool,
        attained: bool = True,
    ) -> Target:
        """The target that was asked for, or an error that says why it does not exist."""
        losses = f"the lowest loss is {erm_loss:.6g}, a trivial model has {trivial_loss:.6g}"
        if trivial_loss == 0.0 and target is None:
            raise UndefinedTargetError(
                "Features that cannot shift tell the classes apart by themselves: there is "
                "nothing to give up. Give an absolute target, or let those features shift."
            )
        if target_ratio is not None:
            if erm_loss <= 1e-12 * trivial_loss:
                raise UndefinedTargetError(
                    f"target_ratio={target_ratio:g} times a lowest loss of 0 is not a target: the "
                    "classes can be told apart without a mistake. Give slack (such as 0.1), an "
                    f"absolute target between 0 and {trivial_loss:.6g}, or a penalty."
                )
            value = target_ratio * erm_loss
        elif target is not None:
            value = target
        else:
            assert slack is not None
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
    """Check the ways to give a target before anything is computed."""
    choice = {"target": target, "target_ratio": target_ratio, "slack": slack}
    given = {name: value for name, value in choice.items() if value is not None}
    if len(given) > 1:
        said = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise TargetError(f"Give one of target, target_ratio and slack; got {said}.")
    if isinstance(target, str):
        if target != OUT_OF_FOLD:
            raise TargetError(f'target must be a number or "{OUT_OF_FOLD}"; got {target!r}.')
        return
    try:
        for name, value in given.items():
            check_number(value, name)
    except ValueError as error:
        raise TargetError(str(error)) from None
    if target_ratio is not None and not target_ratio > 1.0:
        raise TargetError(
            f"target_ratio must be greater than 1, such as 1.1; got {target_ratio!r}: no model's "
            "loss is below the lowest one."
        )
    if slack is not None and not (isfinite(slack) and 0.0 < slack < 1.0):
        raise TargetError(
            f"slack must lie between 0 and 1, such as 0.1; got {slack!r}. It is the share of what "
            "the model learned that may be given up for robustness."
        )
