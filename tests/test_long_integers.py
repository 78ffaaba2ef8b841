"""Python's integers know no end; floats do. A sentence where they meet, never an OverflowError."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import fragility as fr
from fragility.ambiguity import KL, Wasserstein
from fragility.calibration import cross_fitted_calibration
from fragility.certificates import certify

LONG = 10**400
#: Too long for Python to write it out.
LONGER = -(10**5000)

Y = [0, 1, 0, 1, 0, 1, 1, 0]
P = [0.2, 0.8, 0.4, 0.6, 0.7, 0.3, 0.9, 0.1]
X = np.c_[P, P[::-1]]
TWO = np.c_[1 - np.array(P), P].tolist()


def with_long(values, long):
    """Nested lists, too, with one entry replaced."""
    values = [list(v) if isinstance(v, list) else v for v in values]
    if isinstance(values[1], list):
        values[1][0] = long
    else:
        values[1] = long
    return values


def fitted():
    return fr.ERMClassifier().fit(X, Y)


WEIGHTED = [
    fr.fragility_index,
    fr.fragility_ratio,
    fr.measure_fragility,
    fr.ranking_error_cvar,
    fr.buffered_auc_score,
    fr.confident_error_rate,
    fr.area_under_risk_coverage,
    fr.equal_mass_calibration_error,
    fr.FragilitySketch(64).update,
]


@pytest.mark.parametrize("long", [LONG, LONGER, Fraction(LONG, 3)], ids=["long", "longer", "ratio"])
@pytest.mark.parametrize("measure", WEIGHTED, ids=lambda f: f.__name__)
def test_scores_and_weights(measure, long):
    for scores in (with_long(P, long), with_long(TWO, long)):
        with pytest.raises(ValueError, match=r"(y_score|y_proba) must hold numbers"):
            measure(Y, scores)
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        measure(Y, P, sample_weight=with_long([1.0] * 8, long))


@pytest.mark.parametrize("long", [LONG, LONGER], ids=["long", "longer"])
@pytest.mark.parametrize(
    "call",
    {
        "target": lambda v: fr.fragility_index(Y, P, target=v),
        "target of the ratio": lambda v: fr.measure_fragility(Y, P, target=v),
        "target of losses": lambda v: fr.loss_fragility(P, target=v),
        "losses": lambda v: fr.loss_fragility([0.1, v, 0.3], target=0.2),
        "weights of losses": lambda v: fr.loss_fragility(P, target=0.6, sample_weight=[v] * 8),
        "target of the sketch": lambda v: fr.FragilitySketch().update(Y, P).fragility(v),
        "n_bins of the sketch": lambda v: fr.FragilitySketch(v),
        "pair_cost": lambda v: fr.fragility_index(Y, P, pair_cost=[[0, v], [1, 0]]),
        "logits": lambda v: fr.wasserstein_fragility_index(Y, [v, *P[1:]], weight_norm=1),
        "weight_norm": lambda v: fr.wasserstein_fragility_index(Y, P, weight_norm=v),
        "target of logits": lambda v: fr.wasserstein_fragility_index(Y, P, target=v, weight_norm=1),
        "scores of a": lambda v: fr.compare_fragility(Y, with_long(P, v), P),
        "scores of b": lambda v: fr.compare_fragility(Y, P, with_long(P, v)),
        "confidence of a comparison": lambda v: fr.compare_fragility(Y, P, P[::-1], confidence=v),
        "interval": lambda v: fr.measure_fragility(Y, P).interval(v),
        "tail_bound": lambda v: fr.measure_fragility(Y, P).tail_bound(v),
        "tail_bounds": lambda v: fr.measure_fragility(Y, P).tail_bound([0.1, v]),
        "var_bound": lambda v: fr.measure_fragility(Y, P).var_bound(v),
        "level": lambda v: fr.ranking_error_cvar(Y, P, level=v),
        "threshold": lambda v: fr.confident_error_rate(Y, P, threshold=v),
        "n_bins": lambda v: fr.equal_mass_calibration_error(Y, P, n_bins=v),
        "error_cost": lambda v: fr.best_policy(Y, P, error_cost=v, review_cost=1),
        "matrix of error_cost": lambda v: fr.best_policy(
            Y, P, error_cost=[[0, v], [1, 0]], review_cost=1
        ),
        "costs of cases": lambda v: fr.deferral_curve(Y, P, error_cost=[v] * 8, review_cost=1),
        "review_cost": lambda v: fr.deferral_curve(Y, P, error_cost=5, review_cost=v),
        "capacity": lambda v: fr.best_policy(Y, P, error_cost=5, review_cost=1, capacity=v),
        "reviewer_error": lambda v: fr.best_policy(
            Y, P, error_cost=5, review_cost=1, reviewer_error=v
        ),
        "seed": lambda v: fr.best_policy(Y, P, error_cost=5, review_cost=1, random_state=v),
        "slack of a policy": lambda v: fr.best_policy(Y, P, error_cost=5, slack=v),
        "limit of errors": lambda v: fr.best_policy(Y, P, error_cost=5, max_misses=v),
        "guarantee": lambda v: fr.best_policy(Y, P, error_cost=5, max_misses=0.1, guarantee=v),
        "costs to compare": lambda v: fr.compare_costs(Y, P, P, error_cost=v),
        "costs": lambda v: fr.Costs(error_cost=v, review_cost=1).checked(2, 8),
        "scores to defer": lambda v: fr.best_policy(
            Y, with_long(P, v), error_cost=5, review_cost=1
        ),
        "threshold of a classifier": lambda v: fr.DeferralClassifier(
            fitted(), error_cost=v, review_cost=1
        ).fit(X, Y),
        "scores to calibrate": lambda v: cross_fitted_calibration(Y, with_long(P, v)),
        "n_splits": lambda v: cross_fitted_calibration(Y, P, n_splits=v),
        "features": lambda v: fr.ERMClassifier().fit(with_long(X.tolist(), v), Y),
        "weights of samples": lambda v: fr.ERMClassifier().fit(X, Y, sample_weight=[v] + [1] * 7),
        "class_weight": lambda v: fr.ERMClassifier(class_weight={0: v, 1: 1}).fit(X, Y),
        "alpha": lambda v: fr.ERMClassifier(alpha=v).fit(X, Y),
        "tol": lambda v: fr.ERMClassifier(tol=v).fit(X, Y),
        "slack": lambda v: fr.SatisficingClassifier(slack=v).fit(X, Y),
        "target_ratio": lambda v: fr.SatisficingClassifier(target_ratio=v).fit(X, Y),
        "target of a classifier": lambda v: fr.SatisficingClassifier(target=v).fit(X, Y),
        "radius of a classifier": lambda v: fr.SatisficingClassifier(radius=v, slack=0.1).fit(X, Y),
        "radius": lambda v: fr.DROClassifier(radius=v).fit(X, Y),
        "slacks": lambda v: fr.SatisficingClassifierCV(slacks=[0.1, v], cv=2).fit(X, Y),
        "alphas": lambda v: fr.SatisficingClassifierCV(alphas=[0.1, v], cv=2).fit(X, Y),
        "path of slacks": lambda v: fr.fragility_path(X, Y, slacks=[0.1, v]),
        "path of targets": lambda v: fr.fragility_path(X, Y, targets=[v, 1.1]),
        "label_cost": lambda v: Wasserstein(label_cost=v),
        "norm": lambda v: Wasserstein(norm=v),
        "feature_weight": lambda v: Wasserstein(feature_weight=[1, v]),
        "certified target": lambda v: certify(fitted(), X, Y, target=v),
        "certified radius": lambda v: certify(fitted(), X, Y, target=1.0, radius=v),
        "certified penalty": lambda v: certify(fitted(), X, Y, target=1.0, penalty=v),
        "certified features": lambda v: certify(fitted(), with_long(X.tolist(), v), Y, target=1.0),
        "far": lambda v: certify(fitted(), X, Y, target=1.0).violation_bound(v),
        "worst loss": lambda v: certify(fitted(), X, Y, target=1.0).worst_loss(v),
        "worst loss under KL": lambda v: certify(
            fitted(), X, Y, target=1.0, ambiguity=KL()
        ).worst_loss(v),
        "features to score": lambda v: fitted().predict_proba(with_long(X.tolist(), v)),
    }.items(),
    ids=lambda item: item[0],
)
def test_parameters(call, long):
    with pytest.raises(ValueError, match=r"\w+ \w+ .*\."):
        call[1](long)


def test_long_integers_are_labels_like_any_other():
    names = [LONG, LONG + 1]
    y = [names[c] for c in Y]
    assert fr.fragility_index(y, P) == fr.fragility_index(Y, P)
    assert fr.fragility_index(y, P, pos_label=LONG) == fr.fragility_index(Y, P, pos_label=0)
    assert fr.fragility_index(y, TWO, labels=names) == fr.fragility_index(Y, TWO)
    sketch = fr.FragilitySketch().update(y, P)
    assert sketch.fragility().value == fr.FragilitySketch().update(Y, P).fragility().value
    assert fr.FragilitySketch.from_bytes(sketch.to_bytes()) == sketch
    assert fr.confident_error_rate(y, P, threshold=0.6) == fr.confident_error_rate(
        Y, P, threshold=0.6
    )


def test_integers_that_floats_hold_are_numbers():
    large = 10**30
    y, p = [0, 1, 0, 1], [0, 2, 3, 2]
    found = fr.fragility_index(y, [v * large for v in p], target=large)
    assert found / large == pytest.approx(fr.fragility_index(y, p, target=1), rel=1e-12)
