"""What parameters and k cost in interior-point programs beside the losses of the samples."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from ..programs.batched import Batched
from .cones import inner
from .interior_program import InteriorProgram, Quadratic


class _Model(Batched):
    """Quadratic functions of all problems."""

    def __init__(self, models: list[Quadratic]) -> None:
        self.centre, self.gradient, self.hessian = (
            np.stack([getattr(model, name) for model in models])
            for name in ("centre", "gradient", "hessian")
        )
        self.height = np.array([model.height for model in models])

    def value(self, theta: Floats) -> Floats:
        away = theta - self.centre
        turned = (self.hessian @ away[..., np.newaxis])[..., 0]
        return self.height + inner(self.gradient, away) + 0.5 * inner(away, turned)

    def slope(self, theta: Floats) -> Floats:
        away = theta - self.centre
        slope: Floats = self.gradient + (self.hessian @ away[..., np.newaxis])[..., 0]
        return slope


class Costs(Batched):
    """What parameters cost beside the losses."""

    def __init__(self, programs: list[InteriorProgram]) -> None:
        objectives = [program.objective for program in programs]
        shape = len(programs), programs[0].start.size
        self.ridge = np.zeros(shape)
        self.lasso = np.zeros(shape)
        self.n_outputs = 1
        for place, objective in enumerate(objectives):
            if objective is not None:
                self.ridge[place], self.lasso[place] = objective.ridge, objective.lasso_weights
                self.n_outputs = objective.n_outputs
        self.squared = np.zeros(shape)
        self.squared += np.stack([np.broadcast_to(p.squared_cost, shape[1]) for p in programs])
        self.k = np.array([program.k_cost for program in programs])
        models = [program.model for program in programs if program.model is not None]
        self.model = _Model(models) if models else None

    def of(self, theta: Floats, k: Floats) -> Floats:
        """Squared parameters and k, which is zero where there is none."""
        return 0.5 * inner(self.squared * theta, theta) + self.k * k

    def smooth(self, theta: Floats) -> Floats:
        """Ridge and model."""
        value = 0.5 * inner(self.ridge * theta, theta)
        return value if self.model is None else value + self.model.value(theta)

    def slope(self, theta: Floats, nu: Floats | None = None) -> Floats:
        """Slope of ridge and model; with a multiplier, times that, plus that of squared costs."""
        if nu is None:
            slope = self.ridge * theta
            return slope if self.model is None else slope + self.model.slope(theta)
        slope = (nu[:, np.newaxis] * self.ridge + self.squared) * theta
        if self.model is not None:
            slope = slope + nu[:, np.newaxis] * self.model.slope(theta)
        return slope
