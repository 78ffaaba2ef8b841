"""Tables of costs with labels mean the same whatever the order of their rows and columns."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fragility as fr
from fragility.losses import CrossEntropy, Hinge, LipschitzLoss
from fragility.metrics import implied_threshold
from fragility.metrics.scorers import FragilityScorer

CLASSES = [["no", "yes"], ["low", "mid", "top"], [0, 1], [2, 3, 5], [False, True]]
each_kind_of_class = pytest.mark.parametrize("classes", CLASSES, ids=str)
TWO_CLASSES = [classes for classes in CLASSES if len(classes) == 2]

# Asymmetric, with zeros on the diagonal and rows that are cheapest there.
COSTS = {2: [[0.0, 1.0], [10.0, 0.0]], 3: [[0.0, 1.0, 2.0], [4.0, 0.0, 3.0], [9.0, 7.0, 0.0]]}
REVIEWERS = {
    2: [[0.9, 0.1], [0.3, 0.7]],
    3: [[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.2, 0.5]],
}


def cases(classes, n=150):
    """Labels of some classes and their probabilities, one column for each class."""
    rng = np.random.default_rng(0)
    scores = 1.5 * rng.normal(size=(n, len(classes)))
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    codes = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return np.array(classes)[codes], proba


def policy_figures(policy):
    return [policy.cost, policy.automation_rate, *policy.costs.matrix(len(policy.labels)).ravel()]


def by_best_policy(y, proba, table):
    return policy_figures(fr.best_policy(y, proba, error_cost=table, review_cost=0.5))


def by_report(y, proba, table):
    costs = fr.Costs(table, review_cost=0.5)
    report = fr.Report.from_predictions(y, proba, costs=costs, calibrate=False)
    return policy_figures(report.models[0].policy)


def by_reviewer_error(y, proba, table):
    policy = fr.best_policy(y, proba, error_cost=5.0, reviewer_error=table)
    return [policy.cost, *np.ravel(policy.costs.reviewer_error)]


def by_index(y, proba, table):
    return [fr.fragility_index(y, proba, pair_cost=table)]


def by_threshold(y, proba, table):
    return [implied_threshold(table, labels=np.unique(y))]


PLACES = {
    "error_cost of best_policy": (by_best_policy, COSTS),
    "costs of a report": (by_report, COSTS),
    "reviewer_error": (by_reviewer_error, REVIEWERS),
    "pair_cost": (by_index, COSTS),
    "implied_threshold": (by_threshold, COSTS),
}
each_place = pytest.mark.parametrize(("figures", "tables"), PLACES.values(), ids=PLACES)


def labelled(array, classes):
    return pd.DataFrame(array, index=classes, columns=classes)


@pytest.mark.parametrize(
    ("figures", "tables", "classes"),
    [
        pytest.param(*place, classes, id=f"{name}, {classes}")
        for name, place in PLACES.items()
        for classes in (TWO_CLASSES if name == "implied_threshold" else CLASSES)
    ],
)
def test_cost_table_is_aligned_by_label(figures, tables, classes):
    y, proba = cases(classes)
    array = np.array(tables[len(classes)])
    table = labelled(array, classes)
    expected = figures(y, proba, array)
    backwards, rotated = classes[::-1], classes[1:] + classes[:1]
    # Columns are taken by position: pandas reads a list of booleans as a mask.
    columns = [classes.index(label) for label in backwards]
    for permuted in (
        table,
        table.reindex(backwards),
        table.iloc[:, columns],
        table.reindex(rotated).iloc[:, columns],
    ):
        np.testing.assert_array_equal(figures(y, proba, permuted), expected)


@each_place
def test_order_of_an_array_matters(figures, tables):
    """Without it the test above would prove nothing; the index of two classes has one pair."""
    classes = CLASSES[1] if figures is by_index else CLASSES[0]
    y, proba = cases(classes)
    array = np.array(tables[len(classes)])
    assert figures(y, proba, array[::-1, ::-1]) != pytest.approx(figures(y, proba, array))


@each_place
@pytest.mark.parametrize("axis", ["rows", "columns"])
@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        (["no", "maybe"], "not a class: 'maybe'; missing: 'yes'"),
        (["no", "no"], "missing: 'yes'; repeated: 'no'"),
        (["no"], "missing: 'yes'"),
        (["no", "yes", "maybe"], "not a class: 'maybe'"),
        (["no", "yes", "yes"], "repeated: 'yes'"),
    ],
    ids=["unknown", "duplicate", "missing", "additional", "twice"],
)
def test_wrong_labels_are_refused(figures, tables, axis, labels, fault):
    y, proba = cases(["no", "yes"])
    shape = len(labels) if axis == "rows" else 2, len(labels) if axis == "columns" else 2
    other = ["no", "yes"]
    index, columns = (labels, other) if axis == "rows" else (other, labels)
    table = pd.DataFrame(np.ones(shape), index=index, columns=columns)
    name = {by_index: "pair_cost", by_reviewer_error: "reviewer_error"}.get(figures, "error_cost")
    with pytest.raises(ValueError, match=f"The {axis} of {name} are labelled") as caught:
        figures(y, proba, table)
    assert f"but the classes are 'no', 'yes' ({fault})" in str(caught.value)
    assert "plain array in the order of the classes" in str(caught.value)


def test_threshold_by_hand():
    # A miss costs nine false alarms: t = 1 / (1 + 9) for the second class by name, "sick".
    table = pd.DataFrame({"sick": [0, 1], "fine": [9, 0]}, index=["sick", "fine"])
    for same in (table, table.iloc[::-1], table.iloc[:, ::-1], table.iloc[::-1, ::-1]):
        assert implied_threshold(same) == pytest.approx(0.1)  # its sorted labels are the classes
    assert implied_threshold(table, pos_label="fine") == pytest.approx(0.9)
    assert implied_threshold(table, labels=["sick", "fine"]) == pytest.approx(0.9)
    assert implied_threshold([[0, 1], [9, 0]], labels=[0, 1], pos_label=0) == pytest.approx(0.9)
    assert implied_threshold(3.0, pos_label="fine") == 0.5
    # Without labels= the rows name the classes, and the columns must have the same labels.
    with pytest.raises(ValueError, match="columns of error_cost are labelled 'sick', 'well', but"):
        implied_threshold(table.set_axis(["sick", "well"], axis="columns"))
    with pytest.raises(ValueError, match=r"pos_label='fine' names a class.* give labels="):
        implied_threshold([[0, 1], [9, 0]], pos_label="fine")


@pytest.mark.parametrize("classes", TWO_CLASSES, ids=str)
def test_a_policy_does_not_depend_on_the_positive_class(classes):
    y, proba = cases(classes)
    table = labelled(COSTS[2], classes)
    for labels in (classes, classes[::-1]):
        columns = [classes.index(label) for label in labels]
        for positive in classes:
            policy = fr.best_policy(
                y,
                proba[:, columns],
                error_cost=table.iloc[::-1],
                review_cost=0.5,
                labels=labels,
                pos_label=positive,
            )
            array = np.array(COSTS[2])[np.ix_(columns, columns)]
            np.testing.assert_array_equal(policy.costs.error_cost, array)
            decided = policy.decide(proba[:, columns])
            expected = fr.best_policy(y, proba, error_cost=COSTS[2], review_cost=0.5).decide(proba)
            np.testing.assert_array_equal(decided.label, expected.label)
            np.testing.assert_array_equal(decided.automate, expected.automate)


class TestReviewersByClass:
    RATES = (0.05, 0.3)

    @pytest.mark.parametrize("classes", TWO_CLASSES, ids=str)
    def test_a_series_is_aligned_by_label(self, classes):
        y, proba = cases(classes)
        expected = by_reviewer_error(y, proba, list(self.RATES))
        series = pd.Series(self.RATES, index=classes)
        for given in (series, series.iloc[::-1]):
            assert by_reviewer_error(y, proba, given) == expected

    @pytest.mark.parametrize(
        ("labels", "fault"),
        [
            (["no", "maybe"], "not a class: 'maybe'; missing: 'yes'"),
            (["yes", "yes"], "missing: 'no'; repeated: 'yes'"),
            ([0, 1], "not a class: 0, 1; missing: 'no', 'yes'"),
        ],
    )
    def test_wrong_labels_are_refused(self, labels, fault):
        y, proba = cases(["no", "yes"])
        with pytest.raises(ValueError, match="The values of reviewer_error are labelled") as caught:
            by_reviewer_error(y, proba, pd.Series(self.RATES, index=labels))
        assert fault in str(caught.value)
        assert "or one value for each case" in str(caught.value)

    def test_a_series_by_case_is_by_row(self):
        y, proba = cases(["no", "yes"])
        errors = np.random.default_rng(1).random(y.size)
        series = pd.Series(errors, index=np.arange(y.size)[::-1])
        assert by_reviewer_error(y, proba, series) == by_reviewer_error(y, proba, errors)

    def test_answers(self):
        correct, p = [1, 0, 1, 1, 0, 1], [0.9, 0.6, 0.8, 0.7, 0.4, 0.95]
        costs = fr.Costs(5.0, reviewer_error=pd.Series({"right": 0.1, "wrong": 0.3}))
        report = fr.Report.from_outcomes(correct, p, costs=costs)
        assert report.costs.reviewer_error.tolist() == [0.3, 0.1]


def test_costs_by_case_are_by_row():
    y, proba = cases(["no", "yes"])
    amounts = np.random.default_rng(1).random(y.size)
    series = pd.Series(amounts, index=np.arange(y.size)[::-1])
    found, expected = (
        fr.best_policy(y, proba, error_cost=given, review_cost=0.1).cost
        for given in (series, amounts)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("classes", "labels"),
    [([0, 1], [1.0, 0.0]), ([0, 1], [True, False]), ([False, True], [np.int64(1), np.int64(0)])],
    ids=str,
)
def test_labels_compare_by_value(classes, labels):
    y, proba = cases(classes)
    table = pd.DataFrame([[0, 10], [1, 0]], index=labels, columns=labels)
    assert by_best_policy(y, proba, table) == by_best_policy(y, proba, COSTS[2])


@pytest.mark.parametrize(
    ("classes", "labels", "remedy"),
    [
        ([0, 1], ["0", "1"], "convert the labels from str to int"),
        (["0", "1"], [0, 1], "convert the labels from int to str"),
        ([False, True], ["False", "True"], "convert the labels from str to bool"),
    ],
)
def test_text_is_no_number(classes, labels, remedy):
    y, proba = cases(classes)
    with pytest.raises(ValueError, match=remedy):
        by_best_policy(y, proba, labelled(COSTS[2], labels))


@each_place
@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_a_frame_without_row_labels_is_refused(figures, tables, make):
    y, proba = cases(["no", "yes"])
    table = make({"no": [0.0, 10.0], "yes": [1.0, 0.0]})
    with pytest.raises(ValueError, match=r"is a data frame without row labels.* pandas DataFrame"):
        figures(y, proba, table)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["no", 1], r"mixes labels that cannot be ordered \('int', 'str'\)"),
        (["no", None], "has 1 missing labels"),
        ([0.5, 1.5], "holds numbers that are not class labels, such as 0.5"),
    ],
)
def test_an_index_that_names_no_classes(labels, message):
    with pytest.raises(ValueError, match=f"The index of error_cost {message}"):
        implied_threshold(labelled(COSTS[2], labels))


@pytest.mark.parametrize(
    "labels",
    [
        pd.MultiIndex.from_tuples([("site", "no"), ("site", "yes")]),
        pd.to_datetime(["2025-01-01", "2025-01-02"]),
        pd.Index(["no", pd.NA], dtype=object),
        pd.Index([0, None], dtype="Int64"),
    ],
    ids=["levels", "dates", "missing text", "missing number"],
)
def test_labels_that_are_no_classes_are_refused(labels):
    y, proba = cases(["no", "yes"])
    for table in (labelled(COSTS[2], labels), labelled(COSTS[2], ["no", "yes"]).set_axis(labels)):
        with pytest.raises(ValueError, match="The rows of error_cost are labelled"):
            by_best_policy(y, proba, table)


def test_an_index_of_several_levels_names_no_classes():
    levels = pd.MultiIndex.from_tuples([("site", "no"), ("site", "yes")])
    with pytest.raises(ValueError, match="The index of error_cost has 2 levels; give one"):
        implied_threshold(labelled(COSTS[2], levels))


@pytest.mark.parametrize("figure", [fr.wasserstein_pair_index, fr.wasserstein_pair_bound])
def test_norms_of_pairs_are_aligned_by_label(figure):
    classes = CLASSES[1]
    y, proba = cases(classes)
    norms = [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    table = labelled(norms, classes).reindex(index=classes[::-1], columns=classes[1:] + classes[:1])
    expected = figure(y, np.log(proba), pair_norms=norms)
    np.testing.assert_array_equal(figure(y, np.log(proba), pair_norms=table), expected)
    with pytest.raises(ValueError, match="The rows of pair_norms are labelled"):
        figure(y, np.log(proba), pair_norms=labelled(norms, ["low", "mid", "high"]))


@each_kind_of_class
def test_other_functions_that_take_costs(classes):
    y, proba = cases(classes)
    array = COSTS[len(classes)]
    table = labelled(array, classes).iloc[::-1]

    def costs_of(error_cost):
        rivals = proba, proba[:, ::-1]
        curve = fr.deferral_curve(y, proba, error_cost=error_cost, review_cost=0.5)
        compared = fr.compare_costs(y, *rivals, error_cost=error_cost, review_cost=0.5)
        return [*curve.cost, compared.a, compared.b]

    assert costs_of(table) == costs_of(array)
    model = fr.DeferralClassifier(LogisticRegression(), review_cost=0.5, random_state=0)
    policies = [
        model.set_params(error_cost=given).fit(np.log(proba), y).policy_ for given in (table, array)
    ]
    assert policy_figures(policies[0]) == policy_figures(policies[1])


@each_kind_of_class
def test_other_indices(classes):
    y, proba = cases(classes)
    array = COSTS[len(classes)]
    table = labelled(array, classes).iloc[::-1]

    def indices(pair_cost):
        options = {"pair_cost": pair_cost}
        compared = fr.compare_fragility(y, proba, proba[:, ::-1], **options)
        scorer = FragilityScorer(fr.fragility_index, -1, options, "predict_proba")
        model = LogisticRegression().fit(proba, y)
        return [
            fr.fragility_ratio(y, proba, **options),
            fr.measure_fragility(y, proba, **options).value,
            compared.a,
            compared.b,
            scorer(model, proba, y),
        ]

    assert indices(table) == indices(array)


@each_kind_of_class
def test_reports_of_frames(classes):
    y, proba = cases(classes)
    names = [f"p{j}" for j in range(len(classes))]
    frame = pd.DataFrame(proba, columns=names).assign(truth=y)
    table = labelled(COSTS[len(classes)], classes).iloc[::-1]
    found, expected = (
        fr.Report.from_source(
            frame,
            label="truth",
            scores={"model": names},
            costs={"error_cost": costs, "review_cost": 0.5},
            labels=classes,
            calibrate=False,
        )
        for costs in (table, COSTS[len(classes)])
    )
    assert policy_figures(found.models[0].policy) == policy_figures(expected.models[0].policy)
    assert found.to_dict()["costs"] == expected.to_dict()["costs"]


def test_costs_keep_their_table_until_the_classes_are_known():
    y, proba = cases(["no", "yes"])
    table = labelled(COSTS[2], ["no", "yes"]).iloc[::-1]
    costs = fr.Costs(table, 0.5)
    assert costs.error_cost is table
    report = fr.Report.from_predictions(y, proba, costs=costs)
    assert costs.error_cost is table
    assert report.costs.to_dict()["error_cost"] == COSTS[2]
    policy = report.models[0].policy
    assert fr.Policy.from_dict(policy.to_dict()).to_dict() == policy.to_dict()


class TestCostsOfConfusions:
    CLASSES = ("low", "mid", "top")
    ORDER = ("top", "low", "mid")

    def table(self):
        """The costs with rows and columns in two other orders."""
        table = labelled(COSTS[3], list(self.CLASSES))
        return table.reindex(index=list(self.ORDER), columns=list(self.CLASSES[::-1]))

    def test_their_labels_stay(self):
        found = fr.pair_cost_of(self.table())
        assert found.index.tolist() == found.columns.tolist() == list(self.CLASSES)
        np.testing.assert_array_equal(found.to_numpy(), fr.pair_cost_of(COSTS[3]))
        pd.testing.assert_frame_equal(found, fr.pair_cost_of(fr.Costs(self.table())))
        y, proba = cases(list(self.CLASSES))
        order = [self.CLASSES.index(label) for label in self.ORDER]
        values = [
            fr.fragility_index(y, proba, pair_cost=found),
            fr.fragility_index(y, proba[:, order], labels=self.ORDER, pair_cost=found),
        ]
        assert values == pytest.approx([fr.fragility_index(y, proba, pair_cost=COSTS[3])] * 2)

    @pytest.mark.parametrize("kind", [CrossEntropy, Hinge])
    def test_a_loss_is_aligned_when_a_model_is_fitted(self, kind):
        y, proba = cases(list(self.CLASSES))
        X, table = np.log(proba), self.table()
        model, expected = (
            fr.SatisficingClassifier(kind(pair_cost=costs), slack=0.2).fit(X, y)
            for costs in (table, COSTS[3])
        )
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert kind(pair_cost=table) == kind(pair_cost=COSTS[3])
        saved = pickle.loads(pickle.dumps(make_pipeline(model)))
        with pytest.raises(ValueError, match="'low', 'mid', 'top', but the classes are"):
            saved[-1].fit(X, np.char.upper(y))

    @pytest.mark.parametrize(
        "model",
        [
            fr.SatisficingClassifier(slack=0.2),
            fr.SatisficingClassifierCV(),
            fr.DROClassifier(radius=0.1),
            fr.ERMClassifier(),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_other_labels_are_refused_by_fits(self, model):
        y, proba = cases(list(self.CLASSES))
        loss = Hinge(pair_cost=labelled(COSTS[3], ["low", "mid", "high"]))
        message = "The rows of pair_cost are labelled 'high', 'low', 'mid', but the classes are"
        with pytest.raises(ValueError, match=message):
            model.set_params(loss=loss).fit(np.log(proba), y)

    @pytest.mark.parametrize("wrap", [lambda loss: loss, LipschitzLoss], ids=["loss", "bound"])
    def test_certificates(self, wrap):
        y, proba = cases(list(self.CLASSES))
        X = np.log(proba)
        model = LogisticRegression().fit(X, y)
        # A model of another library whose classes are not sorted.
        order = [self.CLASSES.index(label) for label in self.ORDER]
        model.coef_, model.intercept_ = model.coef_[order], model.intercept_[order]
        model.classes_ = np.array(self.ORDER)
        in_this_order = np.array(COSTS[3])[np.ix_(order, order)]
        found, expected = (
            fr.certify(model, X, y, target=9.0, loss=wrap(Hinge(pair_cost=costs)))
            for costs in (self.table(), in_this_order)
        )
        assert found.attained_loss == expected.attained_loss
        assert found.fragility == expected.fragility
        wrong = wrap(Hinge(pair_cost=labelled(COSTS[3], [1, 2, 3])))
        with pytest.raises(ValueError, match="The rows of pair_cost are labelled 1, 2, 3"):
            fr.certify(model, X, y, target=9.0, loss=wrong)
