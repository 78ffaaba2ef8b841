"""Sketches that a database sums: the same bytes as here, or a sentence that says what is wrong."""

from __future__ import annotations

import re
import sqlite3
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fragility import FragilitySketch
from fragility.distributed import bins_query, group_sketches
from fragility.scores.bin_rows import COLUMNS, SPLIT

from .reference import sql_rows

TYPES = {"y": "INTEGER", "p": "REAL", "w": "INTEGER", "g": "TEXT"}


def cases(n=3000, seed=0, n_bins=4096):
    """Ties, saturated scores, halves between bins, the least and the next to the largest float."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    part = n // 8
    p[:part] = np.round(p[:part], 2)
    p[part : 2 * part] = rng.integers(0, 2, part)
    p[2 * part : 3 * part] = (rng.integers(0, n_bins, part) + 0.5) / n_bins
    p[3 * part : 3 * part + 4] = 5e-324, np.nextafter(1.0, 0.0), 2.0**-1022, 0.5
    y = (rng.random(n) < p).astype(int)
    return y, p, rng.integers(0, 5, n)


def filled(columns, types=None):
    """A base with a table of these columns."""
    base = sqlite3.connect(":memory:")
    types = types or [TYPES.get(name, "") for name in columns]
    declared = ", ".join(f'"{name}" {kind}' for name, kind in zip(columns, types, strict=True))
    base.execute(f"CREATE TABLE scores ({declared})")
    marks = ", ".join("?" for _ in columns)
    rows = zip(*(np.asarray(v, dtype=object).tolist() for v in columns.values()), strict=True)
    base.executemany(f"INSERT INTO scores VALUES ({marks})", rows)
    return base


def asked(columns, **options):
    """Rows of the query by SQLite."""
    options = {"label": "y", "score": "p"} | options
    return filled(columns).execute(bins_query("scores", **options)).fetchall()


def as_dicts(rows, n_groups=0):
    names = [*(f"group_{k}" for k in range(1, n_groups + 1)), *COLUMNS]
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("n_bins", [16, 4096, 1 << 20])
def test_every_sum_is_that_of_the_definition(n_bins):
    y, p, w = cases(800, n_bins=n_bins)
    for weight, weights in ((None, np.ones_like(w)), ("w", w)):
        found = {}
        for row in as_dicts(asked({"y": y, "p": p, "w": w}, weight=weight, n_bins=n_bins)):
            sums = (row[f"{name}_high"] * SPLIT + row[f"{name}_low"] for name in ("x", "x_squares"))
            counts = (row[name] for name in ("n_rows", "n", "weight", "lightest"))
            key = row["label"], row["bin"]
            found[key] = (*counts, *sums, row["smallest"], row["largest"])
        assert found == sql_rows.rows(
            zip(y.tolist(), p.tolist(), weights.tolist(), strict=True), n_bins
        )


@pytest.mark.parametrize("n_bins", [16, 4096])
def test_the_bytes_are_those_of_the_scores(n_bins):
    y, p, w = cases(20_000)
    columns = {"y": y, "p": p, "w": w}
    for weight, weights in ((None, None), ("w", w)):
        rows = asked(columns, weight=weight, n_bins=n_bins)
        found = FragilitySketch.from_bins(rows, n_rows=y.size, n_bins=n_bins)
        assert found.to_bytes() == FragilitySketch(n_bins).update(y, p, weights).to_bytes()


def test_heavy_weights_and_zeros_of_both_signs():
    y, p, w = [0, 1, 0, 1, 1], [-0.0, 0.0, 0.4999, 0.7001, 0.0], [65536, 3, 1, 65536, 0]
    found = FragilitySketch.from_bins(asked({"y": y, "p": p, "w": w}, weight="w"), n_rows=5)
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        ways = (np.array(part)[order] for part in (y, p, w))
        assert FragilitySketch().update(*ways).to_bytes() == found.to_bytes()


def test_samples_that_differ_in_the_sign_of_zero_are_the_same():
    y = [0, 1, 0, 1]
    ways = [[0.0, 0.5, -0.0, 0.2], [-0.0, 0.5, 0.0, 0.2]]
    first, second = (FragilitySketch().update(y, p).to_bytes() for p in ways)
    assert first == second


def rows_of_dicts(rows):
    return as_dicts(rows)


@pytest.mark.parametrize(
    "table",
    [
        list,
        rows_of_dicts,
        lambda rows: pd.DataFrame(rows, columns=list(COLUMNS)),
        lambda rows: pl.DataFrame(rows, schema=list(COLUMNS), orient="row"),
        lambda rows: pa.Table.from_pylist(as_dicts(rows)),
        lambda rows: pa.Table.from_pylist(as_dicts(rows)).to_reader(),
        lambda rows: [tuple(Decimal(v) if isinstance(v, int) else v for v in r) for r in rows],
        lambda rows: pd.DataFrame(rows, columns=list(COLUMNS)).astype({"bin": float}),
        lambda rows: rows[::-1],
    ],
    ids=["tuples", "dicts", "pandas", "polars", "arrow", "stream", "decimals", "floats", "order"],
)
def test_rows_of_any_kind(table):
    y, p, w = cases()
    wanted = FragilitySketch().update(y, p, w)
    rows = asked({"y": y, "p": p, "w": w}, weight="w")
    assert FragilitySketch.from_bins(table(rows), n_rows=y.size).to_bytes() == wanted.to_bytes()


def test_rows_of_sqlite_have_names():
    base = filled({"y": [0, 1], "p": [0.2, 0.7]})
    base.row_factory = sqlite3.Row
    rows = base.execute(bins_query("scores", label="y", score="p")).fetchall()
    assert FragilitySketch.from_bins(rows, n_rows=2) == FragilitySketch().update([0, 1], [0.2, 0.7])


def test_an_empty_table():
    assert asked({"y": [], "p": []}) == []
    for labels in (None, [0, 1]):
        wanted = FragilitySketch(labels=labels)
        assert FragilitySketch.from_bins([], n_rows=0, labels=labels) == wanted
    assert group_sketches([], n_rows=0) == {}


def test_no_case_carries_weight():
    rows = asked({"y": [0, 1], "p": [0.2, 0.7], "w": [0, 0]}, weight="w")
    wanted = FragilitySketch().update([0, 1], [0.2, 0.7], [0, 0])
    assert FragilitySketch.from_bins(rows, n_rows=2).to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize(
    ("labels", "pos_label"), [(["no", "yes"], None), (["yes", "no"], "yes"), (None, "no")]
)
def test_text_labels_and_which_is_positive(labels, pos_label):
    y, p, _ = cases()
    text = np.array(["no", "yes"])[y]
    found = FragilitySketch.from_bins(
        asked({"y": text, "p": p}), n_rows=y.size, labels=labels, pos_label=pos_label
    )
    wanted = FragilitySketch(labels=labels, pos_label=pos_label).update(text, p)
    assert found.to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize("kind", [bool, float, Decimal, np.bool_, np.int8])
def test_labels_of_other_types(kind):
    y, p, _ = cases()
    rows = [(kind(row[0]), *row[1:]) for row in asked({"y": y, "p": p})]
    wanted = FragilitySketch().update(y, p).to_bytes()
    assert FragilitySketch.from_bins(rows, n_rows=y.size).to_bytes() == wanted


def test_one_class_needs_the_name_of_the_other():
    rows = asked({"y": [1, 1], "p": [0.2, 0.7]})
    with pytest.raises(ValueError, match=r"one class only, 1.*labels="):
        FragilitySketch.from_bins(rows, n_rows=2)
    found = FragilitySketch.from_bins(rows, n_rows=2, labels=[0, 1])
    assert found.to_bytes() == FragilitySketch(labels=[0, 1]).update([1, 1], [0.2, 0.7]).to_bytes()


@pytest.mark.parametrize(
    ("y", "p", "w", "said"),
    [
        ([0, 1], [0.5, None], [1, 1], "Of 2 rows of the table 1 have no score (NULL)."),
        ([0, 1], [0.5, 1.5], [1, 1], "1 have a score that is no number from 0 to 1."),
        ([0, 1], [-1e-9, 0.5], [1, 1], "1 have a score that is no number from 0 to 1."),
        ([0, 1], [float("inf"), float("-inf")], [1, 1], "2 have a score that is no number"),
        ([0, 1], ["abc", 0.5], [1, 1], "1 have a score that is no number from 0 to 1."),
        ([None, 1, 0], [0.1, 0.2, 0.3], [1, 1, 1], "1 have no label (NULL)."),
        ([0, 1], [0.1, 0.2], [1, 0.5], "1 have a weight that is not a whole number"),
        ([0, 1], [0.1, 0.2], [1, -1], "1 have a weight that is not a whole number"),
        ([0, 1], [0.1, 0.2], [65537, None], "2 have a weight that is not a whole number"),
        ([0, 1, 2], [0.1, 0.2, 0.3], [1, 1, 1], "two classes; there are 0, 1, 2."),
        ([0, 1, "a"], [0.1, 0.2, 0.3], [1, 1, 1], "mixes labels that cannot be ordered"),
        ([0, 1.5], [0.1, 0.2], [1, 1], "not class labels, such as 1.5"),
    ],
)
def test_what_cannot_be_counted_is_named(y, p, w, said):
    base = filled({"y": y, "p": p, "w": w}, types=["", "", ""])
    query = bins_query("scores", label="y", score="p", weight="w")
    with pytest.raises(ValueError, match=re.escape(said)):
        FragilitySketch.from_bins(base.execute(query).fetchall(), n_rows=len(y))


@pytest.mark.parametrize("kind", ["", "TEXT", "REAL"])
def test_text_that_only_begins_like_a_number_is_none(kind):
    """SQLite makes 0.5 of the first and 0 of the second where it is told to make a number."""
    base = filled({"y": [0, 1, 1], "p": ["0.5 or so", "0x1", "0.25"]}, types=["", kind])
    rows = base.execute(bins_query("scores", label="y", score="p")).fetchall()
    with pytest.raises(ValueError, match="Of 3 rows of the table 2 have a score that is no number"):
        FragilitySketch.from_bins(rows, n_rows=3)


def test_all_flaws_are_said_at_once():
    rows = asked({"y": [0, 1, 1, None, 0], "p": [None, 2.0, None, 0.5, 0.5]})
    said = "Of 5 rows .* 2 have no score .* 1 have a score that is no number .* 1 have no label"
    with pytest.raises(ValueError, match=said):
        FragilitySketch.from_bins(rows, n_rows=5)


def test_a_label_that_is_not_named():
    rows = asked({"y": [0, 1], "p": [0.1, 0.2]})
    with pytest.raises(ValueError, match="labels does not name: 0"):
        FragilitySketch.from_bins(rows, n_rows=2, labels=[1, 2])


GOOD = asked(
    {"y": [0, 1, 1, 1, 0], "p": [0.3, 0.7, 0.70001, 0.70002, 0.9], "w": [1, 2, 2, 3, 1]}, weight="w"
)


def changed(place=None, **values):
    rows = as_dicts(GOOD)
    place = next(k for k, row in enumerate(rows) if row["n"] == 3) if place is None else place
    rows[place] |= {name: change(rows[place][name]) for name, change in values.items()}
    return rows


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([*GOOD, GOOD[0]], "hold 6 rows"),
        (GOOD[1:], "hold 4 rows, but the table is said to have 5"),
        (changed(n_rows=lambda n: 0), "stands for no row"),
        (changed(n_rows=lambda n: -n), "stands for no row"),
        (changed(n=lambda n: -n), "it has no cases"),
        (changed(n=lambda n: 4), "more cases that carry weight than rows"),
        (changed(n=lambda n: 0), "no cases, but sums"),
        (changed(n=lambda n: 1), "no cases have such weights"),
        (changed(weight=lambda w: 5), "no cases have such weights"),
        (changed(weight=lambda w: w + 2**40), "no cases have such weights"),
        (changed(lightest=lambda w: 3), "no cases have such weights"),
        (changed(lightest=lambda w: None), "no cases have such weights"),
        (changed(bin=lambda b: b + 1), "its extreme scores are not in that bin"),
        (changed(bin=lambda b: 5000), "there are bins from 0 to 4096"),
        (changed(bin=lambda b: -9), "there are bins from 0 to 4096"),
        (changed(smallest=lambda p: 0.1), "its extreme scores are not in that bin"),
        (changed(largest=lambda p: 1.1), "its extreme scores are not in that bin"),
        (changed(smallest=lambda p: None), "its extreme scores are not in that bin"),
        (changed(smallest=lambda p: p + 3e-5), "its extreme scores are not in that bin"),
        (changed(x_low=lambda x: x + 2**33), "no scores in that bin have these sums"),
        (changed(x_high=lambda x: -x - 4096), "no scores in that bin have these sums"),
        (changed(x_squares_low=lambda x: 0), "no scores in that bin have these sums"),
        (changed(x_squares_low=lambda x: x + 2**16), "no scores in that bin have these sums"),
        (changed(0, x_low=lambda x: x + 1), "no scores in that bin have these sums"),
        (changed(x_low=lambda x: 0.5), "'x_low' of the bins must hold whole numbers; got 0.5"),
        (changed(n=lambda n: "3"), "'n' of the bins must hold whole numbers; got '3'"),
        (changed(n=lambda n: None), "'n' of the bins has a missing value"),
        (changed(x_low=lambda x: 2**70), "must hold whole numbers"),
        (changed(smallest=lambda p: "a"), "'smallest' of the bins must hold numbers; got 'a'"),
        (changed(n_bins=lambda n: 16), "are of 16 bins, not of 4096: give n_bins="),
        ([row[1:] for row in GOOD], "must have the 13 columns of bins_query"),
        ([("a", *row) for row in GOOD], "of groups: use fragility.distributed.group_sketches"),
        ([{"label": 0}], "lack the columns 'bin'"),
        ([*as_dicts(GOOD)[1:], {"label": 1}], "do not all have the same columns"),
        ("rows", "must be a DataFrame, an Arrow table or a list"),
        (7, "must be a DataFrame, an Arrow table or a list"),
    ],
)
def test_impossible_rows_are_refused(rows, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        FragilitySketch.from_bins(rows, n_rows=5)


def test_a_row_that_is_there_twice():
    twin = [GOOD[0], *GOOD]
    with pytest.raises(ValueError, match="There are two rows of class"):
        FragilitySketch.from_bins(twin, n_rows=6)
    assert FragilitySketch.from_bins(GOOD, n_rows=5).support.tolist() == [2, 3]


def test_more_rows_than_sums_can_hold_are_refused():
    rows = [{**row, "n_rows": 2**35} for row in as_dicts(GOOD)]
    with pytest.raises(ValueError, match="could overflow"):
        FragilitySketch.from_bins(rows, n_rows=len(rows) * 2**35)


def test_sums_beyond_64_bits():
    """2³⁴ cases of the largest weight at the edge of a bin: no part overflows, the sum does."""
    n, w, edge = 2**34, 65536, 0.5 / 4096  # which belongs to bin 0, at x = 1/2
    sums = {"x": 2**36 * w, "x_squares": 2**21 * w}
    rows = []
    for label in (0, 1):
        row = dict.fromkeys(COLUMNS, 0) | {"label": label, "n_bins": 4096, "n_rows": n, "n": n}
        row |= {"weight": n * w, "lightest": w, "smallest": edge, "largest": edge}
        for name, each in sums.items():
            high = round(each / SPLIT)
            row |= {f"{name}_high": n * high, f"{name}_low": n * (each - high * SPLIT)}
        assert all(abs(row[name]) < 2**63 for name in COLUMNS)
        rows.append(row)
    found = FragilitySketch.from_bins(rows, n_rows=2 * n)
    wanted = FragilitySketch().update([0, 1], [edge, edge], [w, w])
    for _ in range(34):
        wanted.merge(wanted)
    assert found.to_bytes() == wanted.to_bytes()


def test_a_database_does_not_overflow():
    """5,000 cases of the largest weight at the edge of a bin: a single sum would be above 2⁶³."""
    n, edge = 5000, 0.5 / 4096
    y, w = np.arange(n) % 2, np.full(n, 65536)
    rows = asked({"y": y, "p": np.full(n, edge), "w": w}, weight="w")
    assert sum(w.tolist()) * 2**36 > 2**63
    wanted = FragilitySketch().update(y, np.full(n, edge), w)
    assert FragilitySketch.from_bins(rows, n_rows=n).to_bytes() == wanted.to_bytes()


def test_groups():
    y, p, _ = cases()
    names = np.array(["a", "b", "one class", None], dtype=object)
    g = names[np.random.default_rng(1).integers(0, 4, y.size)]
    y[g == "one class"] = 1
    found = group_sketches(asked({"y": y, "p": p, "g": g}, by="g"), n_rows=y.size)
    assert set(found) == {"a", "b", "one class", None}
    for name, sketch in found.items():
        own = np.array([each == name for each in g])
        wanted = FragilitySketch(labels=[0, 1]).update(y[own], p[own])
        assert sketch.to_bytes() == wanted.to_bytes()
    total = sum(found.values())
    assert total.to_bytes() == FragilitySketch().update(y, p).to_bytes()


def test_groups_of_several_columns():
    columns = {"y": [0, 1, 1], "p": [0.1, 0.2, 0.3], "g": ["a", "a", "b"], "w": [1, 1, 2]}
    rows = asked(columns, by=["g", "w"])
    for table in (rows, pd.DataFrame(as_dicts(rows, 2))):
        found = group_sketches(table, n_rows=3, labels=[0, 1])
        assert {key: sketch.support.tolist() for key, sketch in found.items()} == {
            ("a", 1): [1, 1],
            ("b", 2): [0, 1],
        }


@pytest.mark.parametrize("name", ['my "score"', "a`b", "order", "p; DROP TABLE scores", "größe"])
def test_names_are_quoted(name):
    base = filled({"y": [0, 1], name.replace('"', '""'): [0.1, 0.2]})
    with pytest.raises(ValueError, match="needs quotes as the name of a column"):
        bins_query("scores", label="y", score=name)
    for quote in ('"', "`"):
        query = bins_query("scores", label="y", score=name, quote=quote)
        found = FragilitySketch.from_bins(base.execute(query).fetchall(), n_rows=2)
        assert found == FragilitySketch().update([0, 1], [0.1, 0.2])


def test_tables_by_name_or_query():
    base = filled({"y": [0, 1, 1], "p": [0.1, 0.2, None]})
    for table, n in (
        ("main.scores", 3),
        (" (SELECT y, p FROM scores WHERE p IS NOT NULL) ", 2),
    ):
        rows = base.execute(bins_query(table, label="y", score="p")).fetchall()
        assert sum(row[3] for row in rows) == n
    assert '"main"."scores"' in bins_query("main.scores", label="y", score="p", quote='"')


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": ""}, "The name of a table must be text; got ''"),
        ({"table": None}, "The name of a table must be text; got None"),
        ({"table": "a..b", "quote": '"'}, "A part of the name of the table is empty"),
        ({"table": "scores WHERE 1"}, "needs quotes as the name of a table"),
        ({"label": 3}, "The name of a column must be text; got 3"),
        ({"score": "p\0", "quote": '"'}, "The name of a column must be text"),
        ({"by": ["g", "select"]}, "'select' needs quotes"),
        ({"weight": "current_date"}, "'current_date' needs quotes"),
        ({"quote": "'"}, "quote must be"),
        ({"n_bins": 1000}, "n_bins must be a power of two"),
    ],
)
def test_names_that_cannot_be(options, said):
    options = {"table": "scores", "label": "y", "score": "p"} | options
    with pytest.raises(ValueError, match=re.escape(said)):
        bins_query(**options)
