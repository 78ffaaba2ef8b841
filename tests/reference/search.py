"""An adversary that only searches: moves and labels of the samples that gain most for their cost.

A loss, a cost and a support are given as in `moves`; without pieces the loss is cross-entropy of
two classes. Each linear piece of the loss is a concave function of where a sample goes, so every
piece of every label is climbed by itself: from steps of all lengths, by random steps, steps along
axes and diagonals and the last step again, which grow while they gain and shrink while they do not.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .moves import cost, inside

SIGNS = np.array([way for way in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(way)])
#: Lengths of first steps; the last ones for moves that pay for ever.
LENGTHS = (0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 1e3, 1e7)
#: First steps that are climbed from where the loss is not made of linear pieces.
CLIMBED = 8
ROUNDS, RANDOM = 60, 24


def drawn_into(points, support):
    """Points, where they lie outside, drawn towards zero, which lies inside; of a box, clipped."""
    if support is None:
        return points
    name, *numbers = support
    if name == "box":
        return np.clip(points, *numbers)
    if name == "polytope":
        size = np.max(points @ numbers[0].T / numbers[1], axis=-1, keepdims=True)
    else:
        assert not np.any(numbers[0])
        size = np.sqrt(np.sum((points @ numbers[1]) * points, axis=-1, keepdims=True))
    return np.where(size > 1.0, points / np.maximum(size, 1.0) * (1.0 - 1e-12), points)


@dataclass
class Search:
    """One model and its samples, and what moves cost."""

    coef: Any
    intercept: Any
    pieces: Any
    X: Any
    y: Any
    norm: Any
    kind: Any
    support: Any = None
    label_cost: float = np.inf
    prices: Any = None

    def __post_init__(self):
        given = np.ones(3) if self.prices is None else np.asarray(self.prices, float)
        self.movable = np.isfinite(given)
        self.paid_for = np.where(self.movable, given, 0.0)
        self.unit = np.where(self.movable, given, 1.0)  # steps of one cost alike
        n_classes = 2 if len(self.coef) == 1 else len(self.coef)
        labels = range(n_classes)
        climbs = []  # sample, label, slope, offset
        for i, own in enumerate(self.y):
            for label in labels if np.isfinite(self.label_cost) else [own]:
                for slope, offset in self._pieces(label):
                    climbs.append((i, label, slope, offset))
        self.sample = np.array([one[0] for one in climbs])
        self.label = np.array([one[1] for one in climbs])
        self.slope = np.array([one[2] for one in climbs])
        self.offset = np.array([one[3] for one in climbs])
        self.start = self.X[self.sample]

    def _pieces(self, label):
        """Slopes by the features and offsets."""
        if self.pieces is None:
            sign = -1.0 if label == 1 else 1.0
            return [(sign * self.coef[0], sign * self.intercept[0])] * CLIMBED
        return [
            (np.atleast_1d(a) @ self.coef, np.atleast_1d(a) @ self.intercept + b)
            for a, b in self.pieces[label]
        ]

    def _values(self, points, k):
        """Loss less cost at points (climbs, some, features), without what labels cost."""
        values = np.einsum("cpd,cd->cp", points, self.slope) + self.offset[:, np.newaxis]
        if self.pieces is None:
            values = np.logaddexp(0.0, values)
        flat = points.reshape(-1, points.shape[-1])
        away = self.paid_for * (points - self.start[:, np.newaxis])
        values -= k * cost(away.reshape(flat.shape), self.norm, self.kind).reshape(values.shape)
        return np.where(inside(flat, self.support).reshape(values.shape), values, -np.inf)

    def _placed(self, points):
        """Points where samples may be: features that cannot move stay, the others go inside."""
        stays = np.broadcast_to(self.start[:, np.newaxis], points.shape)
        return np.where(
            self.movable, drawn_into(np.where(self.movable, points, stays), self.support), stays
        )

    def _firsts(self):
        """Corners of a box, and steps along axes, diagonals and slopes."""
        steep = self.slope[:, np.newaxis]
        matrix = self.norm if isinstance(self.norm, np.ndarray) else np.eye(3)
        ways = np.concatenate([steep, steep @ np.linalg.inv(matrix)], axis=1)
        ways = ways / np.maximum(np.linalg.norm(ways, axis=2, keepdims=True), 1e-300)
        ways = np.concatenate([ways, np.broadcast_to(SIGNS, (len(steep), *SIGNS.shape))], axis=1)
        ways = ways / self.unit
        steps = [self.start[:, np.newaxis] + length * ways for length in LENGTHS]
        points = [self.start[:, np.newaxis], *steps]
        if self.support is not None and self.support[0] == "box":
            ends = np.stack(np.broadcast_arrays(self.start, *self.support[1:]))
            ends = np.where(np.isinf(ends), self.start, ends)
            for choice in itertools.product(range(3), repeat=3):
                points.append(ends[choice, :, range(3)].T[:, np.newaxis])
        return self._placed(np.concatenate(points, axis=1))

    def largest(self, k, rng):
        """Largest mean of loss less k times cost that is found."""
        points = self._firsts()
        values = self._values(points, k)
        if self.pieces is None:  # each climb of a sample from another of the best first steps
            rank = np.arange(len(values)) % CLIMBED
            chosen = np.argsort(-values, axis=1)[
                np.arange(len(values)), rank * values.shape[1] // (2 * CLIMBED)
            ]
        else:
            chosen = values.argmax(axis=1)
        every = np.arange(len(values))
        here, value = points[every, chosen], values[every, chosen]
        last = np.zeros_like(here)
        scale = 0.3 * np.maximum(1.0, np.linalg.norm(here - self.start, axis=1))
        for _ in range(ROUNDS):
            steps = np.concatenate([rng.normal(size=(RANDOM, 3)), SIGNS])
            steps = scale[:, np.newaxis, np.newaxis] * steps / self.unit
            steps = np.concatenate([steps, last[:, np.newaxis], 2.0 * last[:, np.newaxis]], axis=1)
            points = self._placed(here[:, np.newaxis] + steps)
            values = self._values(points, k)
            best = values.argmax(axis=1)
            better = values[every, best] > value
            last = np.where(better[:, np.newaxis], points[every, best] - here, last)
            here = np.where(better[:, np.newaxis], points[every, best], here)
            value = np.where(better, values[every, best], value)
            scale *= np.where(better, 1.3, 0.6)
        flips = self.label != self.y[self.sample]
        value = value - np.where(flips, k * min(self.label_cost, 1e300), 0.0)
        by_sample = np.full(len(self.y), -np.inf)
        np.maximum.at(by_sample, self.sample, value)
        return float(by_sample.mean())
