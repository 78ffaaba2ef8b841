"""Data sets for what `sets.py` holds little of; their whole reports are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sets import binary, expit, several

COSTS = {"error_cost": [[0, 1], [5, 0]], "review_cost": 0.3}
THREE_COSTS = {"error_cost": [[0, 1, 2], [3, 0, 1], [6, 2, 0]], "review_cost": 0.4}

Set = tuple[str, dict[str, Any]]


def answers(seed: int, n: int) -> tuple[dict[str, Any], np.random.Generator]:
    """Two models that are right on different cases, each with a confidence of its own."""
    rng = np.random.default_rng([seed, n, 9])
    correct, confidence = {}, {}
    for name, ability in (("large", 1.2), ("small", 0.4)):
        logit = ability + 1.3 * rng.standard_normal(n)
        correct[name] = rng.random(n) < expit(logit)
        confidence[name] = expit(logit + 0.7 * rng.standard_normal(n))
    return {"correct": correct, "models": confidence}, rng


def answer_sets() -> Iterator[Set]:
    """Right and wrong answers, some declined."""
    asked, _ = answers(11, 600)
    yield "answers", asked
    asked, _ = answers(12, 600)
    yield "answers, costs", {**asked, "costs": {"error_cost": 4.0, "review_cost": 0.5}}
    asked, rng = answers(13, 700)
    declined = {name: rng.random(700) < 0.1 for name in asked["models"]}
    erring = {
        "error_cost": 4.0,
        "review_cost": 0.5,
        "reviewer_error": {"wrong": 0.1, "right": 0.02},
    }
    yield "answers, declined", {**asked, "declined": declined, "costs": erring}
    yield "answers, one declines", {**asked, "declined": {**declined, "large": np.zeros(700, bool)}}
    asked, rng = answers(14, 500)
    yield (
        "answers, weights, clusters, groups",
        {
            **asked,
            "sample_weight": rng.lognormal(0, 1, 500),
            "cluster": rng.integers(0, 120, 500),
            "groups": {"site": rng.choice(["a", "b"], 500)},
            "costs": {"error_cost": 4.0, "review_cost": 0.5},
        },
    )
    asked, rng = answers(15, 500)
    by_case = {"error_cost": rng.lognormal(1, 1, 500), "review_cost": 0.5, "capacity": 0.3}
    yield "answers, costs by case, capacity", {**asked, "costs": by_case}
    asked, _ = answers(16, 900)
    costs = {"error_cost": 4.0, "review_cost": 0.5}
    for limit in ("max_error_share", "max_error_rate"):
        yield f"answers, {limit}", {**asked, "costs": costs, "policy": {limit: 0.1}}
    same = {**asked, "correct": asked["correct"]["large"]}
    yield "answers, the same truth", {**same, "costs": costs}


def human_sets() -> Iterator[Set]:
    """Human decisions, and reviewers that err by class or by case."""
    y, scores, rng = binary(21, 800)
    human = np.where(rng.random(800) < 0.08, 1 - y, y)
    yield "human", {"y": y, "models": scores, "costs": COSTS, "human": human}
    by_class = {**COSTS, "reviewer_error": [0.02, 0.1]}
    yield "reviewers by class", {"y": y, "models": scores, "costs": by_class}
    by_case = {**COSTS, "reviewer_error": rng.uniform(0, 0.2, 800)}
    yield "reviewers by case", {"y": y, "models": scores, "costs": by_case}
    y, scores, rng = several(22, 700, 3)
    human = np.where(rng.random(700) < 0.1, (y + 1) % 3, y)
    yield "human, 3 classes", {"y": y, "models": scores, "costs": THREE_COSTS, "human": human}
    by_class = {**THREE_COSTS, "reviewer_error": [0.02, 0.1, 0.05]}
    yield "reviewers by class, 3 classes", {"y": y, "models": scores, "costs": by_class}


def guarantee_sets() -> Iterator[Set]:
    """Limits of errors that hold with a probability."""
    y, scores, rng = binary(31, 2000)
    limits = ("max_error_share", "max_error_rate", "max_misses", "max_false_alarms")
    for limit in limits:
        yield limit, {"y": y, "models": scores, "costs": COSTS, "policy": {limit: 0.05}}
    both = {"max_error_share": 0.04, "max_misses": 0.1, "guarantee": 0.9}
    yield "two limits", {"y": y, "models": scores, "costs": COSTS, "policy": both}
    cluster = rng.integers(0, 500, 2000)
    for limit in limits:
        case = {"y": y, "models": scores, "costs": COSTS, "policy": {limit: 0.15}}
        yield f"{limit}, clusters", {**case, "cluster": cluster}
    case = {"y": y, "models": scores, "costs": COSTS, "policy": {"max_error_share": 0.1}}
    yield "max_error_share, weights", {**case, "sample_weight": rng.uniform(0.5, 2, 2000)}
    few, few_scores, _ = binary(32, 60)
    policy = {"max_error_share": 0.02}
    yield "too few for a limit", {"y": few, "models": few_scores, "costs": COSTS, "policy": policy}
    over = {**COSTS, "capacity": 0.05}
    case = {"y": y, "models": scores, "costs": over, "policy": {"max_error_share": 0.02}}
    yield "limit over capacity", case
    y, scores, rng = several(33, 1500, 3)
    for limit in limits[:2]:
        case = {"y": y, "models": scores, "costs": THREE_COSTS, "policy": {limit: 0.1}}
        yield f"{limit}, 3 classes", case
        yield f"{limit}, 3 classes, clusters", {**case, "cluster": rng.integers(0, 400, 1500)}


def rule_sets() -> Iterator[Set]:
    """Every rule and criterion by which a policy is chosen."""
    y, scores, rng = binary(41, 600, sharp=1.8)
    weight = rng.lognormal(0, 1, 600)
    for rule in ("tuned", "expected_cost", "confidence"):
        yield f"rule {rule}", {"y": y, "models": scores, "costs": COSTS, "policy": {"rule": rule}}
    fragile = {"criterion": "fragility"}
    yield "least fragile", {"y": y, "models": scores, "costs": COSTS, "policy": fragile}
    case = {"y": y, "models": scores, "costs": COSTS, "policy": {**fragile, "slack": 0.3}}
    yield "least fragile, weights", {**case, "sample_weight": weight}
    y, scores, rng = several(42, 600, 3)
    for name, policy in (("tuned", {"rule": "tuned"}), ("least fragile", fragile)):
        case = {"y": y, "models": scores, "costs": THREE_COSTS, "policy": policy}
        yield f"{name}, 3 classes", case
    plain = {"error_cost": 3.0, "review_cost": 0.4, "capacity": 0.2}
    yield "one cost and capacity, 3 classes", {"y": y, "models": scores, "costs": plain}
    by_case = {"error_cost": rng.lognormal(0, 1, 600), "review_cost": 0.4}
    yield "costs by case, 3 classes", {"y": y, "models": scores, "costs": by_case}


def group_sets() -> Iterator[Set]:
    """Several columns of groups, with and without what else a case may have."""
    y, scores, rng = binary(51, 1500)
    groups = {
        "sex": rng.choice(["f", "m"], 1500),
        "age": rng.choice([30, 50, 70], 1500, p=[0.5, 0.45, 0.05]),
    }
    case = {"y": y, "models": scores, "groups": groups}
    yield "crossed groups", {**case, "costs": COSTS}
    yield "columns of groups", {**case, "cross_groups": False, "min_cell": 60}
    more = {"sample_weight": rng.lognormal(0, 1, 1500), "cluster": rng.integers(0, 300, 1500)}
    yield "crossed groups, weights, clusters", {**case, **more, "costs": COSTS}
    by_case = {"error_cost": rng.lognormal(0, 1, 1500), "review_cost": 0.3}
    yield "groups, costs by case", {**case, "cross_groups": False, "costs": by_case}
    y, scores, rng = several(52, 1200, 3)
    groups = {"site": rng.choice(["a", "b", "c"], 1200, p=[0.5, 0.3, 0.2])}
    yield "groups, 3 classes", {"y": y, "models": scores, "groups": groups, "costs": THREE_COSTS}


def other_sets() -> Iterator[Set]:
    """Absent classes, extreme weights, another base rate, earlier predictions, odd scores."""
    y, scores, _ = several(61, 500, 3)
    present = y < 2
    some = {name: p[present] for name, p in scores.items()}
    yield "an absent class", {"y": y[present], "models": some, "labels": [0, 1, 2]}
    y, scores, rng = binary(62, 700)
    extreme = 10.0 ** rng.uniform(-6, 6, 700)
    yield "extreme weights", {"y": y, "models": scores, "sample_weight": extreme}
    case = {"y": y, "models": scores, "costs": COSTS}
    yield "extreme weights, costs", {**case, "sample_weight": extreme}
    zero = np.where(rng.random(700) < 0.2, 0.0, 1.0)
    yield "weights of zero", {**case, "sample_weight": zero}
    yield (
        "weights and clusters",
        {
            **case,
            "sample_weight": rng.lognormal(0, 1, 700),
            "cluster": rng.integers(0, 150, 700),
        },
    )
    yield "prevalence", {**case, "prevalence": 0.1}
    cases = np.arange(700) + 1000
    earlier = {
        name: np.clip(p + 0.3 * rng.standard_normal(700), 0, 1) for name, p in scores.items()
    }
    previous = {"y_true": y, "models": earlier, "cases": cases}
    yield "previous predictions", {**case, "cases": cases, "previous": previous}
    context = {"title": "Triage", "against": "m1", "currency": "EUR", "volume": "50000/month"}
    options = {"confidence": 0.9, "confident": 0.8, "n_worst": 3, "mute": ("FRA012",)}
    yield "context and options", {**case, "context": context, **options}
    yield "not calibrated", {**case, "calibrate": False}
    yield "positive class 0", {**case, "pos_label": 0}
    yield "labels in another order", {**case, "labels": [1, 0]}
    yield (
        "right decisions cost, too",
        {
            **case,
            "costs": {"error_cost": [[0.2, 1.5], [5, 0.4]], "review_cost": 0.3},
        },
    )
    yield "nothing is worth a review", {**case, "costs": {"error_cost": 1.0, "review_cost": 2.0}}
    twins = {"m0": scores["m0"], "twin": scores["m0"]}
    yield "twins", {**case, "models": twins}
    hard = {name: (p > 0.5).astype(float) for name, p in scores.items()}
    yield "hard classes", {**case, "models": hard}
    constant = {"m0": scores["m0"], "constant": np.full(700, 0.3)}
    yield "a constant model", {**case, "models": constant}
    y, scores, _ = binary(63, 9)
    yield "nine cases", {"y": y, "models": scores, "costs": COSTS}
    y, scores, rng = several(64, 600, 4)
    reversed_ = {"m0": scores["m0"][:, ::-1], "m1": scores["m1"]}
    yield "reversed, 4 classes", {"y": y, "models": reversed_}
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    yield (
        "text labels, 4 classes, clusters",
        {
            "y": names,
            "models": scores,
            "cluster": rng.integers(0, 100, 600),
        },
    )
    y, scores, rng = binary(65, 3000, shift=-5.5)
    yield "very rare", {"y": y, "models": scores, "costs": COSTS}


def more_sets() -> Iterator[Set]:
    """Name and what is measured, as in `sets.cases`; `correct` stands in the place of `y`."""
    for kind in (answer_sets, human_sets, guarantee_sets, rule_sets, group_sets, other_sets):
        yield from kind()
