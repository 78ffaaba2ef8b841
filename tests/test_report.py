"""The report: its figures are those of the functions, and it says the same in every form."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from math import inf, isnan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fragility as fr
from fragility.calibration import cross_fitted_calibration
from fragility.deferral import Costs
from fragility.report.comparing import holm
from fragility.report.files import report_on_file
from fragility.scores.folds import dealt
from fragility.tables import PredictionFile, open_table
from tests.confident_models import classes_drawn, logistic
from tests.reference import calibration

RNG = np.random.default_rng(0)
LOGIT = 2 * RNG.normal(size=300)
SICK = RNG.random(300) < logistic(LOGIT)
FAIR, BOLD = logistic(LOGIT), logistic(3 * LOGIT)
WEIGHTS = RNG.integers(0, 4, 300).astype(float)
SEX = RNG.choice(["f", "m"], 300)


CODES, PROBABILITIES = classes_drawn(RNG, 400)
ANIMALS = np.array(["cat", "dog", "owl"])[CODES]


def figures_by_functions(y, p, weights):
    """Every figure of the table by the public functions and scikit-learn's."""
    found = fr.measure_fragility(y, p, sample_weight=weights)
    options = {"sample_weight": weights}
    several = np.ndim(p) == 2
    auc = roc_auc_score(y, p, multi_class="ovo") if several else roc_auc_score(y, p, **options)
    if several:
        truth = np.unique(y)[None, :] == np.asarray(y)[:, None]
        brier = np.average(((p - truth) ** 2).sum(axis=1), weights=weights)
    else:
        brier = brier_score_loss(y, p, **options)
    return {
        "fragility_index": found.value,
        "ratio": found.ratio,
        "auc": auc,
        "log_loss": log_loss(y, p, **options),
        "brier": brier,
        "calibration_error": fr.equal_mass_calibration_error(y, p, **options),
        "buffered_auc": fr.buffered_auc_score(y, p, **options),
        "cvar": fr.ranking_error_cvar(y, p, **options),
        "confident_error_rate": fr.confident_error_rate(y, p, **options),
        "aurc": fr.area_under_risk_coverage(y, p, **options),
    }


def carrying(weights):
    return slice(None) if weights is None else weights > 0


@pytest.mark.parametrize(
    ("y", "p", "weights"),
    [
        (SICK, FAIR, None),
        (SICK, BOLD, WEIGHTS),
        (ANIMALS, PROBABILITIES, None),
        (SICK, np.round(FAIR, 1), None),
    ],
    ids=["two classes", "weights", "three classes", "ties"],
)
def test_figures_are_those_of_the_functions(y, p, weights):
    report = fr.Report.from_predictions(y, {"m": p}, sample_weight=weights)
    (model,) = report.models
    for name, expected in figures_by_functions(y, p, weights).items():
        assert model.raw.figures[name].value == pytest.approx(expected, rel=1e-12, abs=1e-15), name
    if p.ndim == 2:
        after = cross_fitted_calibration(y, p, sample_weight=weights)
        figures = figures_by_functions(y, after, weights)
    else:
        # Bins are dealt to folds: each of its cases, or a share of it, is under the map of a fold.
        made, method = calibration.binned(
            p[carrying(weights)],
            y[carrying(weights)],
            np.ones(300) if weights is None else weights[weights > 0],
            lambda units, code, split: dealt(units, 5, [code, split, 0]),
        )
        assert model.calibration.method == method
        given = (y, p, weights) if method == "identity" else made
        figures = figures_by_functions(*given)
    for name, expected in figures.items():
        found = model.calibrated.figures[name].value
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-14), name
    interval = fr.measure_fragility(y, p, sample_weight=weights).interval()
    assert model.raw.figures["fragility_index"].interval == interval


def test_costs_are_those_of_best_policy():
    costs = {"error_cost": 12.0, "review_cost": 2.0, "capacity": 0.7, "reviewer_error": 0.05}
    report = fr.Report.from_predictions(SICK, {"m": BOLD}, costs=costs)
    found, expected = report.models[0].policy, fr.best_policy(SICK, BOLD, **costs)
    for name in ("cost", "cost_interval", "error_rate", "misses", "false_alarms"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("cost_without_review", "cost_review_all"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12)
    assert found.cost == report.models[0].raw.figures["cost"].value
    assert found.lower == pytest.approx(expected.lower, abs=1e-3)
    assert found.upper == pytest.approx(expected.upper, abs=1e-3)
    same = fr.Report.from_predictions(SICK, {"m": BOLD}, costs=Costs(**costs))
    assert same.to_json() == report.to_json()


def test_costs_by_case_and_by_matrix():
    by_case, tuned = np.where(SICK, 20.0, 5.0), {"rule": "tuned"}
    report, matrix = (
        fr.Report.from_predictions(SICK, {"m": BOLD}, costs={"error_cost": cost}, policy=tuned)
        for cost in (by_case, [[0, 5], [20, 0]])
    )
    assert report.models[0].policy.cost == pytest.approx(matrix.models[0].policy.cost, rel=1e-12)
    assert report.to_dict()["costs"]["error_cost"] == "one for each case"
    assert matrix.to_dict()["costs"]["error_cost"] == [[0, 5], [20, 0]]


@pytest.mark.parametrize(
    ("policy", "costs", "message"),
    [
        ({"rule": "best"}, {"error_cost": 5}, "rule must be one of"),
        ({"maximum": 1}, {"error_cost": 5}, "policy has 'maximum'"),
        ({"rule": "tuned"}, None, "says nothing without costs"),
        ({"guarantee": 0.9}, {"error_cost": 5}, "no limit to guarantee"),
    ],
)
def test_policies_that_make_no_sense_are_refused(policy, costs, message):
    with pytest.raises(ValueError, match=message):
        fr.Report.from_predictions(SICK, {"m": BOLD}, costs=costs, policy=policy)


def test_comparisons_are_paired_tests_and_allow_for_their_number():
    noise = 0.2 * np.random.default_rng(1).normal(size=300)
    models = {"fair": FAIR, "bold": BOLD, "odd": np.clip(FAIR + noise, 0, 1)}
    report = fr.Report.from_predictions(SICK, models)
    assert [(pair.a, pair.b) for pair in report.comparisons] == [
        ("fair", "bold"),
        ("fair", "odd"),
        ("bold", "odd"),
    ]
    plain = []
    for pair in report.comparisons:
        expected = fr.compare_fragility(SICK, models[pair.a], models[pair.b])
        assert pair.raw.index.p_value == pytest.approx(expected.p_value, rel=1e-10)
        for name in ("a", "b", "difference", "standard_error", "interval", "p_value"):
            ours, theirs = getattr(pair.raw.ratio, name), getattr(expected.ratio, name)
            assert ours == pytest.approx(theirs, rel=1e-10)
        plain.append(expected.p_value)
    # Tests before and after calibration stand side by side: they count together.
    plain += [pair.calibrated.index.p_value for pair in report.comparisons]
    adjusted = [pair.raw.p_value for pair in report.comparisons]
    adjusted += [pair.calibrated.p_value for pair in report.comparisons]
    assert adjusted == pytest.approx(holm(plain), rel=1e-10)
    others = [
        test
        for kind in ("raw", "calibrated")
        for pair in report.comparisons
        for test in [getattr(pair, kind)]
    ]
    names = [name for name in others[0].tests if name != "fragility_index"]
    found = [test.adjusted[name] for test in others for name in names]
    expected = holm([test.tests[name].p_value for test in others for name in names])
    assert found == pytest.approx(expected, rel=1e-10, nan_ok=True)
    assert others[0].n_tests["auc"] == sum(not isnan(p) for p in found)
    assert others[0].n_tests["fragility_index"] == 6


def test_holm():
    # By hand: 0.01·4, then max(·, 0.02·3), max(·, 0.03·2), 0.9.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    found = holm([0.02, float("nan"), 0.5])
    assert found[0] == pytest.approx(0.04)
    assert isnan(found[1])
    assert holm([]) == []


def test_groups():
    groups = SEX.astype(object)
    groups[:2] = "x"
    y = SICK.copy()
    y[:2] = True
    report = fr.Report.from_predictions(y, {"m": FAIR}, groups=groups)
    by_name = {part.group: part for part in report.groups}
    for name in ("f", "m"):
        rows = groups == name
        expected = fr.measure_fragility(y[rows], FAIR[rows])
        assert by_name[name].index.value == expected.value
        assert by_name[name].index.interval == expected.interval(1.0 - 0.05 / 3)
        assert by_name[name].figures["ratio"].value == expected.ratio
    assert by_name["x"].index is None
    assert by_name["x"].reason == "all of its cases are True"
    for text in (str(report), report.to_markdown(), report.to_html()):
        assert "undefined: all of its cases are True" in text


def test_groups_of_a_file_beyond_hold_are_those_in_memory(tmp_path):
    pq.write_table(pa.table({"y": SICK, "p": FAIR, "sex": SEX}), tmp_path / "p.parquet")
    table = open_table(tmp_path / "p.parquet")
    file = PredictionFile(table, label="y", models={"p": ["p"]}, groups=["sex"])
    streamed = report_on_file(file, hold=0, calibrate=False).groups
    exact = report_on_file(file, hold=np.inf, calibrate=False).groups
    for found, expected in zip(streamed, exact, strict=True):
        assert (found.group, found.n) == (expected.group, expected.n)
        assert found.index.value == pytest.approx(expected.index.value, rel=1e-12)
        limits = list(expected.index.interval)
        assert list(found.index.interval) == pytest.approx(limits, rel=1e-6)


def test_worst_cases_are_those_of_the_attribution():
    names = [f"patient {k}" for k in range(300)]
    report = fr.Report.from_predictions(SICK, {"m": BOLD}, cases=names, groups=SEX, n_worst=4)
    worst = report.models[0].worst
    assert sorted(case.kind for case in worst) == ["false alarm"] * 2 + ["miss"] * 2
    found = {part.index: part for part in fr.measure_fragility(SICK, BOLD).attribution(300)}
    for case in worst:
        expected = found[case.row]
        assert (case.row, case.true, case.score) == (expected.index, expected.label, expected.score)
        assert case.case == f"patient {expected.index}"
        assert case.predicted == bool(BOLD[expected.index] > 0.5)
        assert case.confidence == max(BOLD[expected.index], 1 - BOLD[expected.index])
        assert case.group == SEX[expected.index]
    assert "patient" in report.to_html()
    without = fr.Report.from_predictions(SICK, {"m": BOLD}, cases=names, n_worst=0)
    for text in (str(without), without.to_markdown(), without.to_html(), without.to_json()):
        assert "patient" not in text
    assert "no single case" in without.to_html()


def test_extra_metrics_get_what_was_given():
    def accuracy(y, proba, sample_weight=None):
        assert proba.shape == (300, 2)
        return accuracy_score(y, proba[:, 1] > 0.5, sample_weight=sample_weight)

    both = np.column_stack([1 - FAIR, FAIR])
    report = fr.Report.from_predictions(
        SICK, {"m": both}, extra_metrics={"accuracy": accuracy}, sample_weight=WEIGHTS
    )
    found = report.models[0].raw.figures["accuracy"].value
    assert found == accuracy_score(SICK, FAIR > 0.5, sample_weight=WEIGHTS)
    method = report.models[0].calibration.method
    after = cross_fitted_calibration(SICK, FAIR, sample_weight=WEIGHTS, method=method)
    assert report.models[0].calibrated.figures["accuracy"].value == accuracy_score(
        SICK, after > 0.5, sample_weight=WEIGHTS
    )
    assert "accuracy, calibrated" in str(report)


def test_from_estimators_names_and_scores():
    X = np.column_stack([LOGIT, np.random.default_rng(2).normal(size=300)])
    models = [
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, SICK),
        RandomForestClassifier(20, random_state=0).fit(X, SICK),
        LogisticRegression(C=0.01).fit(X, SICK),
    ]
    report = fr.Report.from_estimators(models, X, SICK)
    assert [model.name for model in report.models] == [
        "LogisticRegression",
        "RandomForestClassifier",
        "LogisticRegression 2",
    ]
    expected = fr.fragility_index(SICK, models[2].predict_proba(X)[:, 1])
    assert report.models[2].raw.figures["fragility_index"].value == expected
    named = fr.Report.from_estimators({"forest": models[1]}, X, SICK)
    assert named.models[0].name == "forest"
    single = fr.Report.from_estimators(models[2], X, SICK)
    assert single.models[0].raw.figures["fragility_index"].value == expected
    with pytest.raises(ValueError, match="has no predict_proba"):
        fr.Report.from_estimators({"ridge": RidgeClassifier().fit(X, SICK)}, X, SICK)
    other = LogisticRegression().fit(X, np.where(SICK, "a", "b"))
    with pytest.raises(ValueError, match="models are compared on the same classes"):
        fr.Report.from_estimators([models[0], other], X, SICK)


def odd_report():
    """Infinite and undefined figures, odd names, groups, costs, several models."""
    hostile = '<script>alert("1")</script>|*_`\n'
    return fr.Report.from_predictions(
        SICK,
        {hostile: 1 - FAIR, "constant": np.full(300, 0.4), "fair": FAIR},
        groups=np.where(SEX == "f", "<b>f</b>", "m"),
        costs={"error_cost": 10},
        cases=["</td>"] * 300,
    )


def test_json_is_strict_and_complete():
    def refuse(constant):
        raise AssertionError(constant)

    report = odd_report()
    content = json.loads(report.to_json(), parse_constant=refuse)
    first, constant, fair = content["models"]
    assert first["raw"]["figures"]["fragility_index"]["value"] == "Infinity"
    assert constant["raw"]["figures"]["ratio"]["value"] is None
    assert fair["raw"]["figures"]["fragility_index"]["value"] == fr.fragility_index(SICK, FAIR)
    assert fair["raw"]["figures"]["fragility_index"]["exact"] is True
    assert [f["text"] for f in content["findings"]] == [f.text for f in report.findings]
    assert content["n_samples"] == 300
    assert "\n" not in report.to_json(indent=None)


def test_pages_and_markdown_show_odd_names_as_text():
    report = odd_report()
    page = report.to_html()
    assert page.count("<script") == 2  # the data and the script of the page
    assert "&lt;script&gt;" in page
    assert "<b>f</b>" not in page
    assert not re.search("https?:", page)  # nothing to load from anywhere
    text = report.to_markdown()
    assert "<script" not in text.replace("\\<script", "")
    heads = [line for line in text.splitlines() if line.startswith("|  |")]
    assert heads[0].replace("\\|", "").count("|") == 5  # a name cannot add a column


def test_tables_of_the_libraries_agree():
    report = odd_report()
    pandas, polars, arrow = report.to_frame(), report.to_polars(), report.to_arrow()
    assert pandas.shape == polars.shape == arrow.shape
    assert len(pandas) == 3 * (11 + 10)  # models; figures before and after calibration
    row = pandas[
        (pandas.model == "fair") & ~pandas.calibrated & (pandas.figure == "fragility_index")
    ].iloc[0]
    low, high = fr.measure_fragility(SICK, FAIR).interval()
    assert (row.value, row.low, row.high) == (fr.fragility_index(SICK, FAIR), low, high)
    assert arrow.column("value").to_pylist()[0] == inf
    assert polars["model"].to_list() == pandas.model.tolist()


def test_metrics_for_experiment_trackers():
    report = fr.Report.from_predictions(SICK, {"a|b": FAIR, "a*b": BOLD}, calibrate=False)
    metrics = report.to_metrics()
    assert metrics["a_b/fragility_index"] == fr.fragility_index(SICK, FAIR)
    assert metrics["a_b/fragility_index 2"] == fr.fragility_index(SICK, BOLD)
    assert all(isinstance(value, float) for value in metrics.values())


def test_a_page_is_written_whole(tmp_path):
    report = fr.Report.from_predictions(SICK, {"fair": FAIR})
    path = tmp_path / "page.html"
    assert report.to_html(path) == path.read_text()
    notebook = report._repr_html_()  # in a frame, whose styles and names are its own
    assert unescape(re.search('srcdoc="([^"]*)"', notebook)[1]) == path.read_text()
    with pytest.raises(OSError, match="nowhere"):
        report.to_html(tmp_path / "nowhere" / "page.html")


def test_without_jinja2_a_notebook_shows_text(monkeypatch):
    from fragility.report import page

    page.environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report = fr.Report.from_predictions(SICK, {"fair": FAIR}, calibrate=False)
    with pytest.raises(ImportError, match=r"fragility\[report\]"):
        report.to_html()
    assert report._repr_html_() is None


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_without_a_library_its_table_names_it(monkeypatch, library):
    report = fr.Report.from_predictions(SICK, {"fair": FAIR}, calibrate=False)
    monkeypatch.setitem(sys.modules, library, None)
    method = {"pandas": "to_frame", "polars": "to_polars", "pyarrow": "to_arrow"}[library]
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(report, method)()


def test_order_of_cases_and_names_of_classes_do_not_matter():
    order = np.random.default_rng(3).permutation(300)
    models = {"fair": FAIR, "bold": BOLD}
    one = fr.Report.from_predictions(SICK, models, calibrate=False)
    other = fr.Report.from_predictions(
        np.where(SICK, "yes", "no")[order],
        {name: p[order] for name, p in models.items()},
        calibrate=False,
    )
    for a, b in zip(one.models, other.models, strict=True):
        for name, figure in a.raw.figures.items():
            assert b.raw.figures[name].value == pytest.approx(figure.value, rel=1e-11, abs=1e-14)


def test_a_comparison_without_a_test_says_why():
    few = fr.Report.from_predictions(
        [0, 0, 0, 1], {"a": [0.1, 0.2, 0.8, 0.7], "b": [0.1, 0.2, 0.9, 0.6]}
    )
    assert "no test: a class has one case" in str(few)
    perfect = fr.Report.from_predictions(
        [0, 0, 1, 1], {"a": [0.1, 0.2, 0.8, 0.9], "b": [0.1, 0.6, 0.5, 0.9]}
    )
    assert "no test: an index is 0 or ∞" in str(perfect)


def test_what_cannot_be_calibrated_is_said():
    report = fr.Report.from_predictions([0, 0, 0, 1], {"m": [0.1, 0.2, 0.3, 0.7]})
    assert report.models[0].calibrated is None
    assert report.notes == ("No figures after calibration: class 1 has a single sample.",)
    assert "calibrated" not in str(report).replace(report.notes[0], "")
    absent = fr.Report.from_predictions(
        ANIMALS,
        {"m": np.column_stack([PROBABILITIES, np.zeros(400)])},
        labels=["cat", "dog", "owl", "yak"],
    )
    assert absent.notes == ("No case of 'yak': the pairs with these classes are left out.",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": {}}, "models is empty"),
        ({"models": {3: FAIR}}, "named by text"),
        ({"models": {"m": FAIR[:5]}}, "Model 'm': y_true has 300 samples"),
        ({"models": {"m": LOGIT}}, "Model 'm': .* must hold probabilities"),
        ({"costs": {"error": 3}}, "costs has 'error'; it may have 'error_cost'"),
        ({"costs": {"review_cost": 3}}, "costs lacks 'error_cost'"),
        ({"costs": 10}, "costs must be a mapping"),
        ({"costs": {"error_cost": -1}}, "error_cost must be zero or more"),
        ({"groups": ["a"]}, "groups has 1 entries for 300"),
        ({"groups": [None] + ["a"] * 299}, "groups has 1 missing"),
        ({"cases": ["a"]}, "cases has 1 entries for 300"),
        ({"extra_metrics": {"auc": len}}, "figures that are there: 'auc'"),
        ({"extra_metrics": {"x": 3}}, "must hold functions"),
        ({"extra_metrics": {"x": lambda y, p: "high"}}, "must return one number"),
        (
            {"extra_metrics": {"x": lambda y, p: 1.0}, "sample_weight": WEIGHTS},
            "takes no sample_weight",
        ),
        ({"n_worst": -1}, "n_worst must be a whole number of 0 or more"),
        ({"confidence": 2}, "confidence must lie between 0 and 1"),
    ],
)
def test_bad_input(options, message):
    options = {"models": {"m": FAIR}, **options}
    with pytest.raises(ValueError, match=message):
        fr.Report.from_predictions(SICK, options.pop("models"), **options)


def test_a_frame_of_models_is_no_model():
    import pandas as pd

    with pytest.raises(ValueError, match="models is a data frame"):
        fr.Report.from_predictions(SICK, pd.DataFrame({"a": FAIR}))
    bare = fr.Report.from_predictions(SICK, FAIR)
    assert bare.models[0].name == "model"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_every_library_are_taken(library):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    column = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}[library]
    truth = np.where(SICK, "yes", "no")
    report = fr.Report.from_predictions(
        column(truth), {"m": column(FAIR)}, groups=column(SEX), calibrate=False
    )
    expected = fr.Report.from_predictions(truth, {"m": FAIR}, groups=SEX, calibrate=False)
    assert report.to_json() == expected.to_json()


def test_pairs_of_classes_are_shown_in_every_form():
    report = fr.Report.from_predictions(ANIMALS, {"net": PROBABILITIES})
    matrix = fr.measure_fragility(ANIMALS, PROBABILITIES).pairs
    np.testing.assert_array_equal(report.models[0].raw.pairs, matrix)
    assert (
        f"| scored as cat | – | {matrix[0, 1]:.3f} | {matrix[0, 2]:.3f} |" in report.to_markdown()
    )
    cells = "".join(f"<td>{value:.3f}</td>" for value in matrix[2, :2])
    assert f'<th scope="row">scored as owl</th>{cells}<td>–</td>' in report.to_html()


def test_bounded_figures_are_marked():
    from fragility import Interval
    from fragility.measured import Measured
    from fragility.report import words

    assert words.measured(Measured(0.5)) == "0.500"
    assert words.measured(Measured(0.5, bounds=Interval(0.4999, 0.5001))) == "0.500 ± 1e−04"
    assert words.measured(Measured(0.5, Interval(0.4, 0.6))) == "0.500 (0.400 to 0.600)"
    assert words.measured(Measured(0.15632, Interval(0.1563, 0.1564))) == (
        "0.15632 (0.15630 to 0.15640)"
    )


def test_one_class_only():
    with pytest.raises(ValueError, match="Only one class has samples"):
        fr.Report.from_predictions([0, 0], {"m": [0.1, 0.2]}, labels=[0, 1])


def test_confident_cases_with_weights_of_very_different_size():
    y, p = [0, 1, 0, 1, 0, 1], [0.05, 0.95, 0.4, 0.6, 0.1, 0.7]
    weights = [1e-29, 1e-29, 1.0, 1.0, 1.0, 1.0]
    report = fr.Report.from_predictions(y, {"a": p}, sample_weight=weights, calibrate=False)
    assert report.models[0].raw.confident.n == 2
    assert report.models[0].raw.confident.effective == pytest.approx(2.0)
    with pytest.raises(ValueError, match=r"from 1e-180 to 1; .* weights from 1e-30 to 1e\+30"):
        fr.Report.from_predictions(y, {"a": p}, sample_weight=[1e-180, *weights[1:]])


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_only_ratios_of_weights_matter(scale):
    """As everywhere in the library: weights of any size, if only their ratios are not extreme."""
    report, scaled = (
        fr.Report.from_predictions(
            SICK, {"m": BOLD}, sample_weight=factor * WEIGHTS, costs={"error_cost": 7.0}
        )
        for factor in (1.0, scale)
    )
    for one, other in zip(report.models, scaled.models, strict=True):
        for ours, theirs in ((one.raw, other.raw), (one.calibrated, other.calibrated)):
            for name, figure in ours.figures.items():
                value = theirs.figures[name].value
                assert value == pytest.approx(figure.value, rel=1e-12), name


def test_figures_say_how_what_they_hang_on_was_chosen():
    from fragility import Report

    y = [0, 1, 0, 1, 1, 0, 1, 0, 0, 1]
    p = [0.2, 0.7, 0.6, 0.9, 0.4, 0.3, 0.8, 0.1, 0.55, 0.65]
    report = Report.from_predictions(y, {"m": p}, costs={"error_cost": 5.0})
    (model,) = report.to_dict()["models"]
    raw, calibrated = model["raw"]["figures"], model["calibrated"]["figures"]
    assert raw["cost"]["estimator"] == "cross_fitted"
    assert {figure["estimator"] for name, figure in raw.items() if name != "cost"} == {None}
    assert {figure["estimator"] for figure in calibrated.values()} == {"cross_fitted"}


def test_shares_near_one_are_not_all():
    from fragility.report import words

    assert words.percent(0.9995) == "99.950 %"
    assert words.percent(1 - 1e-16) == "99.999 %"
    assert words.percent(1.0) == "100.0 %"


def test_worst_cases_of_an_index_of_zero_are_listed_on_every_path(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    apart = np.eye(3)[y] * 0.6 + 0.1 + 0.1 * rng.dirichlet(np.ones(3), 120)
    mixed = rng.dirichlet(np.ones(3), 120) * 0.5 + np.eye(3)[y] * 0.5 * rng.random((120, 1))
    models = {"apart": apart, "mixed": mixed}
    columns = {
        f"{name} {place}": proba[:, place] / proba.sum(axis=1)
        for name, proba in models.items()
        for place in range(3)
    }
    names = [f"case {row}" for row in range(120)]
    pq.write_table(pa.table({"y": y, "id": names, **columns}), tmp_path / "p.parquet")
    file = PredictionFile(
        open_table(tmp_path / "p.parquet"),
        label="y",
        models={name: [f"{name} {place}" for place in range(3)] for name in models},
    )
    read, batches = [], file.table.batches
    file.table.batches = lambda columns, *options: (
        read.append(list(columns)) or batches(columns, *options)
    )
    held, streamed = (
        report_on_file(file, hold=hold, n_worst=4, case_column="id", calibrate=False)
        for hold in (np.inf, 0)
    )
    assert read.count(["id"]) == 2  # once for each report, not once for each model
    assert held.models[0].raw.figures["fragility_index"].value == 0.0
    for one, other in zip(held.models, streamed.models, strict=True):
        assert len(one.worst) == 4
        assert [case.case for case in other.worst] == [case.case for case in one.worst]
        for ours, theirs in zip(one.worst, other.worst, strict=True):
            assert theirs.lift == pytest.approx(ours.lift, rel=1e-6)
