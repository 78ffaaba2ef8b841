"""Outcomes in files: whether answers were right and the confidence, and words for all else."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from fragility.tables import OutcomeFile, open_table, parse_outcomes, text_files, write_table
from fragility.tables.truths import truth_of

from .reference.outcome_rows import RIGHT, WRONG, outcomes
from .test_tables import file, refused


def opened(folder, content, correct="ok", confidence="p", declined=None, name="a.csv", **options):
    path = file(folder, content, name) if isinstance(content, str | bytes) else content
    return OutcomeFile(
        open_table(path),
        correct={"m": correct},
        confidence={"m": confidence},
        declined=None if declined is None else {"m": declined},
        **options,
    )


def refuse(folder, content, *words, **options):
    """Both ways of reading refuse, with the same line."""
    message = refused(lambda: opened(folder, content, **options).read(), *words)
    assert message == refused(lambda: list(opened(folder, content, **options).batches()))
    return message


def cases(batch, model="m"):
    """Row, right or wrong, confidence, None where declined."""
    sure = [None if math.isnan(p) else p for p in batch.confidence[model].tolist()]
    rows = batch.row_numbers.tolist()
    return list(zip(rows, batch.correct[model].tolist(), sure, strict=True))


def drawn(n=300, seed=0, blank=False):
    rng = np.random.default_rng(seed)
    kinds = [("1", "0"), ("true", "false"), ("Yes", "NO"), ("correct", "incorrect"), ("C", "I")]
    lines = ["id,ok,p,silent,w,site"]
    for k in range(n):
        yes, no = kinds[rng.integers(len(kinds))]
        silent = rng.random() < 0.2
        right = yes if rng.random() < 0.6 else no
        p = repr(float(rng.random()))
        if silent:
            right, p = rng.choice(["", right]), rng.choice(["", p, "NA"])
        elif blank and rng.random() < 0.1:
            right, p = ("", p) if rng.random() < 0.5 else (right, "")
        site, told = rng.choice(["a", "b"]), rng.choice([yes, "true"]) if silent else no
        lines.append(f"{k},{right},{p},{told},{rng.integers(1, 4)},{site}")
    return "\n".join(lines) + "\n"


class TestRead:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("blank", [False, True])
    def test_against_the_csv_module(self, tmp_path, monkeypatch, seed, blank):
        monkeypatch.setattr(text_files, "_BLOCK", 700)
        text = drawn(seed=seed, blank=blank)
        made = opened(
            tmp_path, text, declined="silent", weight="w", groups=["site"], drop_missing=blank
        )
        wanted = outcomes(text, "ok", "p", "silent", drop=blank)
        read = made.read()
        assert cases(read) == wanted
        assert read.declined["m"].tolist() == [p is None for _, _, p in wanted]
        assert read.correct["m"].dtype == read.declined["m"].dtype == np.bool_
        assert read.confidence["m"].dtype == np.float64
        parts = list(made.batches())
        assert len(parts) > 3
        assert [case for part in parts for case in cases(part)] == wanted
        np.testing.assert_array_equal(read.groups, np.concatenate([p.groups for p in parts]))
        np.testing.assert_array_equal(read.weights, np.concatenate([p.weights for p in parts]))
        assert (made.n_rows, made.n_dropped) == (len(wanted), 300 - len(wanted))
        assert (made.n_dropped > 0) == blank
        assert made.groups == {"site": ["a", "b"]}

    def test_kinds_of_files_and_values(self, tmp_path):
        for values in ([True, False, True], [1, 0, 1], [1.0, 0.0, 1.0], ["C", "I", "C"]):
            table = pa.table({"ok": values, "p": pa.array([0.9, 0.5, 1], pa.float32())})
            for ending in (".csv", ".parquet", ".arrow"):
                write_table(table, tmp_path / f"t{ending}")
                read = opened(tmp_path, tmp_path / f"t{ending}").read()
                assert read.correct["m"].tolist() == [True, False, True]
                assert read.declined == {"m": None}
                assert read.confidence["m"].dtype == np.float64
        text = '{"s": {"v": true}, "p": "0.5"}\n{"s": {"v": "I"}, "p": 1}\n'
        made = opened(tmp_path, text, "s.v", name="a.jsonl").read()
        assert cases(made) == [(1, True, 0.5), (2, False, 1.0)]

    def test_spellings(self):
        for word in RIGHT:
            assert truth_of(word) is truth_of(word.upper()) is truth_of(f" {word} ") is True
        for word in WRONG:
            assert truth_of(word) is truth_of(word.upper()) is truth_of(f" {word} ") is False
        for other in ("", "P", "N", "n", "y", "2", "-1", 0.5, "0.5", float("nan"), "maybe", 10**40):
            assert truth_of(other) is None

    def test_several_models(self, tmp_path):
        text = "a,b,pa,pb,no_a\n1,0,0.5,0.25,0\n,1,,0.75,1\n0,1,1,0.5,0\n"
        made = OutcomeFile(
            open_table(file(tmp_path, text)),
            correct={"one": "a", "two": "b"},
            confidence={"one": "pa", "two": "pb"},
            declined={"one": "no_a"},
        )
        assert made.models == ["one", "two"]
        read = made.read()
        assert cases(read, "one") == [(1, True, 0.5), (2, False, None), (3, False, 1.0)]
        assert cases(read, "two") == [(1, False, 0.25), (2, True, 0.75), (3, True, 0.5)]
        assert read.declined["two"] is None

    def test_one_column_for_two_models(self, tmp_path):
        """A row that one model declined still needs what the other one has."""
        text = "ok,pa,pb,no_a,no_b\n1,0.5,0.25,0,0\n,,,1,1\n,,0.5,1,0\n"
        table = open_table(file(tmp_path, text))
        made = OutcomeFile(
            table,
            correct={"one": "ok", "two": "ok"},
            confidence={"one": "pa", "two": "pb"},
            declined={"one": "no_a", "two": "no_b"},
        )
        refused(made.read, "'ok' has missing values in 1 of 3 rows (data row 3,")

    def test_clusters_costs_and_ranges(self, tmp_path):
        text = "ok,p,who,age,cost\n1,0.5,x,30,2\n0,0.5,y,50,0\n1,0.25,x,70,1.5\n"
        made = opened(tmp_path, text, cluster="who", groups=["age:40,60", "who"], error_cost="cost")
        read = made.read()
        assert read.clusters.tolist() == [0, 1, 0]
        assert read.error_costs.tolist() == [2.0, 0.0, 1.5]
        assert read.groups.tolist() == [[0, 0, 0], [1, 1, 1], [2, 0, 2]]
        assert made.groups["age × who"][2] == "60 and over × x"

    def test_rounding_beyond_one(self, tmp_path):
        read = opened(tmp_path, "ok,p\n1,1.0000000001\n0,-1e-12\n").read()
        assert read.confidence["m"].tolist() == [1.0, 0.0]

    def test_a_part_without_answers(self, tmp_path):
        read = opened(tmp_path, "ok,p,no\n,,1\n,,yes\n", declined="no").read()
        assert cases(read) == [(1, False, None), (2, False, None)]


class TestRefused:
    def test_partial_credit(self, tmp_path):
        for value in ("0.5", "P", "partial", "1e-3"):
            text = f"ok,p\n1,0.5\n{value},0.5\n0,0.5\n"
            message = refuse(tmp_path, text, "'ok' holds partial credit", f"{value!r}")
            assert "in 1 of 3 rows (data row 2" in message
            assert "write 1 or 0" in message

    def test_no_answer(self, tmp_path):
        refuse(tmp_path, "ok,p\nC,0.5\nN,0.5\n", "'N', for no answer", "--declined", "data row 2")

    def test_other_values(self, tmp_path):
        text = "ok,p\n1,0.5\nA,0.5\n2,0.5\n"
        message = refuse(tmp_path, text, "neither yes nor no", "'A', '2'", "in 2 of 3 rows")
        assert "--label and --score" in message
        text = f"ok,p\n1,0.5\n0.{50 * '3'},0.5\n"
        refuse(tmp_path, text, "neither yes nor no", "'0.3333", "data row 2")
        text = "ok,p,no\n1,0.5,0\n1,0.5,perhaps\n"
        refuse(tmp_path, text, "'no'", "neither yes nor no", "'perhaps'", declined="no")
        stamps = pa.table({"ok": pa.array([1, 2], pa.date32()), "p": [0.5, 0.5]})
        write_table(stamps, tmp_path / "d.parquet")
        refuse(tmp_path, tmp_path / "d.parquet", "'ok' holds values of type date32")

    def test_missing_values(self, tmp_path):
        text = "ok,p,no\n1,0.5,0\n,0.5,0\n,,1\n0,,0\n"
        message = refuse(tmp_path, text, "'ok' has missing values in 1 of 4 rows", declined="no")
        assert "'p' (1)" in message
        assert "--drop-missing" in message
        refuse(tmp_path, text, "'ok' has missing values in 2 of 4 rows", "'p' (2)")
        refuse(tmp_path, "ok,p,no\n1,0.5,\n0,0.5,1\n", "'no' has missing values", declined="no")
        text = "ok,p\n,0.5\n0,\n"
        refuse(tmp_path, text, "every one of the 2 rows has a missing value", drop_missing=True)

    def test_a_declined_row_is_of_a_group_all_the_same(self, tmp_path):
        text = "ok,p,no\n1,0.5,0\n0,0.5,0\n,,1\n"
        for column, options in (
            ("ok", {"groups": ["ok"]}),
            ("ok", {"cluster": "ok"}),
            ("p", {"groups": ["p:0.3,0.6"]}),
            ("p", {"weight": "p"}),
        ):
            told = f"column '{column}' has missing values in 1 of 3 rows (data row 3"
            refuse(tmp_path, text, told, declined="no", **options)

    def test_confidences(self, tmp_path):
        refuse(tmp_path, "ok,p\n1,93\n0,50\n", "'p' must hold probabilities", "division by 100")
        refuse(tmp_path, "ok,p\n1,high\n0,low\n", "'p' holds text, not numbers")
        refuse(tmp_path, "ok,p\n1,inf\n0,0.5\n", "'p' holds infinite values")

    def test_weights(self, tmp_path):
        text = "ok,p,w\n1,0.5,0\n0,0.5,0\n"
        refuse(tmp_path, text, "every weight in column 'w' is zero", weight="w")
        refuse(tmp_path, text.replace("0\n", "-1\n"), "weights of zero or more", weight="w")

    def test_columns(self, tmp_path):
        text = "ok,p\n1,0.5\n0,0.5\n"
        refused(lambda: opened(tmp_path, text, "okay"), "no column 'okay'", "Did you mean 'ok'")
        refused(lambda: opened(tmp_path, text, "p"), "'p' is named as correct, declined, group")
        table = open_table(file(tmp_path, text))
        refused(
            lambda: OutcomeFile(table, correct={"a": "ok"}, confidence={"b": "p"}),
            "'a' and 'b'",
        )
        refused(
            lambda: OutcomeFile(
                table, correct={"a": "ok"}, confidence={"a": "p"}, declined={"b": "ok"}
            ),
            "declined names 'b'",
        )
        refused(lambda: OutcomeFile(table, correct={}, confidence={}), "none and none")


class TestOptions:
    def test_forms(self):
        assert parse_outcomes(["ok"], ["p"]) == ({"p": "ok"}, {"p": "p"}, {})
        assert parse_outcomes(["ok"], ["p"], ["no"]).declined == {"p": "no"}
        assert parse_outcomes(["ok"], ["new=p"]) == ({"new": "ok"}, {"new": "p"}, {})
        made = parse_outcomes(["b=ob", "a=oa"], ["a=pa", "b=pb"], ["b=nb"])
        assert made == ({"a": "oa", "b": "ob"}, {"a": "pa", "b": "pb"}, {"b": "nb"})
        assert list(made.correct) == ["a", "b"]
        made = parse_outcomes(["ok"], ["a=p", "q"], ["no"])  # of the same answers
        assert made == ({"a": "ok", "q": "ok"}, {"a": "p", "q": "q"}, {"a": "no", "q": "no"})
        assert parse_outcomes(["o=k"], ["x=p"], available=["o=k", "p"]) == (
            {"x": "o=k"}, {"x": "p"}, {},
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (([], ["p"]), "--correct is not given"),
            ((["ok"], []), "--confidence is not given"),
            ((["ok", "a=ok"], ["a=p", "b=q"]), "'ok' for no model"),
            ((["ok", "o"], ["p"]), "--correct names several columns, and 'ok', 'o' for no model"),
            ((["ok"], ["p", "p"]), "--confidence is given twice for the model 'p'"),
            ((["a=ok"], ["b=p"]), "Model 'b' has --confidence but no --correct"),
            ((["a=ok", "b=ok"], ["b=p"]), "Model 'a' has --correct but no --confidence"),
            ((["a=ok"], ["a=p"], ["b=no"]), "Model 'b' has --declined but no --correct"),
            ((["a=ok", "a=o"], ["a=p"]), "--correct is given twice for the model 'a'"),
            ((["a=ok,o"], ["a=p"]), "names 2 columns"),
            ((["a="], ["a=p"]), "empty part"),
            (([" "], ["p"]), "names no column"),
        ],
    )
    def test_refused(self, given, words):
        refused(lambda: parse_outcomes(*given), words)
