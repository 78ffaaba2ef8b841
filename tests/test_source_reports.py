"""Reports on sources: the same from every source, and that of the same rows in memory."""

from __future__ import annotations

import json
from math import isclose

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import Report
from fragility.deferral import Costs
from fragility.exceptions import PartitionError
from fragility.figures.spread import nine_digits
from fragility.report.files import report_on_file
from fragility.sources.local import LocalSource
from fragility.tables import PredictionFile, open_table

from .engine_data import columns, write_parts

DATA = columns()
ASKED = {
    "label": "sick",
    "scores": ["p", "q"],
    "groups": "site",
    "costs": {"error_cost": 10.0, "review_cost": 1.0},
}
#: Few enough that the cases are not held.
BEYOND = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


@pytest.fixture(autouse=True)
def one_date(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")


def differences(found, expected, digits, path=""):
    """Where two reports differ by more than rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for key, value in expected.items():
            yield from differences(found[key], value, digits, f"{path}/{key}")
    elif isinstance(expected, list):
        if len(found) != len(expected):
            yield f"{path}: {found} against {expected}"
        for k, (own, value) in enumerate(zip(found, expected, strict=False)):
            yield from differences(own, value, digits, f"{path}[{k}]")
    elif isinstance(expected, float) and isinstance(found, float):
        if not isclose(found, expected, rel_tol=10.0**-digits, abs_tol=1e-13):
            yield f"{path}: {found!r} against {expected!r}"
    elif found != expected:
        yield f"{path}: {found!r} against {expected!r}"


def plain(report, *left_out):
    """A report as data, without what tells where it came from."""
    found = json.loads(report.to_json())
    for name in ("provenance", "notes", *left_out):
        found.pop(name, None)
    for model in found["models"]:
        if model["policy"] is not None:
            model["policy"].pop("columns")
    return found


@pytest.mark.parametrize(("hold", "weight"), [(2**20, "w"), (BEYOND, None), (BEYOND, "w")])
def test_every_source_gives_the_same_report(folder, hold, weight):
    pattern = str(folder / "*.parquet")
    made = [
        Report.from_source(data, **ASKED, hold=hold, weight=weight).to_json()
        for data in (
            folder,
            pa.table({name: values[::-1] for name, values in DATA.items()}),
            pl.scan_parquet(pattern) if weight is None else duckdb.read_parquet(pattern),
        )
    ]
    assert len(set(made)) == 1


def test_held_cases_give_the_report_of_memory(folder):
    found = Report.from_source(folder, **ASKED, weight="w")
    memory = Report.from_predictions(
        DATA["sick"],
        {name: DATA[name] for name in ("p", "q")},
        groups={"site": DATA["site"]},
        costs=ASKED["costs"],
        sample_weight=DATA["w"],
        n_worst=0,
    )
    assert list(differences(plain(found), plain(memory), 9)) == []


def test_sums_give_the_figures_of_memory_up_to_their_bounds(folder):
    found = Report.from_source(folder, **ASKED, hold=BEYOND)
    memory = Report.from_source(DATA, **ASKED)
    assert (found.streamed, memory.streamed) == (True, False)
    for own, exact in zip(found.models, memory.models, strict=True):
        for name, figure in exact.raw.figures.items():
            measured = own.raw.figures[name]
            low, high = measured.bounds or (measured.value, measured.value)
            room = 1e-9 * abs(figure.value) + 1e-13
            assert low - room <= figure.value <= high + room, name
        assert isclose(own.policy.cost, exact.policy.cost, rel_tol=1e-9)
    assert found.n_shared_mistakes == memory.n_shared_mistakes


def test_readers_that_are_sent_to_parts_tell_what_one_reading_does(folder, tmp_path):
    """A file that is read by one reader from its first row to its last, without any merge."""
    found = Report.from_source(folder, **ASKED, hold=BEYOND)
    pq.write_table(pa.table(DATA), tmp_path / "all.parquet")
    models = {"p": ["p"], "q": ["q"]}
    file = PredictionFile(
        open_table(tmp_path / "all.parquet"), label="sick", models=models, groups=["site"]
    )
    whole = report_on_file(file, costs=Costs(**ASKED["costs"]), n_worst=0, hold=BEYOND)
    pairs = zip(found.comparisons, whole.comparisons, strict=True)
    tests = [
        (getattr(own, part).tests[name], getattr(one, part).tests[name])
        for own, one in pairs
        for part in ("raw", "calibrated")
        for name in one.raw.tests
    ]
    by_group = zip(found.group_comparisons, whole.group_comparisons, strict=True)
    tests += [
        (getattr(own, name), getattr(one, name))
        for own, one in by_group
        for name in ("log_loss", "calibrated_log_loss", "cost")
    ]
    tests += [(found.comparisons[0].cost.test, whole.comparisons[0].cost.test)]
    for own, one in tests:
        scale = max(abs(one.interval.low), abs(one.interval.high))
        for mine, expected in (
            (own.difference, one.difference),
            (own.interval.low, one.interval.low),
            (own.interval.high, one.interval.high),
        ):
            assert isclose(mine, expected, rel_tol=0.0, abs_tol=1e-7 * scale), (own, one)


def several_classes():
    rng = np.random.default_rng(3)
    scores = rng.dirichlet([0.7, 0.7, 0.7], 3_000)
    truth = np.array([rng.choice(3, p=row) for row in scores])
    other = 0.8 * scores + 0.2 * rng.dirichlet([1.0, 1.0, 1.0], 3_000)
    data = {"truth": np.array(["x", "y", "z"])[truth], "site": rng.integers(0, 2, 3_000)}
    for name, part in (("a", scores), ("b", other)):
        data |= {f"{name}_{label}": part[:, k] for k, label in enumerate("xyz")}
    asked = {
        "label": "truth",
        "scores": {name: [f"{name}_{label}" for label in "xyz"] for name in "ab"},
        "groups": ["site"],
        "costs": {"error_cost": 5.0, "review_cost": 1.0},
        "hold": BEYOND,
    }
    return data, asked


def test_sums_of_round_costs_are_told_alike_in_any_order():
    """Squares of costs, means of 20 splits, often add up to the middle between nine digits."""
    rng = np.random.default_rng(0)
    terms = rng.multinomial(49_382_715, np.full(3000, 1 / 3000)) * 0.0025
    sums = {float(np.cumsum(rng.permutation(terms))[-1]) for _ in range(50)}
    assert min(sums) < 123_456.7875 < max(sums)
    assert {nine_digits(found) for found in sums} == {123_456.788}
    assert {nine_digits(-found) for found in sums} == {-123_456.788}
    assert nine_digits(3000.0) == 3000.0


def test_several_classes_in_parts(tmp_path):
    data, asked = several_classes()
    for k, rows in enumerate(np.array_split(np.arange(3_000), 3)):
        part = {name: values[rows] for name, values in data.items()}
        pq.write_table(pa.table(part), tmp_path / f"{k}.parquet")
    found = Report.from_source(tmp_path, **asked)
    assert found.streamed
    assert found.models[0].policy is not None
    assert found.models[0].calibrated is not None
    assert found.to_json() == Report.from_source(data, **asked).to_json()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"human": "site", "reviewer_error": "q"}, "human and reviewer_error were given"),
        ({"human": "site", "error_cost": "q"}, "both given by case"),
        ({"reviewer_error": "q", "error_cost": "q"}, "both given by case"),
        ({"human": "site", "costs": None}, "say nothing without costs"),
        (
            {"human": "site", "costs": {"error_cost": 5.0, "reviewer_error": 0.1}},
            "give one of both",
        ),
    ],
)
def test_reviews_that_do_not_fit_are_refused_before_anything_is_read(asked, told):
    reader = pa.RecordBatchReader.from_batches(pa.table(DATA).schema, iter(()))
    with pytest.raises(ValueError, match=told):
        Report.from_source(reader, **{**ASKED, **asked})


@pytest.mark.parametrize("by_case", ["human", "loss"])
def test_costs_or_humans_by_case_in_parts(tmp_path, by_case):
    rng = np.random.default_rng(4)
    human = np.where(rng.random(len(DATA["p"])) < 0.9, DATA["sick"], 1 - DATA["sick"])
    data = {**DATA, "human": human, "loss": rng.integers(1, 20, human.size) / 2.0}
    write_parts(tmp_path, data)
    asked = {**ASKED, "hold": BEYOND}
    if by_case == "human":
        asked |= {"human": "human"}
    else:
        asked |= {"error_cost": "loss", "costs": {"review_cost": 1.0}}
    found = Report.from_source(tmp_path, **asked)
    assert found.reviewed == ("human" if by_case == "human" else "")
    assert found.to_json() == Report.from_source(data, **asked).to_json()


def test_names_are_found_in_parts_that_lack_some(tmp_path):
    """Classes, groups in ranges and crossings, none of which a single part has all of."""
    age = np.linspace(20.0, 80.0, len(DATA["p"]))
    write_parts(tmp_path, {**DATA, "age": age})
    asked = {**ASKED, "groups": ["site", "age:40,60"], "hold": BEYOND, "costs": None}
    found = Report.from_source(tmp_path, **asked)
    columns_of_groups = {part.column for part in found.groups}
    assert columns_of_groups == {"site", "age", "site × age"}
    assert found.to_json() == Report.from_source({**DATA, "age": age}, **asked).to_json()


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("p", [0.1, None, 0.9], r"'p' has missing values in 1 of 3 rows \(data row 2, counted"),
        ("p", [0.1, float("nan"), 0.9], "'p' has missing values"),
        ("p", [0.1, 1.5, 0.9], "must hold probabilities"),
        ("p", ["0.1", "often", "0.9"], r"'p' holds values .* such as 'often', in 1 of 3 rows"),
        ("sick", [0, None, 1], "'sick' has missing values"),
        ("sick", [0, 1, 7], "not among the classes"),
        ("site", ["a", None, "b"], "'site' has missing values"),
    ],
)
def test_errors_name_the_part_and_the_row(tmp_path, column, values, words):
    write_parts(tmp_path, DATA)
    part = {"sick": [0, 1, 1], "p": [0.1, 0.5, 0.9], "q": [0.2, 0.3, 0.4], "site": list("abc")}
    pq.write_table(pa.table({**part, column: values}), tmp_path / "part-1b.parquet")
    with pytest.raises(PartitionError, match=words) as caught:
        Report.from_source(tmp_path, **ASKED, labels=[0, 1])
    assert "part-1b.parquet" in caught.value.file


def test_rows_with_missing_values_are_left_out_and_counted(tmp_path):
    gaps = DATA["p"].copy()
    gaps[[3, 4_500, 11_000]] = np.nan
    write_parts(tmp_path, {**DATA, "p": gaps})
    found = Report.from_source(tmp_path, **ASKED, drop_missing=True)
    assert found.n_samples == len(gaps) - 3
    assert any("3 rows with missing values were left out" in note for note in found.notes)


def test_wrong_requests():
    with pytest.raises(ValueError, match="no rows in the data"):
        Report.from_source({"sick": [], "p": []}, label="sick", scores="p")
    with pytest.raises(ValueError, match="scores names 'p' twice"):
        Report.from_source({"y": [0, 1], "p": [0.1, 0.9]}, label="y", scores=["p", "p"])
    with pytest.raises(ValueError, match="no column 'sik'"):
        Report.from_source(DATA, label="sik", scores="p")
    with pytest.raises(ValueError, match="no rows"):
        Report.from_source(
            pa.table({"y": pa.array([], pa.int8()), "p": [0.5][:0]}), label="y", scores="p"
        )
    with pytest.raises(ValueError, match="only the class"):
        Report.from_source({"y": [1, 1], "p": [0.2, 0.4]}, label="y", scores="p")
    none = {"y": [0, 1], "p": [0.1, 0.9], "g": [None, None]}
    with pytest.raises(ValueError, match="column 'g' holds no group at all"):
        Report.from_source(none, label="y", scores="p", groups="g")
    for hold in (-1, None, "many"):
        with pytest.raises(ValueError, match=r"^hold must be a number of scores"):
            Report.from_source(DATA, **ASKED, hold=hold)


def test_costs_by_case_alone_are_costs():
    """As `--error-cost-column` alone: they were left out without a word."""
    data = {**DATA, "loss": np.arange(len(DATA["p"])) % 7 + 1.0}
    asked = {"label": "sick", "scores": "p", "error_cost": "loss", "calibrate": False}
    found = Report.from_source(data, **asked)
    assert found.models[0].policy is not None
    assert found.to_json() == Report.from_source(data, **asked, costs={}).to_json()


def test_text_that_spells_numbers_is_text_as_in_memory():
    """By alphabet: "9" is the later class, and "01" is another group than "1"."""
    n = len(DATA["p"])
    data = {"sick": np.where(DATA["sick"] == 1, "9", "10"), "p": DATA["p"]}
    data["site"] = np.array(["01", "1", "9", "10"])[np.arange(n) % 4]
    found = Report.from_source(data, label="sick", scores="p", groups="site", calibrate=False)
    memory = Report.from_predictions(
        data["sick"], {"p": data["p"]}, groups={"site": data["site"]}, calibrate=False, n_worst=0
    )
    assert [part.group for part in found.groups] == ["01", "1", "10", "9"]
    assert json.loads(found.to_json())["positive"] == "9"
    assert list(differences(plain(found), plain(memory), 9)) == []


@pytest.mark.parametrize("change", ["fewer", "labels", "none left"])
def test_rows_that_change_between_readings_are_refused(change, tmp_path, monkeypatch):
    """Figures of one reading and tests of another would be told as those of the same cases."""
    path, readings = tmp_path / "rows.parquet", []
    table = pa.table({name: DATA[name] for name in ("sick", "p", "q")})
    other = {
        "fewer": table.slice(0, table.num_rows // 2),
        # As many of each class, and the same scores: but of other cases.
        "labels": table.set_column(0, "sick", pa.array(np.roll(DATA["sick"], 1))),
        "none left": table.slice(0, 0),
    }[change]
    pq.write_table(table, path)
    read = LocalSource._reduce

    def replaced(self, add, merge, columns):
        readings.append(columns)
        if len(readings) == 3:  # labels, then cases, then pairs of models
            pq.write_table(other, path)
        return read(self, add, merge, columns)

    monkeypatch.setattr(LocalSource, "_reduce", replaced)
    asked = {"label": "sick", "scores": ["p", "q"], "hold": BEYOND, "calibrate": False}
    with pytest.raises(ValueError, match=r"gave other rows when it was read once more \("):
        Report.from_source(path, **asked)
    assert len(readings) == 3
    assert Report.from_source(table, **asked).n_samples == table.num_rows


def test_a_query_that_draws_at_random_is_refused_or_held():
    drawn = duckdb.arrow(pa.table(DATA)).query("t", "SELECT sick, p, random() AS q FROM t")
    asked = {"label": "sick", "scores": ["p", "q"], "calibrate": False}
    with pytest.raises(ValueError, match=r"draws at random.*hold=inf"):
        Report.from_source(drawn, hold=BEYOND, **asked)
    assert len(Report.from_source(drawn, **asked).models) == 2


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([10, 9, -1], ["-1", "9", "10"]),
        ([10.0, 9.0, -1.0], ["-1", "9", "10"]),
        (["10", "9", "-1"], ["-1", "10", "9"]),
        ([True, False, True], ["False", "True"]),
        (["True", "False", "x"], ["False", "True", "x"]),
    ],
)
def test_groups_have_the_names_and_the_order_of_memory(values, names):
    data = {"sick": DATA["sick"][:300], "p": DATA["p"][:300], "group": np.resize(values, 300)}
    there = Report.from_source(data, label="sick", scores="p", groups="group", calibrate=False)
    here = Report.from_predictions(data["sick"], data["p"], groups=data["group"], calibrate=False)
    for report in (there, here):
        assert [part.group for part in report.groups] == names
