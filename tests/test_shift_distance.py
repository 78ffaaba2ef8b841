"""`shift_distance`: optimal transport as a literal program, bounds, and promises that hold."""

from __future__ import annotations

import warnings
from math import inf, log

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fragility import (
    KL,
    DROClassifier,
    SatisficingClassifier,
    Wasserstein,
    certify,
    shift_distance,
)
from fragility.transport import bounds, exact
from tests.reference.transport import transport_distance


def two_samples(n, m, d, seed, *, shift=0.5, grid=None, classes=2):
    """Random cases with labels, the second sample moved; on a grid there are ties."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + shift / np.sqrt(d)
    if grid:
        X, Z = np.round(X / grid) * grid, np.round(Z / grid) * grid
    return X, rng.integers(0, classes, n), Z, rng.integers(0, classes, m)


def literal(X, y, Z, z, ambiguity, weights=None):
    weight = ambiguity.feature_weight or (1.0,) * X.shape[1]
    return transport_distance(
        X,
        y,
        Z,
        z,
        weights or (np.ones(len(X)), np.ones(len(Z))),
        norm=ambiguity.norm,
        label_cost=ambiguity.label_cost,
        feature_weight=weight,
    )


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("label_cost", [0.05, 1.0, 30.0])
@pytest.mark.parametrize(("n", "m", "grid"), [(14, 9, None), (12, 12, None), (15, 11, 1.0)])
def test_it_is_the_transport_program(norm, label_cost, n, m, grid):
    data = two_samples(n, m, 2, 7 * n + m, grid=grid, classes=3)
    ambiguity = Wasserstein(norm, label_cost, (0.3, 4.0))
    found = shift_distance(*data, ambiguity)
    assert found.exact
    assert (found.n_ref, found.n_new) == (n, m)
    assert found.value == pytest.approx(literal(*data, ambiguity), rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_weights_and_cases_without_weight(norm):
    X, y, Z, z = two_samples(13, 10, 3, 5)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, 13), rng.random(10)
    ambiguity = Wasserstein(norm, 0.7)
    ref, new = weights
    found = shift_distance(X, y, Z, z, ambiguity, sample_weight_ref=ref, sample_weight_new=new)
    assert found.value == pytest.approx(literal(X, y, Z, z, ambiguity, weights), rel=1e-6)
    # A weight of three is three equal cases.
    repeated = shift_distance(
        np.repeat(X, ref, axis=0), np.repeat(y, ref), Z, z, ambiguity, sample_weight_new=new
    )
    assert repeated.value == pytest.approx(found.value, rel=1e-9)


def test_labels_that_do_not_move_are_transported_class_by_class():
    X, y, Z, z = two_samples(24, 24, 2, 3)
    y = z = np.arange(24) % 2
    found = shift_distance(X, y, Z, z, "wasserstein").value
    assert found == pytest.approx(literal(X, y, Z, z, Wasserstein()), rel=1e-6)
    parts = [
        shift_distance(X[y == c], y[y == c], Z[y == c], z[y == c], Wasserstein()).value
        for c in (0, 1)
    ]
    assert found == pytest.approx(np.mean(parts), rel=1e-9)
    assert shift_distance(X, y, Z, z, Wasserstein(label_cost=0.1)).value < found


def test_features_that_cannot_shift_must_be_as_frequent():
    X, y, Z, z = two_samples(12, 8, 3, 4)
    X[:, 1], Z[:, 1] = np.arange(12) % 2, np.arange(8) % 2
    ambiguity = Wasserstein(2, 0.5, (1.0, inf, 2.0))
    found = shift_distance(X, y, Z, z, ambiguity)
    assert found.value == pytest.approx(literal(X, y, Z, z, ambiguity), rel=1e-6)
    assert found.value > shift_distance(X, y, Z, z, Wasserstein(2, 0.5, (1.0, 1e-9, 2.0))).value
    Z[0, 1] = 1.0
    assert literal(X, y, Z, z, ambiguity) == inf
    far = shift_distance(X, y, Z, z, ambiguity)
    assert far.value == far.lower == inf
    assert "features that cannot shift" in far.method


def test_other_class_shares_are_infinitely_far_and_it_says_what_to_do():
    X, y, Z, z = two_samples(30, 20, 2, 3)
    y, z = np.arange(30) % 3 == 0, np.arange(20) % 2 == 0
    far = shift_distance(X, y, Z, z, Wasserstein())
    assert far.upper == far.lower == literal(X, y, Z, z, Wasserstein()) == inf
    assert "0.667, 0.333 in the reference, 0.5, 0.5 in the new data" in repr(far)
    assert "finite label_cost" in far.method
    assert "sample_weight_new" in far.method
    weights = np.where(z, (1 / 3) / 10, (2 / 3) / 10)
    near = shift_distance(X, y, Z, z, Wasserstein(), sample_weight_new=weights)
    expected = literal(X, y, Z, z, Wasserstein(), (np.ones(30), weights))
    assert near.value == pytest.approx(expected, rel=1e-6)


def test_a_metric():
    ambiguity = Wasserstein(1, 0.8)
    X, y, Z, z = two_samples(40, 31, 3, 9)
    V, _, _, v = two_samples(23, 23, 3, 10)
    order = np.random.default_rng(0).permutation(40)
    assert shift_distance(X, y, X[order], y[order], ambiguity).value == 0.0
    there, back = (shift_distance(*data, ambiguity).value for data in ((X, y, Z, z), (Z, z, X, y)))
    assert there == pytest.approx(back, rel=1e-9)
    over = [shift_distance(*d, ambiguity).value for d in ((X, y, V, v), (V, v, Z, z))]
    assert there <= sum(over) + 1e-12
    # A move of all cases alike costs its length; units of the features carry over, small or large.
    moved = X + np.array([0.3, -0.4, 0.0])
    assert shift_distance(X, y, moved, y, Wasserstein()).value == pytest.approx(0.5)
    for unit in (1e-170, 1e170):
        found = shift_distance(unit * X, y, unit * moved, y, Wasserstein()).value
        assert found == pytest.approx(0.5 * unit)
    sparse = shift_distance(csr_matrix(X), y, csr_matrix(Z), z, ambiguity).value
    assert sparse == pytest.approx(there, rel=1e-9)


def test_the_assignment_and_the_program_agree():
    """Equal masses are assigned; the program that all others take must find the same."""
    rng = np.random.default_rng(2)
    for costs in (rng.random((40, 40)), rng.integers(0, 3, (25, 25)).astype(float)):
        mass = np.full(len(costs), 1.0 / len(costs))
        found = exact.transport(costs, mass, mass)
        assert found.optimal
        assert found.upper == pytest.approx(exact.transport_cost(costs, mass, mass), rel=1e-8)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("label_cost", [0.3, 3.0, inf])
def test_bounds_of_many_cases_hold_on_both_sides(norm, label_cost, monkeypatch):
    monkeypatch.setattr(bounds, "_CELL", 20)
    monkeypatch.setattr(bounds, "_PAIRS", 500)
    X, y, Z, z = two_samples(160, 120, 3, 11, shift=1.0)
    if label_cost == inf:
        y, z = np.arange(160) % 2, np.arange(120) % 2
    ambiguity = Wasserstein(norm, label_cost)
    known = shift_distance(X, y, Z, z, ambiguity).value
    found = shift_distance(X, y, Z, z, ambiguity, max_exact=25)
    assert not found.exact
    assert known * 0.5 <= found.lower <= known * (1 + 1e-9)
    assert known * (1 - 1e-9) <= found.upper <= known * 1.5
    monkeypatch.setattr(bounds, "_MOST_PAIRS", 0)
    assert shift_distance(X, y, Z, z, ambiguity, max_exact=25).lower <= found.lower
    with pytest.raises(ValueError, match=r"Only bounds .* `upper` for a promise.*max_exact"):
        _ = found.value
    assert f"{found.lower:.6g} to {found.upper:.6g}" in repr(found)


def test_each_lower_bound_holds_where_it_is_tight():
    """Cases on a line, and a pure change of labels: the marginals tell all."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(60, 1)), rng.normal(size=(45, 1)) + 0.4
    one = np.zeros(60, int), np.zeros(45, int)
    known = shift_distance(X, one[0], Z, one[1], Wasserstein()).value
    found = shift_distance(X, one[0], Z, one[1], Wasserstein(), max_exact=10)
    assert found.lower == pytest.approx(known, rel=1e-9)
    y = np.arange(60) % 2
    flipped = np.where(np.arange(60) % 4 == 0, 1, y)
    ambiguity = Wasserstein(label_cost=1e-3)
    found = shift_distance(X, y, X, flipped, ambiguity, max_exact=5)
    assert found.lower == pytest.approx(0.25e-3, rel=1e-6)
    assert shift_distance(X, y, X, flipped, ambiguity).value == pytest.approx(0.25e-3, rel=1e-6)


# --- KL -------------------------------------------------------------------------------------------


def test_kl_is_the_entropy_of_weights_of_the_same_cases():
    X, y, *_ = two_samples(20, 20, 2, 1)
    rng = np.random.default_rng(0)
    a, q = rng.random(20), rng.random(20) * (rng.random(20) < 0.7)
    found = shift_distance(X, y, X, y, "kl", sample_weight_ref=a, sample_weight_new=q)
    a, q = a / a.sum(), q / q.sum()
    kept = q > 0
    assert found.value == pytest.approx(np.sum(q[kept] * np.log(q[kept] / a[kept])))
    assert shift_distance(X, y, X[::-1], y[::-1], KL()).value == 0.0
    # Half of the cases, each twice as heavy.
    assert shift_distance(X, y, X[:10], y[:10], KL()).value == pytest.approx(log(2))
    with pytest.raises(ValueError, match=r"2 distinct new cases .* infinite.*use Wasserstein"):
        shift_distance(X, y, np.vstack([X, X[:2] + 1.0]), [*y, 0, 1], KL())
    with pytest.raises(ValueError, match="1 distinct new cases"):
        shift_distance(X, y, X, np.r_[1 - y[0], y[1:]], KL())


# --- promises -------------------------------------------------------------------------------------


def fitted(ambiguity, X, y, kind="satisficing", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "dro":
            return DROClassifier(ambiguity=ambiguity, radius=0.05, **options).fit(X, y)
        return SatisficingClassifier(ambiguity=ambiguity, **options).fit(X, y)


@pytest.mark.parametrize(
    ("ambiguity", "options"),
    [
        (Wasserstein(label_cost=1.5), {}),
        (Wasserstein(1, 0.5, (1.0, 2.0, 0.5)), {"penalty": "l2", "class_weight": "balanced"}),
        (Wasserstein(inf, 4.0), {"loss": "smoothed_hinge"}),
        (Wasserstein(2, 1.0), {"kind": "dro"}),
        (Wasserstein(2, 1.0), {"radius": 3.0}),
    ],
)
def test_no_shift_breaks_the_promise_at_the_measured_distance(ambiguity, options):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(70, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=70) > 0.2).astype(int)
    model = fitted(ambiguity, X, y, **options)
    certificate = certify(model, X, y)
    for size in (0.0, 0.02, 0.3, 2.0):
        # The worst direction for the model, noise, and some labels turned over.
        worst = -size * np.sign(model.coef_) * (2 * y[:, None] - 1)
        Z = X + worst + size * rng.normal(size=X.shape)
        z = np.where(rng.random(70) < 0.2 * size, 1 - y, y)
        kept = rng.choice(70, 60, replace=False)
        for max_exact in (1000, 15):
            far = shift_distance(
                *(X, y, Z[kept], z[kept], certificate.ambiguity),
                sample_weight_ref=certificate.weights,
                max_exact=max_exact,
            )
            unweighted = {"class_weight": None} if "class_weight" in options else {}
            came = certify(model.set_params(**unweighted), Z[kept], z[kept]).attained_loss
            promise = certificate.at(far, came)
            assert promise.held
            assert came <= promise.worst_loss + 1e-9 <= promise.loss + 2e-9
            assert promise.distance == far.upper


def test_where_weights_come_from_does_not_matter():
    X, y, *_ = two_samples(40, 30, 3, 5)
    y = (X[:, 0] > 0).astype(int)
    certificate = fitted(Wasserstein.from_noise([0.1, 0.0, 0.3]), X, y).certificate_
    weights = certificate.ambiguity.feature_weight
    assert certificate.ambiguity.noise is not None

    def at(ambiguity):
        return certificate.at(shift_distance(X, y, X + 0.01, y, ambiguity)).distance

    assert at(Wasserstein(feature_weight=weights)) == at(certificate.ambiguity) > 0.0
    nearly = Wasserstein(feature_weight=(weights[0] * (1.0 + 1e-9), *weights[1:]))
    with pytest.raises(ValueError, match="one of other weights of the features than the certif"):
        at(nearly)
    for other in (Wasserstein(), Wasserstein(1, feature_weight=weights)):
        with pytest.raises(ValueError, match=r"The distance is one of W.*the certificate one of W"):
            at(other)


def test_a_promise_beside_what_came():
    X, y, Z, z = two_samples(60, 50, 3, 21, shift=0.1)
    y, z = (X[:, 0] > 0).astype(int), (Z[:, 0] > 0).astype(int)
    ambiguity = Wasserstein(label_cost=3.0)
    model = fitted(ambiguity, X, y)
    certificate = model.certificate_
    promise = certificate.at(0.01)
    assert promise.loss == certificate.violation_bound(0.01)
    assert promise.worst_loss == certificate.worst_loss(0.01)
    assert promise.guessing == pytest.approx(log(2))
    assert promise.held is None
    assert not promise.vacuous
    assert "loss that came" not in repr(promise)
    assert "at most; guessing" in repr(promise)
    assert certificate.at(0.01, promise.loss - 0.01).held
    broken = certificate.at(0.01, promise.loss + 0.01)
    assert not broken.held
    assert "above the promise" in repr(broken)
    assert certificate.at(100.0).vacuous
    assert "says nothing: guessing never loses more than 0.6931" in repr(certificate.at(100.0))
    heavy = np.r_[2.0, np.ones(59)]
    with pytest.raises(ValueError, match=r"sample_weight_ref=certificate\.weights"):
        certificate.at(shift_distance(X, y, Z, z, ambiguity, sample_weight_ref=heavy))
    with pytest.raises(ValueError, match=r"ambiguity=certificate\.ambiguity"):
        certificate.at(shift_distance(X, y, Z, z, Wasserstein(label_cost=2.0)))
    with pytest.raises(ValueError, match="from 59 samples, the certificate is one of 60"):
        certificate.at(shift_distance(X[1:], y[1:], Z, z, ambiguity))
    infinite = shift_distance(X, y, Z, np.r_[1 - z[0], z[1:]], Wasserstein())
    said = fitted(Wasserstein(), X, y).certificate_.at(infinite)
    assert said.loss == said.worst_loss == inf
    assert said.vacuous
    assert "nothing is promised that far" in repr(said)
    for wrong in (-1.0, None, [1, 2], "far", True, np.nan):
        with pytest.raises(ValueError, match="distance must be a number of zero or more, or what"):
            certificate.at(wrong)
    with pytest.raises(ValueError, match="came must be a number"):
        certificate.at(1.0, "low")


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"X_new": [[0.0]]}, "X_ref has 2 features and X_new has 1"),
        ({"y_new": [2, 0]}, r"labels that y_ref does not have: 2; those of y_ref are 0, 1"),
        ({"y_new": [0]}, "X_new has 2 samples but y_new has 1"),
        ({"X_ref": [[np.nan, 0.0]] * 3}, "NaN"),
        ({"sample_weight_new": [1.0, -1.0]}, "negative"),
        ({"max_exact": 0}, "max_exact must be a whole number of 1 or more"),
        ({"ambiguity": "tv"}, "ambiguity must be one of 'kl', 'wasserstein'"),
        ({"ambiguity": Wasserstein(feature_weight=(1.0,))}, "feature_weight has 1 entries"),
        ({"X_new": [[1e308, 0.0], [-1e308, 0.0]], "y_new": [0, 1]}, None),
    ],
)
def test_bad_input_is_refused_in_a_sentence(changes, said):
    given = {
        "X_ref": [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]],
        "y_ref": [0, 1, 1],
        "X_new": [[0.0, 1.0], [1.0, 2.0]],
        "y_new": [0, 1],
        "ambiguity": Wasserstein(label_cost=1.0),
        **changes,
    }
    if said is None:  # as far as floating point goes
        assert shift_distance(**given).value == pytest.approx(1e308, rel=0.5)
        return
    with pytest.raises(ValueError, match=said):
        shift_distance(**given)


def test_columns_must_be_the_same():
    pandas = pytest.importorskip("pandas")
    first = pandas.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    with pytest.raises(ValueError, match=r"columns 'b', 'a'; X_ref has 'a', 'b'"):
        shift_distance(first, [0, 1], first[["b", "a"]], [0, 1], Wasserstein())
