"""Costs of pairs of classes: losses, the index and policies against literal loops."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import fragility as fr
from fragility.losses import CrossEntropy, Hinge, Loss, MaxLogistic, SmoothedHinge
from fragility.programs.gram import lower_triangle
from fragility.programs.piecewise import Hold, piecewise_of

from .reference import losses as reference
from .reference.pairs import index_matrix

KINDS = [CrossEntropy, Hinge, MaxLogistic, SmoothedHinge]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
LITERAL = {
    CrossEntropy: reference.costly_cross_entropy,
    Hinge: reference.costly_hinge,
    MaxLogistic: reference.costly_max_logistic,
    SmoothedHinge: lambda *given: reference.costly_smoothed_hinge(*given, 1.0),
}


def costs_of(n_classes, seed=0, spread=1.0):
    table = np.exp(spread * np.random.default_rng(seed).normal(size=(n_classes, n_classes)))
    return table * (1.0 - np.eye(n_classes))


def problem(n_classes, seed=0, n=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return 2.0 * rng.normal(size=n if n_classes == 2 else (n, n_classes)), y


def rows_of(scores):
    return np.c_[np.zeros(len(scores)), scores] if scores.ndim == 1 else scores


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 5.0])
class TestLosses:
    def test_value(self, kind, n_classes, spread):
        scores, y = problem(n_classes)
        table = costs_of(n_classes, 1, spread)
        pairs = zip(rows_of(scores).tolist(), y, strict=True)
        expected = [LITERAL[kind](row, label, table) for row, label in pairs]
        found = kind(pair_cost=table).value(scores, y)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_derivatives(self, kind, n_classes, spread):
        scores, y = problem(n_classes, seed=1)
        loss, step = kind(pair_cost=costs_of(n_classes, 2, spread)), 1e-6
        here = loss.at(scores, y)
        scale = max(1.0, loss.steepness)
        for c in range(1 if n_classes == 2 else n_classes):
            column = (slice(None),) if n_classes == 2 else (slice(None), c)
            up, down = scores.copy(), scores.copy()
            up[column] += step
            down[column] -= step
            slope = (loss.value(up, y) - loss.value(down, y)) / (2 * step)
            assert here.gradient[column] == pytest.approx(slope, abs=1e-7 * scale)
            bend = (loss.gradient(up, y) - loss.gradient(down, y)) / (2 * step)
            there = here.curvature() if n_classes == 2 else here.curvature()[:, :, c]
            assert there == pytest.approx(bend, abs=1e-6 * scale**2)  # no sample is near a kink
        triangles = here.lower_curvature()
        if n_classes > 2:
            lower = lower_triangle(n_classes)
            np.testing.assert_allclose(triangles, here.curvature()[:, *lower], rtol=1e-13)

    def test_slopes_are_within_the_steepness_of_their_pair(self, kind, n_classes, spread):
        scores, y = problem(n_classes, seed=3)
        loss = kind(pair_cost=costs_of(n_classes, 3, spread))
        most = loss.pair_steepness(n_classes)
        for scale in (1.0, 100.0):
            gradient = loss.gradient(scale * scores, y)
            if n_classes == 2:
                assert (np.abs(gradient) <= most[y, 1 - y] * (1 + 1e-12)).all()
                continue
            wrong = np.where(np.arange(n_classes) == y[:, np.newaxis], 0.0, gradient)
            shares = wrong / np.where(most > 0.0, most, 1.0)[y]
            assert shares.min() >= 0.0
            assert shares.sum(axis=1).max() <= 1.0 + 1e-12

    def test_the_steepness_of_each_pair_is_reached_far_out(self, kind, n_classes, spread):
        loss = kind(pair_cost=costs_of(n_classes, 4, spread))
        for true, other in permutations(range(n_classes), 2):
            far = np.full((1, n_classes), -1e6)
            far[0, true], far[0, other] = 0.0, 1e6
            scores = far[:, 1] - far[:, 0] if n_classes == 2 else far
            slope = np.abs(loss.gradient(scores, np.array([true]))).max()
            assert slope == pytest.approx(loss.pair_steepness(n_classes)[true, other], rel=1e-12)
        assert loss.steepness == loss.pair_steepness(n_classes).max()

    def test_another_label(self, kind, n_classes, spread):
        scores, y = problem(n_classes, seed=5)
        loss = kind(pair_cost=costs_of(n_classes, 5, spread))
        table = np.stack([loss.value(scores, np.full(y.size, c)) for c in range(n_classes)], axis=1)
        own = table[np.arange(y.size), y].copy()
        table[np.arange(y.size), y] = -np.inf
        assert loss.relabelled(scores, y).tolist() == table.max(axis=1).tolist()
        spreads = np.ptp(rows_of(scores), axis=1)
        bounds = [loss.relabelling_bound(n_classes, one) for one in spreads]
        assert (loss.relabelled(scores, y) - own <= np.array(bounds) + 1e-12).all()

    def test_pieces(self, kind, n_classes, spread):
        """The largest piece is the loss; what interior points see has its derivatives."""
        scores, y = problem(n_classes, seed=6, n=30)
        loss, rng = kind(pair_cost=costs_of(n_classes, 6, spread)), np.random.default_rng(0)
        given = rows_of(scores).T[np.newaxis] if n_classes > 2 else scores[np.newaxis, np.newaxis]
        for labels_move in (False, True):
            pieces = piecewise_of(loss, y[np.newaxis], n_classes, labels_move)
            at = pieces.at(given)
            flipped = np.broadcast_to(at.flips, at.values.shape) > 0
            own = np.where(flipped, -np.inf, at.values).max(axis=1)[0]
            assert own == pytest.approx(loss.value(scores, y), rel=1e-12, abs=1e-15)
            if labels_move:
                others = np.where(flipped, at.values, -np.inf).max(axis=1)[0]
                worst = np.maximum(loss.relabelled(scores, y), own)
                assert np.maximum(others, own) == pytest.approx(worst, rel=1e-12)
            change, step = rng.normal(size=given.shape), 1e-6
            up, down = pieces.at(given + step * change), pieces.at(given - step * change)
            moved = (up.values - down.values) / (2 * step)
            assert at.forward(change) == pytest.approx(moved, abs=1e-7 * max(1, loss.steepness))
            weights = rng.uniform(size=at.values.shape)
            across = (weights * at.forward(change)).sum()
            assert (at.adjoint(weights) * change).sum() == pytest.approx(across, rel=1e-10)
            self._check_form(at, weights, given.shape[1])

    @staticmethod
    def _check_form(at, weights, outputs):
        n, every = weights.shape[2], slice(None)
        units = np.eye(outputs)[:, np.newaxis, :, np.newaxis] * np.ones((1, 1, 1, n))
        gradients = np.stack([at.forward(unit)[0] for unit in units], axis=1)  # (P, outputs, n)
        held = 0.3
        total = weights.sum(axis=1) + held
        mean = np.einsum("pn,pon->on", weights[0], gradients) / total
        away = gradients - mean
        expected = np.einsum("pn,pon,pqn->oqn", weights[0], away, away)
        expected += held * mean[:, np.newaxis] * mean[np.newaxis]
        # Without multipliers there is no curvature of the pieces themselves.
        hold = Hold(1.0 / total, held / total)
        form = at.form(weights, np.zeros_like(weights), hold, every)[0]
        first, second = lower_triangle(outputs)
        size = np.abs(expected).max()
        np.testing.assert_allclose(form, expected[first, second], rtol=1e-9, atol=1e-13 * size)


@each_kind
@pytest.mark.parametrize("n_classes", [2, 4])
def test_costs_of_one_change_nothing(kind, n_classes):
    scores, y = problem(n_classes)
    plain, costly = kind().at(scores, y), kind(pair_cost=1.0 - np.eye(n_classes)).at(scores, y)
    for name in ("value", "gradient"):
        np.testing.assert_allclose(getattr(costly, name), getattr(plain, name), rtol=1e-14)
    np.testing.assert_allclose(costly.curvature(), plain.curvature(), rtol=1e-13, atol=1e-16)


def test_costs_of_two_classes_are_true_by_taken_for():
    """To take a sick patient for a healthy one costs five, the other way round one."""
    loss = Hinge(pair_cost=[[0, 1], [5, 0]])
    healthy, sick = loss.value(np.array([0.0, 0.0]), np.array([0, 1]))
    assert (healthy, sick) == (1.0, 5.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_entropy_of_costs_that_differ_by_far(n_classes):
    table = np.where(np.eye(n_classes) > 0, 0.0, 1e-150)
    table[0, 1] = 1e150
    loss = CrossEntropy(pair_cost=table)
    scores, y = problem(n_classes)
    with np.errstate(all="raise", under="ignore"):
        for scale in (1e-300, 1.0, 1e3, 1e300):
            here = loss.at(scale * scores, y)
            assert np.isfinite(here.value).all()
            assert np.isfinite(here.gradient).all()
            assert np.isfinite(here.curvature()).all()
    # ln(1 + 1e150 e^g) is 150 ln 10 + g, all digits of it.
    gaps = rows_of(scores)[:, 1] - rows_of(scores)[:, 0]
    expected = 150 * np.log(10.0) + gaps[y == 0]
    np.testing.assert_allclose(loss.value(scores, y)[y == 0], expected, rtol=1e-14)


@each_kind
def test_they_are_values(kind):
    table = [[0, 2], [1, 0]]
    loss = kind(pair_cost=table)
    assert loss == kind(pair_cost=np.array(table, dtype=float)) != kind()
    assert len({loss, kind(pair_cost=((0, 2), (1, 0))), kind()}) == 2
    assert loss.pair_cost == ((0.0, 2.0), (1.0, 0.0))
    assert eval(repr(loss), {kind.__name__: kind}) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert "pair_cost" not in repr(kind())


@each_kind
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([1, 2], "one row and one column for each class"),
        ([[0, 1, 1], [1, 0, 1]], "one row and one column for each class"),
        ([[0]], "one row and one column"),
        (3.0, "one row and one column"),
        ([[0, 1], [-1, 0]], "zero or more"),
        ([[0, np.nan], [1, 0]], "finite"),
        ([[1, 2], [3, 1]], "zero on the diagonal"),
        ([[0, 0], [1, 0]], r"positive off the diagonal, but \[0\]\[1\] is 0"),
        ("costly", "must hold numbers"),
    ],
)
def test_tables_that_are_refused(kind, table, message):
    with pytest.raises(ValueError, match=message):
        kind(pair_cost=table)


def data(n_classes, seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.5]
    y = (X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize(
    "classifier",
    [
        fr.SatisficingClassifier(slack=0.2),
        fr.SatisficingClassifierCV(),
        fr.DROClassifier(radius=0.1),
        fr.ERMClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_table_of_another_number_of_classes(classifier):
    X, y = data(3)
    model = clone(classifier).set_params(loss=Hinge(pair_cost=[[0, 1], [2, 0]]))
    with pytest.raises(ValueError, match="a table of 2 classes, but there are 3"):
        model.fit(X, y)


def test_a_table_of_another_number_of_classes_is_not_certified():
    X, y = data(3)
    model = fr.ERMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="a table of 2 classes, but there are 3"):
        fr.certify(model, X, y, target=1.0, loss=CrossEntropy(pair_cost=[[0, 1], [2, 0]]))


@pytest.mark.slow
@each_kind
def test_scikit_learn(kind):
    X, y = data(3, n=160)
    losses = [kind(), kind(pair_cost=costs_of(3))]
    model = fr.SatisficingClassifier(slack=0.3)
    search = GridSearchCV(model, {"loss": losses}, cv=2).fit(X, y)
    assert search.best_params_["loss"] in losses
    assert clone(model.set_params(loss=losses[1])).loss == losses[1]


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_costs_scale_the_loss(kind, n_classes):
    """Losses of gaps, and with them the fragility, are in units of the costs."""
    X, y = data(n_classes)
    equal = 1.0 - np.eye(n_classes)
    one, plain = (
        fr.SatisficingClassifier(loss, "wasserstein", slack=0.2).fit(X, y)
        for loss in (kind(pair_cost=equal), kind())
    )
    assert one.fragility_ == pytest.approx(plain.fragility_, rel=1e-9)
    assert one.target_ == pytest.approx(plain.target_, rel=1e-9)
    if kind in (Hinge, MaxLogistic):
        seven = fr.SatisficingClassifier(kind(pair_cost=7.0 * equal), slack=0.2).fit(X, y)
        assert seven.fragility_ == pytest.approx(7.0 * plain.fragility_, rel=1e-6)
        assert seven.target_ == pytest.approx(7.0 * plain.target_, rel=1e-9)


def test_they_are_not_weights_of_samples():
    """The same lowest loss, but weights would change what a distance is measured from."""
    X, y = data(2)
    costs, weights = ((0.0, 1.0), (5.0, 0.0)), np.where(y == 1, 5.0, 1.0)
    costly = fr.ERMClassifier(Hinge(pair_cost=costs), penalty="l2", alpha=0.1 * weights.mean())
    weighted = fr.ERMClassifier(Hinge(), penalty="l2", alpha=0.1)
    costly.fit(X, y)
    weighted.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(costly.coef_, weighted.coef_, rtol=1e-3, atol=1e-5)
    target = 1.2 * costly.loss_
    one = fr.certify(costly, X, y, target=target, penalty=0.0)
    plain = {"target": target / weights.mean(), "loss": Hinge(), "penalty": 0.0}
    other = fr.certify(costly, X, y, **plain, sample_weight=weights)
    assert one.fragility == pytest.approx(5.0 * np.linalg.norm(costly.coef_), rel=1e-12)
    assert other.fragility == pytest.approx(np.linalg.norm(costly.coef_), rel=1e-12)


def test_a_loss_of_a_user_has_no_costs():
    class Own(CrossEntropy):
        pass

    assert Loss.pair_cost is None
    assert Own().pair_steepness(3).tolist() == np.ones((3, 3)).tolist()


def test_the_index_takes_the_same_table():
    """True class i taken for j weighs the error of samples of class i scored as class j."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    p = rng.dirichlet(np.ones(3), 200) + 0.5 * np.eye(3)[y]
    only = np.zeros((3, 3))
    only[0, 2] = 1.0  # a sample of class 0 that is taken for class 2
    pairs = index_matrix(y, p, 0.0)
    assert fr.fragility_index(y, p, pair_cost=only) == pytest.approx(pairs[2, 0], rel=1e-10)
    table = costs_of(3)
    expected = sum(table[i, j] * pairs[j, i] for i, j in permutations(range(3), 2)) / sum(
        table[i, j] for i, j in permutations(range(3), 2)
    )
    assert fr.fragility_index(y, p, pair_cost=table) == pytest.approx(expected, rel=1e-10)
    result = fr.measure_fragility(y, p, pair_cost=table)
    assert result.value == pytest.approx(expected, rel=1e-10)
    assert result.pairs[2, 0] == pytest.approx(pairs[2, 0], rel=1e-10)


class TestFromAPolicy:
    MATRIX = ((0.0, 2.0, 4.0), (9.0, 1.0, 1.5), (3.0, 3.0, 2.0))

    def test_regrets_of_mean_one(self):
        regrets = np.array([[c - row[i] for c in row] for i, row in enumerate(self.MATRIX)])
        found = np.array(fr.pair_cost_of(self.MATRIX))
        np.testing.assert_allclose(found, regrets / (regrets.sum() / 6), rtol=1e-15)
        assert fr.pair_cost_of(fr.Costs(self.MATRIX)) == fr.pair_cost_of(self.MATRIX)
        # In another currency, and where each class costs something whatever is decided.
        other = 7.5 * np.array(self.MATRIX) + np.array([[1.0], [20.0], [3.0]])
        np.testing.assert_allclose(fr.pair_cost_of(other), found, rtol=1e-12)

    def test_one_matrix_for_all(self):
        table = fr.pair_cost_of(self.MATRIX)
        X, y = data(3, n=150)
        model = fr.SatisficingClassifier(Hinge(pair_cost=table), slack=0.2).fit(X, y)
        p = model.predict_proba(X)
        assert fr.fragility_index(y, p, pair_cost=table) > 0.0
        policy = fr.best_policy(y, p, error_cost=self.MATRIX, review_cost=1.0)
        assert np.isfinite(policy.cost)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (5.0, "must be a matrix"),
            ([1.0, 2.0], "must be a matrix"),
            ([[0, 1, 2], [1, 0, 2]], "give one number, a matrix of shape"),
            ([[1, 0], [2, 0]], "cheaper than being right"),
            ([[2, 2], [1, 1]], "no error that costs more"),
        ],
    )
    def test_what_is_refused(self, given, message):
        with pytest.raises(ValueError, match=message):
            fr.pair_cost_of(given)

    def test_a_confusion_that_costs_nothing_is_for_the_index_alone(self):
        table = fr.pair_cost_of([[0, 0, 1], [1, 0, 1], [1, 1, 0]])
        assert table[0][1] == 0.0
        with pytest.raises(ValueError, match="small cost"):
            Hinge(pair_cost=table)
