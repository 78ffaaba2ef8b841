"""Programs that are solved together: the same as alone, whatever else is in the batch."""

from math import inf

import numpy as np
import pytest
from scipy import sparse

from fragility import KL, ERMClassifier, SatisficingClassifier, SatisficingClassifierCV, Wasserstein
from fragility.linear_model.base import TrainingData
from fragility.linear_model.training import Training
from fragility.losses import CrossEntropy, Hinge, SmoothedHinge
from fragility.programs.batched import Batched
from fragility.programs.objective import Objective
from fragility.programs.rows import training_rows
from fragility.programs.satisficing import RobustProgram
from fragility.programs.stack import Stack
from fragility.solvers import corners, interior_point, searching
from fragility.solvers.erm import erm
from fragility.solvers.interior_point import solve_together
from fragility.solvers.searching import result, side_by_side

AMBIGUITIES = [
    KL(),
    Wasserstein(),
    Wasserstein(norm=1),
    Wasserstein(norm=inf),
    Wasserstein(label_cost=1.5),
]


def samples(n, n_classes, seed, d=4, noise=0.15):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[y]
    wrong = rng.random(n) < noise
    return X, np.where(wrong, rng.integers(0, n_classes, n), y)


def training(model, X, y):
    weights = np.random.default_rng(y.size).uniform(0.5, 1.5, y.size)
    return Training.of(model, TrainingData(X, y, weights, np.unique(y)))


def search_of(model, X, y, slack):
    """Lowest loss, then least fragility: two programs, the second after the first."""
    one = training(model, X, y)
    references = yield from one.references(np.zeros(one.objective.size))
    wanted = {"target": None, "target_ratio": None, "slack": slack}
    target, solution = yield from one.solve(references, **wanted)
    point = one.objective.at(solution.parameters)
    return target.erm_loss, solution, point.value, one.in_user_units(solution).coef


@pytest.mark.slow
@pytest.mark.parametrize("ambiguity", AMBIGUITIES, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("loss", "penalty"), [("hinge", "l2"), ("hinge", None), ("max_logistic", "l1")]
)
def test_the_same_as_alone(ambiguity, n_classes, loss, penalty):
    """Rows of different numbers, strengths and targets; each is what it would be without others."""

    def every():
        for n, seed in ((60, 0), (47, 1), (60, 2)):
            for alpha, slack in ((1e-3, 0.1), (1e-2, 0.3)):
                model = SatisficingClassifier(loss, ambiguity, penalty=penalty, alpha=alpha)
                yield search_of(model, *samples(n, n_classes, seed), slack)

    together = result(side_by_side(every()))
    for search, (loss_together, solution, value, coef) in zip(every(), together, strict=True):
        loss_alone, alone, value_alone, coef_alone = result(search)
        assert loss_together == pytest.approx(loss_alone, rel=1e-8)
        assert solution.outcome is alone.outcome
        assert value == pytest.approx(value_alone, rel=1e-7)
        assert coef == pytest.approx(coef_alone, abs=2e-4 * np.abs(coef_alone).max())


def test_a_batch_of_any_order_and_company():
    """Which problems are with it, and in which order, changes a cost by rounding at most."""
    programs = []

    def recorded(asked):
        programs.extend(asked)
        return solve_together(asked)

    X, y = samples(80, 2, 3)
    model = SatisficingClassifier("hinge", penalty="l2", alpha=1e-3)
    search = side_by_side(search_of(model, X, y, slack) for slack in (0.05, 0.1, 0.2, 0.4))
    asked = next(search)
    try:
        while True:
            asked = search.send(recorded(asked))
    except StopIteration:
        pass
    first = solve_together(programs)
    second = solve_together(programs[::-1])[::-1]
    for one, other, program in zip(first, second, programs, strict=True):
        (alone,) = solve_together([program])
        for found in (other, alone):
            assert found.cost == pytest.approx(one.cost, rel=1e-8)
            assert found.converged
            assert one.converged


def test_batches_are_no_larger_than_memory_allows(monkeypatch):
    """In parts of one program each or all together: the same solutions, in their order."""
    X, y = samples(80, 2, 3)
    rows = training_rows(X, y, 2)
    objectives = [Objective(rows, Hinge(), alpha) for alpha in (1e-4, 1e-3, 1e-2, 1e-1)]

    def losses():
        start = np.zeros(objectives[0].size)
        found = side_by_side(erm(one, start, tol=1e-9, max_iter=1000) for one in objectives)
        return [one.loss for one in result(found)]

    together = losses()
    sizes = []
    solved = interior_point._solved

    def counted(programs):
        sizes.append(len(programs))
        return solved(programs)

    monkeypatch.setattr(interior_point, "_solved", counted)
    monkeypatch.setattr(interior_point.Tuning, "together", 2 * 2 * 80 + 1)
    assert losses() == pytest.approx(together, rel=1e-9)
    assert sizes == [2, 2]


def test_one_that_has_no_more_steps_leaves_the_others_alone():
    X, y = samples(80, 2, 4)
    rows = training_rows(X, y, 2)
    objectives = [Objective(rows, Hinge(), alpha) for alpha in (1e-3, 1e-2)]
    starts = np.zeros(objectives[0].size)
    short, full = result(
        side_by_side(
            erm(one, starts, tol=1e-9, max_iter=steps)
            for one, steps in zip(objectives, (3, 1000), strict=True)
        )
    )
    assert not short.converged
    assert full.converged
    assert full.loss == pytest.approx(
        result(erm(objectives[1], starts, tol=1e-9, max_iter=1000)).loss, rel=1e-9
    )


def test_an_error_in_one_search_ends_all():
    def fails():
        yield from ()
        raise ValueError("no such target")

    def goes_on():
        yield from ()

    with pytest.raises(ValueError, match="no such target"):
        result(side_by_side([goes_on(), fails()]))


def test_each_has_its_own_tolerance_radius_and_price_of_labels():
    """What programs of a kind may differ in, against programs that are alone."""
    X, y = samples(70, 2, 9)
    rows = training_rows(X, y, 2)
    objective = Objective(rows, Hinge(), 1e-3)
    start = objective.at(np.zeros(objective.size))

    def searches():
        for radius, cost, tol in ((0.05, 0.5, 1e-6), (0.3, 0.5, 1e-6), (0.05, 2.0, 1e-2)):
            program = RobustProgram(objective, Wasserstein(label_cost=cost), radius)
            yield corners.robust(program, start, tol=tol, max_iter=1000)

    together = result(side_by_side(searches()))
    alone = [result(search) for search in searches()]
    for one, other in zip(together, alone, strict=True):
        assert one.cost == pytest.approx(other.cost, rel=1e-8)
        assert one.k == pytest.approx(other.k, rel=1e-5)
    assert len({round(one.cost, 6) for one in alone}) == 3
    # A rough search ends earlier, whatever the others do.
    assert [one.iterations for one in together] == [one.iterations for one in alone]
    assert together[2].gap > 1e-8 > together[0].gap


def test_losses_of_one_type_and_other_parameters_are_apart():
    X, y = samples(60, 2, 10)
    rows = training_rows(X, y, 2)
    objectives = [Objective(rows, SmoothedHinge(width), lasso=0.01) for width in (0.2, 1.0)]
    start = np.zeros(objectives[0].size)
    limits = {"tol": 1e-9, "max_iter": 1000}
    together = result(side_by_side(erm(one, start, **limits) for one in objectives))
    for one, objective in zip(together, objectives, strict=True):
        assert one.loss == pytest.approx(result(erm(objective, start, **limits)).loss, rel=1e-9)
    assert abs(together[0].loss - together[1].loss) > 1e-2


def test_a_loss_of_the_users_need_not_be_hashable():
    class Own(CrossEntropy):
        __hash__ = None

    X, y = samples(60, 2, 11)
    own = SatisficingClassifier(Own(), penalty="l1", alpha=0.01, slack=0.1).fit(X, y)
    plain = SatisficingClassifier(penalty="l1", alpha=0.01, slack=0.1).fit(X, y)
    assert own.fragility_ == pytest.approx(plain.fragility_, rel=1e-9)


class TestBatched:
    class Pair(Batched):
        def __init__(self, a, b, inner=None):
            self.a, self.b, self.inner, self.shared = a, b, inner, (np.arange(7),)

    def pair(self, shift):
        inner = self.Pair(np.arange(3) + shift, np.ones((3, 2)) * shift)
        return self.Pair(np.arange(3.0) + shift, np.arange(6.0).reshape(3, 2) + shift, inner)

    def test_taken(self):
        some = self.pair(10).taken(np.array([True, False, True]))
        assert some.a.tolist() == [10, 12]
        assert some.b.tolist() == [[10, 11], [14, 15]]
        assert some.inner.a.tolist() == [10, 12]
        assert some.shared[0].size == 7

    def test_where(self):
        mixed = self.pair(10).where(np.array([True, False, True]), self.pair(100))
        assert mixed.a.tolist() == [10, 101, 12]
        assert mixed.b.tolist() == [[10, 11], [102, 103], [14, 15]]
        assert mixed.inner.a.tolist() == [10, 101, 12]
        assert mixed.inner.b[:, 0].tolist() == [10, 100, 10]


def test_a_step_of_no_length_ends_the_search():
    """Margins that rounding has left at the edge of what can be divided by."""
    X, y = samples(30, 2, 12)
    rows = training_rows(X, y, 2)
    objective = Objective(rows, Hinge(), 1e-2)
    asked = next(erm(objective, np.zeros(objective.size), tol=1e-9, max_iter=50))
    point = interior_point._Point(asked)
    point.parts[0].margin[0, 0, 0] = 1e-320
    with np.errstate(all="ignore"):
        _, found = point.next()
    assert not found.any()


def test_searches_that_ask_for_nothing():
    def nothing(value):
        yield from ()
        return value

    assert result(side_by_side(nothing(i) for i in range(3))) == [0, 1, 2]
    assert result(side_by_side([])) == []


@pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_validation_is_that_of_single_fits(loss, n_classes):
    """Fragilities in folds against fits to the same rows that know of nothing else."""
    X, y = samples(150, n_classes, 5)
    grid = {"alphas": (1e-3, 1e-2), "slacks": (0.1, 0.3)}
    folds = [(np.flatnonzero(np.arange(150) % 3 != f), np.arange(f, 150, 3)) for f in range(3)]
    model = SatisficingClassifierCV(loss, Wasserstein(norm=1), cv=folds, **grid).fit(X, y)
    for j, alpha in enumerate(grid["alphas"]):
        for i, slack in enumerate(grid["slacks"]):
            for f, (train, _) in enumerate(folds):
                one = SatisficingClassifier(
                    loss, Wasserstein(norm=1), penalty="l2", alpha=alpha, slack=slack
                ).fit(X[train], y[train])
                # Within the tolerance of folds, 1e-3.
                assert model.fragilities_[j, i, f] == pytest.approx(one.fragility_, rel=1e-4)


def test_programs_of_folds_are_solved_together(monkeypatch):
    """All penalties and targets of a fold in one call, and all folds after the first."""
    sizes = []

    def counted(programs):
        sizes.append(len(programs))
        return solve_together(programs)

    monkeypatch.setattr(searching, "solve_together", counted)
    X, y = samples(90, 2, 6)
    SatisficingClassifierCV("hinge", alphas=(1e-3, 1e-2), slacks=(0.1, 0.2), cv=3).fit(X, y)
    assert sizes == [2, 4, 4, 8, 1, 1]


class TestStack:
    def problems(self, n_classes, sparse_rows, with_one=True):
        for n, seed, alphas in ((20, 0, (0.1, 0.2)), (13, 1, (0.3,)), (20, 2, (0.1, 0.5))):
            X, y = samples(n, n_classes, seed)
            X = np.where(np.abs(X) < 0.5, 0.0, X)
            given = sparse.csr_array(X) if sparse_rows else X
            rows = training_rows(given, y, n_classes, fit_intercept=with_one)
            for alpha in alphas:
                yield Objective(rows, CrossEntropy(), alpha)

    @pytest.mark.parametrize("sparse_rows", [False, True])
    @pytest.mark.parametrize("with_one", [False, True])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_products(self, n_classes, sparse_rows, with_one):
        """Scores, sums and squares against loops over problems and samples."""
        objectives = list(self.problems(n_classes, sparse_rows, with_one))
        stack = Stack(objectives)
        rng = np.random.default_rng(0)
        theta = rng.normal(size=(5, objectives[0].size))
        scores, n = stack.scores(theta), stack.y.shape[1]
        slopes = rng.normal(size=scores.shape)
        outputs = scores.shape[1]
        first, second = np.tril_indices(outputs)
        weights = rng.uniform(size=(5, first.size, n))
        squares = stack.squares(lambda part: weights[..., part])
        collected = stack.collected(slopes)
        # The second of three sets of rows is shorter: samples of it come again, at a share.
        kept = stack.taken(np.array([0, 2, 4]))
        assert kept.scores(theta[[0, 2, 4]]) == pytest.approx(scores[[0, 2, 4]])
        for b, objective in enumerate(objectives):
            X = objective.rows.X.toarray() if sparse_rows else objective.rows.X
            which = np.resize(np.arange(len(X)), n)
            wide = np.c_[X, np.ones(len(X))] if with_one else X
            table = theta[b].reshape(outputs, -1)
            expected = np.zeros((outputs, wide.shape[1]))
            square = np.zeros((outputs, wide.shape[1], outputs, wide.shape[1]))
            for place, row in enumerate(which):
                assert scores[b, :, place] == pytest.approx(table @ wide[row])
                assert stack.y[b, place] == objective.rows.y[row]
                expected += np.outer(slopes[b, :, place], wide[row])
                for pair, (i, j) in enumerate(zip(first, second, strict=True)):
                    part = weights[b, pair, place] * np.outer(wide[row], wide[row])
                    square[i, :, j] += part
                    if i != j:
                        square[j, :, i] += part
            assert collected[b] == pytest.approx(expected.ravel())
            assert squares[b] == pytest.approx(square.reshape(squares[b].shape))
            total = np.bincount(which, stack.weights[b], len(X))
            assert total == pytest.approx(objective.rows.weights)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_lowest_losses_of_parts(n_classes):
    """Parts, penalties and strengths of a hinge side by side, against fits of their own."""
    X, y = samples(60, n_classes, 8)
    parts = [np.arange(60), np.arange(53), np.arange(0, 60, 2)]
    cases, searches = [], []
    for part in parts:
        data = TrainingData(X[part], y[part], None, np.arange(n_classes))
        for penalty in ("l1", "l2"):
            for alpha in (1e-4, 1e-2, 0.3):
                one = ERMClassifier("hinge", penalty, alpha, fit_intercept="priced", tol=1e-6)
                objective = data.objective(Hinge(), one._checked_penalty(), "priced", False)
                start = np.zeros(objective.size)
                searches.append(erm(objective, start, tol=1e-9, max_iter=1000))
                cases.append((one, part))
    for (one, part), found in zip(cases, result(side_by_side(searches)), strict=True):
        assert found.converged
        assert found.loss == pytest.approx(one.fit(X[part], y[part]).loss_, rel=1e-7)
