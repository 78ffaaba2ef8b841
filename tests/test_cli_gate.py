"""The gate: what checks nothing does not pass, and like is held to like."""

from __future__ import annotations

import hashlib
import json

import pytest

from .command import executable, fragility, patients, refused, write_csv

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
def saved(csv, folder):
    """Makes a baseline with more options."""

    def save(*more):
        path = folder / "saved.json"
        ended = fragility("gate", csv, *ASKED, "--no-calibration", *more, "--save-baseline", path)
        assert ended.code == 0, ended
        return json.loads(path.read_text(encoding="utf-8"))

    return save


@pytest.fixture(scope="module")
def content(saved):
    return saved()


def gate(csv, baseline, folder, *more):
    """Hold the model of a file to a baseline, given as content or as text."""
    text = baseline if isinstance(baseline, str) else json.dumps(baseline)
    (folder / "old.json").write_text(text, encoding="utf-8")
    asked = ("gate", csv, *ASKED, "--no-calibration", "--baseline", folder / "old.json")
    return fragility(*asked, *more)


def changed(content, **top):
    return {**json.loads(json.dumps(content)), **top}


def with_figures(content, change):
    """The baseline with other figures: `change` works on the figures of its model."""
    made = changed(content)
    change(made["models"][0]["raw"])
    return made


def test_a_baseline_is_passed_by_itself_and_failed_by_a_bad_model(csv, bad, content, folder):
    assert gate(csv, content, folder).code == 0
    assert gate(bad, content, folder).code == 1


def replaced(name, value):
    return lambda figures: figures[name].update(value=value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda figures: figures.clear(), ("log-loss is missing",)),
        (lambda figures: figures.update(log_loss=None), ("log-loss is missing",)),
        (lambda figures: figures.update(x=figures.pop("log_loss")), ("log-loss is missing",)),
        (replaced("log_loss", None), ("log-loss must be a number, not null",)),
        (replaced("log_loss", "0.9"), ('log-loss must be a number, not "0.9"',)),
        (replaced("log_loss", True), ("log-loss must be a number, not true",)),
        (replaced("log_loss", -0.5), ("log-loss cannot be -0.5",)),
        (replaced("log_loss", 40), ("log-loss cannot be 40",)),
        (replaced("log_loss", "Infinity"), ("log-loss cannot be 'Infinity'",)),
        (replaced("log_loss", 10**400), ("log-loss", "beyond any float")),
        (replaced("log_loss", [[[1.0]]]), ("log-loss must be a number",)),
        (
            lambda figures: figures["log_loss"].update(standard_error=-1),
            ("the standard error of log-loss cannot be -1",),
        ),
        (
            lambda figures: figures["log_loss"].update(standard_error="x"),
            ("the standard error of log-loss must be a number",),
        ),
    ],
)
def test_a_baseline_without_its_figures_is_refused(bad, content, folder, change, words):
    ended = gate(bad, with_figures(content, change), folder)
    refused(ended, "old.json is not a baseline", "--save-baseline baseline.json", *words)


def test_reports_and_other_formats_are_refused_with_what_to_do(csv, content, folder):
    report = fragility("evaluate", csv, *ASKED, "--json", "--no-calibration").out
    refused(gate(csv, report, folder), "it is a report, which an earlier", "--save-baseline")
    for number, shown in ((1, "format 1"), (3, "format 3"), ("2", 'format "2"'), (None, "null")):
        ended = gate(csv, changed(content, format=number), folder)
        refused(ended, shown, "this version reads 2", "make a new one with")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "does not say that it is one"),
        ("[]", "does not say"),
        ("3", "does not say"),
        ("null", "does not say"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"format": 1, "format": 1}', "'format' is there twice"),
        ('{"format": NaN}', "NaN is not a number in strict JSON"),
        ('{"format": ' + "9" * 5000 + "}", "a number in it has 5,000 digits"),
        ('{"kind": "fragility baseline", "format": true}', "format true"),
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
        ({"models": [{"name": "fair"}]}, "of model 'fair' groups must be a list"),
        ({"models": [{"name": "fair", "groups": [], "raw": []}]}, "'fair' has no figures"),
        ({"models": [{"name": "fair", "groups": [{}]}]}, "a group has no column or name"),
        (
            {"models": [{"name": "fair", "groups": [{"column": "a", "group": "b"}]}]},
            "group 'b' has no figures",
        ),
        ({"models": [{"name": "fair", "groups": [], "cost_estimator": 1}]}, "cost_estimator"),
        ({"answers": None}, "answers"),
        ({"weighted": None}, "weighted"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 10**400}, "n_samples"),
        ({"n_samples": "120"}, "n_samples"),
        ({"classes": None}, "two labels"),
        ({"classes": [[], {}]}, "two labels"),
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
    twice = '"log_loss": {"value": 0.0}, "log_loss": {'
    text = json.dumps(content).replace('"log_loss": {', twice, 1)
    refused(gate(csv, text, folder), "'log_loss' is there twice")


def test_long_names_make_no_long_messages(csv, content, folder):
    classes = ["x" * 10**5, "yes"]
    models = [{**content["models"][0], "name": name * 10**5} for name in "ab"]
    for top in (
        {"classes": classes},
        {"positive": "y" * 10**5},
        {"models": models},
        {"models": [{"name": "m" * 10**5, "groups": []}]},
    ):
        ended = gate(csv, changed(content, **top), folder)
        assert ended.code == 2
        assert len(ended.err) < 1000


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
        (("--tolerance", "0.1", "--max-fi", "1"), "--tolerance is for --against and --baseline"),
        (("--margin", "0.1", "--max-fi", "1"), "--margin is for --against and --baseline"),
        (("--upper-limit", "--against", "bold"), "--upper-limit is for limits such as"),
        (("--group", "sex", "--max-fi", "1"), "--group is for --each-group"),
        (("--each-group", "--max-fi", "1"), "--each-group is for groups"),
        (("--each-group", "--group", "sex", "--save-baseline", "x.json"), "holds nothing"),
        (("--max", "brier"), "'brier' is not a figure with its limit"),
        (("--max", "brier=x"), "'brier=x' is not a figure with its limit"),
        (("--max", "loss=1"), "No figure is called 'loss'"),
        (("--max", "brier=0.1", "--max", "brier=0.2"), "brier has two limits"),
        (("--max", "log_loss=1", "--max-log-loss", "2"), "log_loss has two limits"),
        (("--min", "brier=0.1"), "--max brier=0.1"),
        (("--max", "error_rate=0.1"), "There is no error rate to hold: it needs costs"),
        (("--min", "accuracy=0.5"), "There is no accuracy to hold"),
        (("--against", "fair"), "no model but 'fair'"),
        (("--against", "none"), "none"),
        (("--against", "fair=bold"), "Two models have the name 'fair'"),
        (("--against", "bold", "--margin", "0"), "margin must be positive"),
        (("--save-baseline", "x.txt"), "must end in .json"),
    ],
)
def test_options_that_would_do_nothing_are_refused(csv, options, words):
    ended = fragility("gate", csv, *ASKED, *options)
    assert ended.code == 2
    assert words in ended.err


def test_a_tolerance_at_which_nothing_fails_is_refused(csv, content, folder):
    refused(gate(csv, content, folder, "--tolerance", "1"), "tolerance must be below 1")


def test_unlike_baselines_are_refused(csv, content, folder):
    labels = ["healthy", "yes"]
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
    path = folder / "numbers.json"
    made = fragility("gate", csv, *ASKED, "--no-calibration", "--save-baseline", path)
    assert made.code == 0, made
    content = json.loads(path.read_text())
    for no, yes in ((0, 1), (False, True), ("0", "1"), (0.0, 1.0)):
        labels = [no, yes]
        assert gate(csv, changed(content, classes=labels, positive=yes), folder).code == 0
    labels = [1, 2]
    refused(gate(csv, changed(content, classes=labels), folder), "classes there: 1, 2")


@pytest.mark.slow
def test_unlike_costs_are_refused_and_missing_ones_said(csv, content, saved, folder):
    costs = ("--error-cost", "10", "--review-cost", "2")
    assert "Not held: cost per case" in gate(csv, content, folder, *costs).err
    priced = saved(*costs)
    same = gate(csv, priced, folder, *costs)
    assert same.code == 0, same
    assert "cost per case" in same.out
    assert "Not held: cost" not in same.err
    ended = gate(csv, priced, folder, "--json")
    assert "Not held: cost per case" in ended.err
    assert json.loads(ended.out)["not_held"][0] == (
        "cost per case is not held: give the costs of the baseline, --error-cost."
    )
    for other, words in (
        (("--error-cost", "20", "--review-cost", "2"), "error_cost there: 10.0, here: 20.0"),
        (("--error-cost", "10"), "review_cost there: 2.0, here: 1.0"),
        ((*costs, "--capacity", "0.5"), "capacity there: none, here: 0.5"),
        (("--error-cost", "0,1;10,0", "--review-cost", "2"), "error_cost there: 10.0"),
    ):
        refused(gate(csv, priced, folder, *other), words)
    passes = saved(*costs, "--hold", "0")  # from sums, the same cost
    same = gate(csv, passes, folder, *costs)
    assert same.code == 0, same
    assert "cost per case" in same.out
    older = changed(priced)
    older["models"][0]["cost_estimator"] = "same_cases"
    refused(gate(csv, older, folder, *costs), 'estimator there: "same_cases", here: "cross_fitted"')
    assert gate(csv, older, folder).code == 0  # all but the cost is the same figure
    unsaid = changed(priced)
    del unsaid["models"][0]["cost_estimator"]
    refused(gate(csv, unsaid, folder, *costs), "estimator there: none")
    without = with_figures(priced, lambda figures: figures.pop("cost"))
    refused(gate(csv, without, folder, *costs), "cost per case is missing")


def test_what_is_not_held_is_said(csv, content, saved, folder):
    ended = gate(csv, content, folder)
    assert "after calibration of fair are not held: the baseline has no calibrated" in ended.err
    ended = gate(csv, saved("--score", "bold"), folder)
    assert ended.code == 0
    assert "Not held: model 'bold' of the baseline is not in the data." in ended.err


def test_a_baseline_that_no_model_fails_is_refused(bad, content, folder):
    highest = with_figures(content, replaced("log_loss", 36.0436))
    refused(gate(bad, highest, folder), "Nothing is held against model")
    unsure = with_figures(content, lambda f: f["log_loss"].update(standard_error="Infinity"))
    refused(gate(bad, unsure, folder), "Nothing is held against model")


def test_columns_that_cannot_be_compared_are_told(csv, saved, folder):
    costs = ("--error-cost-column", "weight")
    content = saved("--weight", "weight", *costs)
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
    from fragility.report.gates import check_gates
    from fragility.report.limits import Limits

    report = Report.from_predictions([0, 1, 0, 1], [0.2, 0.7, 0.6, 0.9], calibrate=False)
    with pytest.raises(ValueError, match="Nothing is held against model 'model'"):
        check_gates(report, Limits())
    with pytest.raises(ValueError, match="needs costs"):
        check_gates(report, Limits({"cost": 1.0}))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--against", "bold"), 0, "Gate passed."),
        (("--against", "older=bold", "--margin", "0.1"), 0, "Gate passed."),
        (
            ("--score", "bold", "--against", "fair", "--margin", "0.01"),
            1,
            "which must be below the margin of 0.01",
        ),
        (("--max-confident-errors", "0.5"), 0, "Gate passed."),
        (("--max-confident-errors", "1e-6"), 1, "confident errors of fair is"),
        (("--max-calibration-error", "0.5"), 0, "Gate passed."),
        (("--max-calibration-error", "0.01"), 1, "calibration error of fair is"),
        (("--max", "brier=0.5", "--min", "gini=0.1"), 0, "Gate passed."),
        (("--max", "brier=0.01", "--min", "ks=0.1"), 1, "Brier score of fair is"),
        (("--max", "brier=0.5", "--upper-limit"), 0, "Gate passed."),
        (("--min", "auc=0.8", "--upper-limit"), 1, "AUC (lower limit) of fair is"),
        (("--min", "calibration_slope=0.1", "--max", "calibration_slope=9"), 0, "Gate passed."),
        (("--max", "error_rate=0.5", "--error-cost", "3"), 0, "Gate passed."),
        (("--max", "error_share=1e-6", "--error-cost", "3"), 1, "error share of fair is"),
        (("--max-log-loss", "0.9", "--group", "sex", "--each-group"), 0, "Gate passed."),
        (
            ("--max-log-loss", "0.1", "--group", "sex", "--each-group"),
            1,
            "log-loss of fair in sex: f is",
        ),
        (("--against", "bold", "--group", "sex", "--each-group"), 0, "Gate passed."),
    ],
)
def test_every_way_to_hold_a_model(csv, options, code, words):
    ended = fragility("gate", csv, *ASKED, *options)
    assert ended.code == code, ended
    assert words in ended.err
    assert ("FAILED" in ended.out) == bool(code)


def test_a_model_worse_than_the_present_one_fails_in_any_order(csv, folder):
    models = {**DATA, "wild": [0.5 + 0.99 * (p - 0.5) for p in DATA["bold"]][::-1]}
    file = write_csv(folder / "wild.csv", models)
    told = []
    for order in (("bold", "wild"), ("wild", "bold")):
        scores = [part for name in order for part in ("--score", name)]
        asked = ("gate", file, "--label", "sick", *scores, "--against", "present=fair")
        ended = fragility(*asked, "--json")
        assert ended.code == 1, ended
        assert "log-loss (as given) of wild is" in ended.err
        assert "clearly worse" in ended.err
        checks = json.loads(ended.out)["checks"]
        assert {check["source"] for check in checks} == {"against present"}
        told.append(
            {
                (c["model"], c["figure"], c["part"]): (round(c["limit"], 9), c["passed"])
                for c in checks
            }
        )
    assert told[0] == told[1]


@pytest.mark.slow
def test_all_paths_have_the_same_limits(csv):
    asked = ("gate", csv, *ASKED, "--against", "bold", "--error-cost", "2", "--json")
    asked += ("--group", "sex", "--each-group", "--max", "error_rate=0.5")
    told = []
    for way in ("--in-memory", "--hold=0"):
        ended = fragility(*asked, way)
        assert ended.code == 0, ended
        checks = json.loads(ended.out)["checks"]
        told.append({(c["figure"], c["part"], c["group"], c["source"]): c for c in checks})
    assert told[0].keys() == told[1].keys()
    assert len(told[0]) > 8
    for place, check in told[0].items():
        assert told[1][place]["limit"] == pytest.approx(check["limit"], rel=1e-6)
        assert told[1][place]["value"] == pytest.approx(check["value"], rel=1e-6)


def test_a_baseline_is_saved_only_where_the_gate_passes(csv, folder):
    path = folder / "kept.json"
    asked = ("gate", csv, *ASKED, "--save-baseline", path, "--group", "sex", "--each-group")
    ended = fragility(*asked, "--max-log-loss", "0.1")
    assert ended.code == 1
    assert "Did not write" in ended.err
    assert not path.exists()
    ended = fragility(*asked, "--max-log-loss", "0.9", "--against", "bold")
    assert ended.code == 0, ended
    content = json.loads(path.read_text())
    assert (content["kind"], content["format"]) == ("fragility baseline", 2)
    assert content["sha256"] == hashlib.sha256(csv.read_bytes()).hexdigest()
    (model,) = content["models"]
    assert model["name"] == "fair"
    assert model["calibrated"].keys() == {"log_loss", "fragility_index"}
    assert {part["group"] for part in model["groups"]} == {"f", "m"}
    options = ("--baseline", path, "--group", "sex", "--each-group")
    assert fragility("gate", csv, *ASKED, *options).code == 0
    refused(fragility(*asked, "--baseline", path), "same file as the input")


@pytest.mark.outside
def test_the_real_command_holds_a_model_to_the_present_one(csv):
    ended = executable("gate", csv, "--label", "sick", "--score", "fair", "--against", "bold")
    assert ended.code == 0, ended
    assert "Gate passed." in ended.err


@pytest.mark.slow
def test_mutated_baselines_give_the_verdict_of_their_numbers_or_none():
    import numpy as np

    from .fuzzing import baselines

    rng = np.random.default_rng(0)
    cases = baselines.mutations(baselines.corpus()[0], rng)
    accepted = sum(baselines.check(next(cases)) for _ in range(400))
    assert 20 < accepted < 380  # both ends are looked at
