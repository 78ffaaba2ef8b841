"""The gate: what checks nothing does not pass, and like is held to like."""

from __future__ import annotations

import json

import pytest

from .command import fragility, patients, refused, write_csv

DATA = patients(120)
ASKED = ("--label", "sick", "--score", "fair")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def csv(folder):
    return write_csv(folder / "p.csv", DATA)


@pytest.fixture(scope="module")
def bad(folder):
    """A model that knows nothing: it has the scores of other cases."""
    return write_csv(folder / "bad.csv", {**DATA, "fair": DATA["fair"][60:] + DATA["fair"][:60]})


@pytest.fixture(scope="module")
def content(csv):
    return json.loads(fragility("evaluate", csv, *ASKED, "--json", "--no-calibration").out)


def gate(csv, baseline, folder, *more):
    """Hold the model of a file to a baseline, given as content or as text."""
    text = baseline if isinstance(baseline, str) else json.dumps(baseline)
    (folder / "old.json").write_text(text, encoding="utf-8")
    return fragility("gate", csv, *ASKED, "--baseline", folder / "old.json", *more)


def changed(content, **top):
    return {**json.loads(json.dumps(content)), **top}


def with_figures(content, change):
    """The baseline with other figures: `change` works on the figures of its model."""
    made = changed(content)
    change(made["models"][0]["raw"]["figures"])
    return made


def test_a_baseline_is_passed_by_itself_and_failed_by_a_bad_model(csv, bad, content, folder):
    assert gate(csv, content, folder).code == 0
    assert gate(bad, content, folder).code == 1


def replaced(name, value):
    return lambda figures: figures[name].update(value=value, bounds=None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda figures: figures.clear(), ("Fragility Index is missing",)),
        (lambda figures: figures.update(auc=None), ("AUC is missing",)),
        (lambda figures: figures.update(AUC=figures.pop("auc")), ("AUC is missing (auc)",)),
        (replaced("auc", None), ("AUC must be a number, not null",)),
        (replaced("auc", "0.9"), ('AUC must be a number, not "0.9"',)),
        (replaced("auc", True), ("AUC must be a number, not true",)),
        (replaced("auc", -0.5), ("AUC cannot be -0.5",)),
        (replaced("auc", 1.5), ("AUC cannot be 1.5",)),
        (replaced("auc", "Infinity"), ("AUC cannot be 'Infinity'",)),
        (replaced("log_loss", 10**400), ("log-loss", "beyond any float")),
        (replaced("ratio", 10**400), ("ratio", "beyond any float")),
        (replaced("ratio", [[[1.0]]]), ("ratio must be a number",)),
        (replaced("fragility_index", {}), ("Fragility Index must be a number",)),
        (lambda figures: figures["auc"].update(bounds=[0.9]), ("two numbers",)),
        (lambda figures: figures["auc"].update(bounds=[0.9, 0.8]), ("wrong order",)),
        (lambda figures: figures["auc"].update(bounds={"low": 0}), ("two numbers",)),
    ],
)
def test_a_baseline_without_the_four_figures_is_refused(bad, content, folder, change, words):
    ended = gate(bad, with_figures(content, change), folder)
    refused(ended, "old.json is not a baseline", "fragility evaluate", *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no format"),
        ("[]", "no format"),
        ("3", "no format"),
        ("null", "no format"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"format": 1, "format": 1}', "'format' is there twice"),
        ('{"format": NaN}', "NaN is not a number in strict JSON"),
        ('{"format": 1e400}', "no format"),
        ('{"format": ' + "9" * 5000 + "}", "a number in it has 5,000 digits"),
        ('{"format": 7}', "format 7"),
        ('{"format": true}', "no format"),
        ('{"format": 1', "not JSON"),
        ("", "not JSON"),
    ],
)
def test_foreign_files_are_refused(bad, folder, text, words):
    refused(gate(bad, text, folder), "is not a baseline", words)


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ({"models": []}, "must hold models"),
        ({"models": {}}, "models must be a list"),
        ({"models": [1]}, "models must be a list"),
        ({"models": [{}]}, "has no name"),
        ({"models": [{"name": "fair"}]}, "'fair' has no figures"),
        ({"models": [{"name": "fair", "raw": []}]}, "'fair' has no figures"),
        ({"weighted": None}, "weighted"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 10**400}, "n_samples"),
        ({"n_samples": "120"}, "n_samples"),
        ({"classes": None}, "classes must be a list"),
        ({"classes": [{"label": []}, {"label": {}}]}, "two labels"),
        ({"costs": 3}, "costs must be"),
        ({"costs": {"error_cost": 10.0}}, "costs must be"),
        ({"positive": None}, "positive must be"),
        ({"positive": ["yes"]}, "positive must be"),
    ],
)
def test_damaged_baselines_are_refused(bad, content, folder, top, words):
    refused(gate(bad, changed(content, **top), folder), "is not a baseline", words)


def test_repeated_models_and_keys_are_refused(csv, content, folder):
    twice = changed(content, models=content["models"] * 2)
    refused(gate(csv, twice, folder), "each with a name of its own")
    text = json.dumps(content).replace('"auc": {', '"auc": {"value": 0.0}, "auc": {', 1)
    refused(gate(csv, text, folder), "'auc' is there twice")


def test_long_names_make_no_long_messages(csv, content, folder):
    classes = [{"label": "x" * 10**5, "n": 60}, {"label": "yes", "n": 60}]
    models = [{**content["models"][0], "name": name * 10**5} for name in "ab"]
    for top in (
        {"classes": classes},
        {"positive": "y" * 10**5},
        {"models": models},
        {"models": [{"name": "m" * 10**5}]},
    ):
        ended = gate(csv, changed(content, **top), folder)
        assert ended.code == 2
        assert len(ended.err) < 1000


def test_a_baseline_is_held_at_the_worse_of_its_bounds(csv, content, folder):
    def widened(name, low, high):
        def change(figures):
            value = figures[name]["value"]
            figures[name]["bounds"] = [value + low, value + high]

        return with_figures(content, change)

    assert gate(csv, widened("log_loss", -0.1, 0.0), folder).code == 0
    assert gate(csv, widened("log_loss", -0.1, -0.05), folder).code == 1
    assert gate(csv, widened("auc", 0.0, 0.01), folder).code == 0
    assert gate(csv, widened("auc", 0.005, 0.01), folder).code == 1


def test_an_endless_baseline_is_refused(csv):
    refused(fragility("gate", csv, *ASKED, "--baseline", "/dev/zero"), "more than 64 MiB")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (("--min-auc", "-1"), "no model fails"),
        (("--min-auc", "0"), "no model fails"),
        (("--min-auc", "1.01"), "none passes"),
        (("--max-fi", "inf"), "finite"),
        (("--max-fi", "nan"), "finite"),
        (("--max-fi", "-0.1"), "no model passes"),
        (("--max-ratio", "-1"), "no model passes"),
        (("--max-log-loss", "40"), "no model fails"),
        (("--max-log-loss", "-1"), "no model passes"),
        (("--max-cost", "10", "--error-cost", "10"), "no model fails"),
        (("--max-cost", "9", "--error-cost", "0,9;2,0"), "no model fails"),
        (
            ("--max-cost", "16", "--error-cost", "10", "--review-cost", "6", "--reviewer-error=1"),
            "must be below 16,",
        ),
        (("--max-cost", "-1", "--error-cost", "10"), "no model passes"),
    ],
)
def test_limits_that_cannot_fail_or_pass_are_refused(csv, limits, words):
    refused(fragility("gate", csv, *ASKED, *limits), words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--tolerance", "0.1", "--max-fi", "1"), "--tolerance is for --baseline"),
        (("--upper-limit", "--min-auc", "0.5"), "--upper-limit is for --max-fi and --max-cost"),
        (("--group", "sex", "--max-fi", "1"), "--group"),
    ],
)
def test_options_that_would_do_nothing_are_refused(csv, options, words):
    ended = fragility("gate", csv, *ASKED, *options)
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.parametrize("command", ["cost", "compare"])
def test_groups_are_refused_where_they_do_nothing(csv, command):
    more = ("--score", "bold") if command == "compare" else ("--error-cost", "10")
    assert fragility(command, csv, *ASKED, *more).code == 0
    ended = fragility(command, csv, *ASKED, *more, "--group", "sex")
    assert ended.code == 2
    assert "--group" in ended.err


def test_a_tolerance_at_which_nothing_fails_is_refused(csv, content, folder):
    refused(gate(csv, content, folder, "--tolerance", "1"), "tolerance must be below 1")


def test_unlike_baselines_are_refused(csv, content, folder):
    labels = [{"label": "healthy", "n": 60}, {"label": "yes", "n": 60}]
    refused(gate(csv, changed(content, classes=labels), folder), "classes", "'healthy', 'yes'")
    refused(gate(csv, changed(content, positive="no"), folder), "positive class", "'no'", "'yes'")
    three = [*content["classes"], content["classes"][0]]
    refused(gate(csv, changed(content, classes=three, positive=None), folder), "'no', 'yes', 'no'")
    turned = {**DATA, "fair": [1 - p for p in DATA["fair"]]}
    ended = gate(write_csv(folder / "turned.csv", turned), content, folder, "--positive", "no")
    refused(ended, "positive class", "there: 'yes', here: 'no'")
    ended = gate(csv, content, folder, "--weight", "weight")
    refused(ended, "weights of the cases there: none, here: given")


def test_numbers_are_the_same_classes_however_written(folder):
    numbered = {**DATA, "sick": [int(s == "yes") for s in DATA["sick"]]}
    csv = write_csv(folder / "numbers.csv", numbered)
    content = json.loads(fragility("evaluate", csv, *ASKED, "--json", "--no-calibration").out)
    for no, yes in ((0, 1), (False, True), ("0", "1"), (0.0, 1.0)):
        labels = [{"label": no, "n": 60}, {"label": yes, "n": 60}]
        assert gate(csv, changed(content, classes=labels, positive=yes), folder).code == 0
    labels = [{"label": 1, "n": 60}, {"label": 2, "n": 60}]
    refused(gate(csv, changed(content, classes=labels), folder), "classes there: 1, 2")


@pytest.mark.slow
def test_unlike_costs_are_refused_and_missing_ones_said(csv, content, folder):
    costs = ("--error-cost", "10", "--review-cost", "2")
    assert "Not held: cost per case" in gate(csv, content, folder, *costs).err
    asked = ("evaluate", csv, *ASKED, "--json", "--no-calibration")
    priced = json.loads(fragility(*asked, *costs).out)
    same = gate(csv, priced, folder, *costs)
    assert same.code == 0, same
    assert "cost per case" in same.out
    assert "Not held" not in same.err
    ended = gate(csv, priced, folder, "--json")
    assert "Not held: cost per case" in ended.err
    assert json.loads(ended.out)["not_held"] == [
        "cost per case is not held: give the costs of the baseline, --error-cost."
    ]
    for other, words in (
        (("--error-cost", "20", "--review-cost", "2"), "error_cost there: 10.0, here: 20.0"),
        (("--error-cost", "10"), "review_cost there: 2.0, here: 1.0"),
        ((*costs, "--capacity", "0.5"), "capacity there: none, here: 0.5"),
        (("--error-cost", "0,1;10,0", "--review-cost", "2"), "error_cost there: 10.0"),
    ):
        refused(gate(csv, priced, folder, *other), words)
    passes = json.loads(fragility(*asked, *costs, "--hold", "0").out)  # from sums, the same cost
    same = gate(csv, passes, folder, *costs)
    assert same.code == 0, same
    assert "cost per case" in same.out
    older = with_figures(priced, lambda figures: figures["cost"].update(estimator="same_cases"))
    refused(gate(csv, older, folder, *costs), 'estimator there: "same_cases", here: "cross_fitted"')
    assert gate(csv, older, folder).code == 0  # all but the cost is the same figure
    unsaid = with_figures(priced, lambda figures: figures["cost"].pop("estimator"))
    refused(gate(csv, unsaid, folder, *costs), "estimator there: none")
    without = with_figures(priced, lambda figures: figures.pop("cost"))
    refused(gate(csv, without, folder, *costs), "cost per case is missing")


def test_what_is_not_held_is_said(csv, content, folder):
    ended = gate(csv, with_figures(content, replaced("fragility_index", "Infinity")), folder)
    assert "Not held: Fragility Index of inf in the baseline of fair: no model" in ended.err
    both = json.loads(
        fragility("evaluate", csv, *ASKED, "--score", "bold", "--json", "--no-calibration").out
    )
    ended = gate(csv, both, folder)
    assert ended.code == 0
    assert "Not held: model 'bold' of the baseline is not in the data." in ended.err


def test_a_baseline_that_no_model_fails_is_refused(bad, content, folder):
    def worst(figures):
        for name, value in (("auc", 0), ("log_loss", 40.0), ("ratio", "Infinity")):
            replaced(name, value)(figures)
        replaced("fragility_index", "Infinity")(figures)

    refused(gate(bad, with_figures(content, worst), folder), "Nothing is held against model")


def test_columns_that_cannot_be_compared_are_told(csv, folder):
    asked = ("evaluate", csv, *ASKED, "--json", "--no-calibration", "--weight", "weight")
    costs = ("--error-cost-column", "weight")
    content = json.loads(fragility(*asked, *costs).out)
    ended = gate(csv, content, folder, "--weight", "weight", *costs)
    assert ended.code == 0, ended
    assert "Not held: whether the costs by case are of the same column is not known." in ended.err
    assert "Not held: whether the weights are of the same column is not known." in ended.err


def test_a_byte_order_mark_is_no_fault(csv, content, folder):
    assert gate(csv, "\ufeff" + json.dumps(content), folder).code == 0


def test_very_different_numbers_of_cases_are_warned_of(csv, content, folder):
    warned = "Warning: the baseline has"
    assert warned not in gate(csv, changed(content, n_samples=360), folder).err
    assert warned not in gate(csv, changed(content, n_samples=40), folder).err
    for n in (361, 39):
        ended = gate(csv, changed(content, n_samples=n), folder)
        assert ended.code == 0
        assert f"{warned} {n} cases and this file 120;" in ended.err


def test_nothing_checked_is_refused_in_python_too():
    from fragility import Report
    from fragility.report.gates import Limits, check_gates

    report = Report.from_predictions([0, 1, 0, 1], [0.2, 0.7, 0.6, 0.9], calibrate=False)
    with pytest.raises(ValueError, match="Nothing is held against model 'model'"):
        check_gates(report, Limits())
    with pytest.raises(ValueError, match="needs costs"):
        check_gates(report, Limits(cost=1.0))


@pytest.mark.slow
def test_mutated_baselines_give_the_verdict_of_their_numbers_or_none():
    import numpy as np

    from .fuzzing import baselines

    rng = np.random.default_rng(0)
    cases = baselines.mutations(baselines.corpus()[0], rng)
    accepted = sum(baselines.check(next(cases)) for _ in range(400))
    assert 20 < accepted < 380  # both ends are looked at
