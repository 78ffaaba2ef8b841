"""What the same scores would show if the positives were another share of the cases."""

from __future__ import annotations

from .._typing import Floats
from ..scores.atoms import Atoms


def at_prevalence(
    others: Atoms, happened: Atoms, prevalence: float | None
) -> tuple[Atoms, Atoms, float]:
    """Atoms weighed so that those that happened are this share of the weight; and the share.

    The total weight stays what it is. None keeps the share of the data; so does data of one class,
    of which nothing is known at another share.
    """
    no, yes = float(others.weight.sum()), float(happened.weight.sum())
    share = yes / (no + yes)
    if prevalence is None or no == 0.0 or yes == 0.0:
        return others, happened, share
    total = no + yes
    return (
        _reweighed(others, (1.0 - prevalence) * total / no),
        _reweighed(happened, prevalence * total / yes),
        prevalence,
    )


def _reweighed(atoms: Atoms, factor: float) -> Atoms:
    weight: Floats = atoms.weight * factor
    return atoms._replace(weight=weight, squares=atoms.squares * factor**2)
