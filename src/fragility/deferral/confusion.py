"""What a policy decides, by true class: counts and their picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Floats
from .._validation import check_labelled_probabilities
from ..metrics.displays.base import Display
from ..metrics.displays.figure import GREY, RIGHT, WRONG, pyplot, shortened
from .policy import Policy

#: Above this many classes the numbers do not fit into the cells.
_MOST_ANNOTATED = 15


@dataclass(frozen=True, eq=False)
class PolicyConfusion:
    """Cases by true class and by decision.

    Attributes
    ----------
    counts : ndarray of shape (n_classes, n_classes + 1)
        Number of the cases of each true class (or their weight) that the model decides to be of
        each class, in the order of `labels`; the last column are those that a human reviews.
    labels : tuple
    """

    counts: Floats
    labels: tuple[Any, ...]

    @property
    def reviewed(self) -> Floats:
        """Cases of each true class that a human reviews."""
        return self.counts[:, -1]

    @property
    def errors(self) -> float:
        """Cases that the model decides alone and wrongly."""
        alone = self.counts[:, :-1]
        return float(alone.sum() - alone.trace())


def policy_confusion(
    y_true: ArrayLike, y_score: ArrayLike, policy: Policy, *, sample_weight: ArrayLike | None = None
) -> PolicyConfusion:
    """Confusion counts at a policy: cases by true class and by decision, reviews among them.

    Give cases that did not choose the policy: on those that did, it looks better than it is. A
    `fragility.Report` has the counts of cases that did not choose.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true classes, which the policy knows.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities as the model gives them, as in `Policy.decide`.
    policy : Policy
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    PolicyConfusion

    Examples
    --------
    >>> from fragility import best_policy, policy_confusion
    >>> y = [1, 1, 0, 0, 1, 0, 0, 1]
    >>> p = [0.9, 0.8, 0.1, 0.2, 0.4, 0.6, 0.1, 0.9]
    >>> policy = best_policy(y, p, error_cost=10)
    >>> policy_confusion(y, p, policy).counts.sum(axis=1).tolist()
    [4.0, 4.0]
    """
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be a Policy; got {type(policy).__name__}.")
    labels = np.asarray(policy.labels)
    positive = labels.tolist()[policy.positive] if labels.size == 2 else None
    data = check_labelled_probabilities(
        y_true, y_score, labels, positive, sample_weight, name="y_score"
    )
    found = policy.decide_scores(np.clip(data.scores.astype(np.float64), 0.0, 1.0))
    decided = (found.label[:, np.newaxis] == labels).argmax(axis=1)
    columns = np.where(found.automate, decided, labels.size)
    keys = data.codes.astype(np.int64) * (labels.size + 1) + columns
    counts = np.bincount(keys, data.weights, labels.size * (labels.size + 1)).astype(np.float64)
    return PolicyConfusion(counts.reshape(labels.size, -1), policy.labels)


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyConfusionDisplay(Display):
    """Cases by true class and by what a policy decides, as a table of colours.

    Blue: decided rightly; orange: wrongly; grey: reviewed by a human. The darker, the larger the
    share of the true class. Made by `from_predictions`.

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_classes + 1)
        As in `PolicyConfusion`.
    labels : tuple
    name : str, optional
        Name of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from fragility import PolicyConfusionDisplay, best_policy
    >>> y = [1, 1, 0, 0, 1, 0, 0, 1]
    >>> p = [0.9, 0.8, 0.1, 0.2, 0.4, 0.6, 0.1, 0.9]
    >>> display = PolicyConfusionDisplay.from_predictions(y, p, best_policy(y, p, error_cost=10))
    >>> display.counts.shape
    (2, 3)
    """

    counts: Floats
    labels: tuple[Any, ...]
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        policy: Policy,
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> PolicyConfusionDisplay:
        """Draw what a policy decides.

        Parameters
        ----------
        y_true, y_score, policy, sample_weight
            As in `fragility.policy_confusion`.
        name : str, optional
            Name of the model, for the title.
        ax : matplotlib Axes, optional

        Returns
        -------
        PolicyConfusionDisplay
        """
        pyplot()
        found = policy_confusion(y_true, y_score, policy, sample_weight=sample_weight)
        return cls(counts=found.counts, labels=found.labels, name=name).plot(ax)

    def _new_size(self) -> tuple[float, float]:
        n = len(self.labels)
        return float(np.clip(1.15 * n + 2.6, 4.8, 11.0)), float(np.clip(0.8 * n + 1.6, 3.0, 9.0))

    def _draw(self, axes: Any) -> None:
        (ax,) = axes
        n = len(self.labels)
        totals = np.maximum(self.counts.sum(axis=1, keepdims=True), 1e-300)
        shares = self.counts / totals
        plt = pyplot()
        for i in range(n):
            for j in range(n + 1):
                colour = GREY if j == n else RIGHT if i == j else WRONG
                share = float(shares[i, j])
                cell = {"facecolor": colour, "alpha": 0.08 + 0.67 * share, "edgecolor": "white"}
                ax.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1.0, 1.0, **cell))
                if n <= _MOST_ANNOTATED:
                    text = f"{self.counts[i, j]:,.4g}\n{100 * share:.3g} %"
                    ax.text(j, i, text, ha="center", va="center", color="black")
        names = [shortened(label) for label in self.labels]
        turned = 90 if max(map(len, names)) > 60 // (n + 1) else 0
        ax.set_xticks(range(n + 1), [*names, "review"], rotation=turned)
        ax.set_yticks(range(n), names)
        ax.set_xlim(-0.5, n + 0.5)
        ax.set_ylim(n - 0.5, -0.5)
        ax.set_xlabel("decided")
        ax.set_ylabel("true class")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        wrong = float(self.counts[:, :-1].sum() - self.counts[:, :-1].trace())
        share = wrong / float(self.counts.sum())
        ax.set_title(f"{self.name or 'Policy'},  {100 * share:.3g} % of all wrong", loc="left")
