"""JSON lines: the same arrays and reports as CSV, and words for everything else."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragility.report import blocks
from fragility.tables import (
    PredictionFile,
    json_documents,
    json_files,
    open_table,
    text_files,
    write_table,
)
from fragility.tables.json_paths import ABSENT, leaves, value_at

from .command import fragility, patients, unsourced, write_csv
from .fuzzing.readers import run
from .reference import json_rows
from .test_prediction_files import refuse
from .test_tables import file, refuse_file, refused


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


KEYS = st.text("ab.01", max_size=3)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["x", "0.5"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


class TestPaths:
    @given(value=st.dictionaries(KEYS, VALUES, max_size=4), path=st.text("ab.01", max_size=6))
    def test_against_all_paths_written_out(self, value, path):
        found = value_at(value, path)
        assert ([] if found is ABSENT else [found]) == json_rows.value_at(value, path)
        for dotted in leaves(value):
            (wanted,) = json_rows.value_at(value, dotted)
            assert value_at(value, dotted) == wanted

    @given(value=st.dictionaries(KEYS, VALUES, max_size=4))
    def test_leaves_are_all_single_values(self, value):
        every = json_rows.every_path(value)
        single = [".".join(path) for path, part in every if not isinstance(part, dict | list)]
        assert list(leaves(value)) == single

    def test_places_in_lists_are_plain_numbers(self):
        for path in ("a.-1", "a.01", "a.+1", "a.1 ", "a.²", "a.", "a.9999999999999", "a.2"):
            assert value_at({"a": [1, 2]}, path) is ABSENT
        assert value_at({"a": [1, 2]}, "a.1") == 2


CELLS = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0, 1, None, "", "NA", " 0.5", "1e-3", "0.30000000000000004"]),
)


class TestAsCsv:
    """Both kinds of file hold the same table, and give the same arrays."""

    @pytest.mark.slow
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
    @given(data=st.data())
    def test_any_table(self, tmp_path, data):
        kinds = [[0, 1], [10, -9], ["yes", "ü"], ["b", "1"], [True, False], [1.0, "2"]]
        kind = data.draw(st.sampled_from(kinds))
        row = st.fixed_dictionaries(
            {"y": st.sampled_from([*kind, None]), "p": CELLS, "q": CELLS},
            optional={"note": st.text('a,"\n é\u2028', max_size=4)},
        )
        rows = data.draw(st.lists(row, max_size=20))
        rows += [{"y": kind[0], "p": 0.5, "q": 1}, {"y": kind[1], "p": 0.25, "q": 0}]
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["y", "p", "q"])
        writer.writerows([row["y"], row["p"], row["q"]] for row in rows)
        content = "\n \n".join(json.dumps({"case": r}, ensure_ascii=False) for r in rows).encode()
        if data.draw(st.booleans()):
            content = gzip.compress(content)
        plain = PredictionFile(
            open_table(file(tmp_path, text.getvalue())),
            label="y", models={"p": ["p"], "q": ["q"]}, drop_missing=True,
        )  # fmt: skip
        nested = PredictionFile(
            open_table(file(tmp_path, content, "table.jsonl")),
            label="case.y", models={"p": ["case.p"], "q": ["case.q"]}, drop_missing=True,
        )  # fmt: skip
        for one, other in ((plain.read(), nested.read()), *zip(plain.batches(), nested.batches())):  # noqa: B905
            assert one.codes.tolist() == other.codes.tolist()
            assert one.row_numbers.tolist() == other.row_numbers.tolist()
            for model in ("p", "q"):
                assert one.scores[model].tolist() == other.scores[model].tolist()
                assert one.scores[model].dtype == other.scores[model].dtype
        assert plain.classes == nested.classes
        assert plain.n_dropped == nested.n_dropped

    @pytest.mark.slow
    @pytest.mark.parametrize("way", [["--error-cost", "5"], ["--hold", "0", "--no-calibration"]])
    def test_reports_are_equal_to_the_last_digit(self, tmp_path, way):
        data = patients(120)
        names = [*data]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*data.values(), strict=True)]
        write_csv(tmp_path / "p.csv", data)
        file(tmp_path, lines(rows), "p.jsonl")
        file(tmp_path, gzip.compress(lines(rows).encode()), "p.jsonl.gz")
        file(tmp_path, json.dumps(rows, indent=2), "p.json")
        asked = ["--label", "sick", "--score", "fair", "--score", "bold", "--weight", "weight"]
        asked += ["--group", "sex", "--json", *way]
        wanted = fragility("evaluate", tmp_path / "p.csv", *asked)
        assert wanted.code == 0
        for name in ("p.jsonl", "p.json") if "--hold" in way else ("p.jsonl.gz",):
            found = fragility("evaluate", tmp_path / name, *asked)
            assert replace(found, out=unsourced(found.out)) == replace(
                wanted, out=unsourced(wanted.out)
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["classes", "several", "answers"])
    def test_wherever_parts_end(self, tmp_path, monkeypatch, kind):
        """Beyond what is held, sums over the cases are the same, too."""
        monkeypatch.setattr(text_files, "_BLOCK", 3_000)
        monkeypatch.setattr(json_files, "_ROWS_AT_ONCE", 37)
        monkeypatch.setattr(blocks, "BLOCK", 64)
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.ones(3), 400)
        data = {
            "y": [*map(int, rng.integers(0, 3 if kind == "several" else 2, 400))],
            **{f"p{name}": p[:, k].tolist() for k, name in enumerate("abc")},
            "q": rng.random(400).tolist(),
            "z": [*map(int, rng.integers(0, 2, 400))],
            "w": [*map(int, rng.integers(1, 4, 400))],
            "who": [*map(int, rng.integers(0, 90, 400))],
        }
        asked = {
            "classes": ["--label", "y", "--score", "pa", "--score", "q", "--weight", "w"],
            "several": ["--label", "y", "--score", "m=pa,pb,pc", "--score", "n=pb,pc,pa"],
            "answers": ["--correct", "a=y", "--confidence", "a=pa", "--correct", "b=z"],
        }[kind]
        asked += {"several": ["--classes", "0,1,2"], "answers": ["--confidence", "b=q"]}.get(
            kind, []
        )
        asked += ["--cluster", "who", "--hold", "0", "--json"]
        rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        write_csv(tmp_path / "p.csv", data)
        file(tmp_path, lines(rows), "p.jsonl")
        write_table(pa.table(data), tmp_path / "p.parquet")
        wanted = run("evaluate", tmp_path / "p.csv", *asked)
        assert wanted[0] == 0
        for ending in ("jsonl", "parquet"):
            code, out, err = run("evaluate", tmp_path / f"p.{ending}", *asked)
            assert (code, unsourced(out), err) == (wanted[0], unsourced(wanted[1]), wanted[2])

    def test_types_are_found_as_in_csv(self, tmp_path):
        table = pa.table(
            {
                "whole": [1, -2, None],
                "real": [0.5, None, 1e300],
                "truth": [True, False, None],
                "day": ["2020-01-31", "2021-12-01", ""],
                "text": ['a "b"', "c,\nd", "NA"],
                "none": pa.nulls(3, pa.string()),
            }
        )
        write_table(table, tmp_path / "a.csv")
        file(tmp_path, lines(table.to_pylist()), "a.jsonl")
        read = open_table(tmp_path / "a.jsonl").read()
        assert read.equals(open_table(tmp_path / "a.csv").read())
        assert read.column("day").type == pa.date32()


class TestRows:
    def test_columns_that_come_late(self, tmp_path, monkeypatch):
        monkeypatch.setattr(json_files, "_ROWS_LOOKED_AT", 2)
        rows = [{"y": k % 2, "p": k / 9} for k in range(5)] + [{"y": 1, "p": 1, "late": {"z": 3}}]
        table = open_table(file(tmp_path, lines(rows), "a.jsonl"))
        assert table.column_names == ["y", "p"]
        assert table.read(["late.z"]).column(0).to_pylist() == [None] * 5 + [3]
        assert table.read().column_names == ["y", "p", "late.z"]
        refused(lambda: table.read(["late.y"]), "there is no column 'late.y'")

    def test_parts(self, tmp_path, monkeypatch):
        monkeypatch.setattr(json_files, "_ROWS_AT_ONCE", 7)
        rows = [{"y": k} for k in range(20)]
        table = open_table(file(tmp_path, lines(rows), "a.jsonl"))
        source = table.batches()
        sizes = [batch.num_rows for batch in source]
        assert sizes == [7, 7, 6]
        assert source.fraction == 1.0

    def test_line_ends_and_blank_lines(self, tmp_path):
        text = '\ufeff\r\n{"y": 1}\r\n\r\n \t\n{"y": 2}'
        table = open_table(file(tmp_path, text, "a.csv"))
        assert table.kind == "JSON lines"
        assert table.read().to_pylist() == [{"y": 1}, {"y": 2}]

    def test_lines_across_blocks(self):
        text = "".join(f'{{"y": {k}}}\n\n' for k in range(40)).encode() + b'{"y": 40}'
        whole = list(json_files._lines([text]))
        assert [number for number, _, _ in whole] == list(range(1, 82, 2))
        for size in (1, 2, 3, 17):
            parts = [text[k : k + size] for k in range(0, len(text), size)]
            assert list(json_files._lines(parts)) == whole

    def test_the_last_of_equal_keys_counts(self, tmp_path):
        table = open_table(file(tmp_path, '{"y": 1, "y": 2}\n', "a.jsonl"))
        assert table.read().to_pylist() == [{"y": 2}]

    def test_numbers_of_every_kind(self, tmp_path):
        given = [1, 0.5, "0.25", " 1e-3 ", None, "NA", 10**30, 2**63, "inf", 1e400, float("nan")]
        table = open_table(file(tmp_path, lines({"p": p} for p in given), "a.jsonl"))
        read = table.read(["p"], table.number_types(["p"])).column(0).to_pylist()
        inf = float("inf")
        wanted = [1.0, 0.5, 0.25, 1e-3, None, None, 1e30, float(2**63), inf, inf, None]
        assert read == wanted


class TestRefused:
    def test_broken_lines(self, tmp_path):
        good = '{"y": 1, "p": 0.5}\n'
        for bad, *words in (
            ('{"y": 1, "p": }', "Expecting value", "character 15"),
            ('{"y": 1 "p": 2}', "delimiter", "character 9"),
            ("y,p", "Expecting value"),
            ("[1, 2]", "a list, not an object"),
            ("null", "null, not an object"),
            ('"text"', "a text, not an object"),
            ("0.5", "a number, not an object"),
            ("true", "a boolean, not an object"),
            ('{"y": 1}{"y": 2}', "Extra data"),
            ("[" * 200_000, "nested too deeply"),
            ('{"y": ' + "9" * 5000 + "}", "number that is too long"),
        ):
            message = refuse_file(tmp_path, f"{good}\n{bad}\n{good}", "line 3", *words)
            assert "last line" not in message
        refuse_file(tmp_path, good + '{"y": 1, "p', "line 2", "last line", "cut off")

    def test_paths_that_lead_nowhere(self, tmp_path):
        rows = lines([{"sample": {"target": 1, "p": 0.5}}] * 3)
        asked = {"label": "sample.traget", "scores": ["sample.p"], "name": "a.jsonl"}
        refuse(tmp_path, rows, "no column 'sample.traget'", "Did you mean 'sample.target'", **asked)

    def test_lists_and_objects(self, tmp_path):
        rows = lines([{"y": 1, "p": 0.5}, {"y": 0, "p": {"a": [0.5]}}])
        refuse(tmp_path, rows, "'p'", "an object in line 2", "'p.a.0'", name="a.jsonl")
        rows = lines([{"y": [1], "p": 0.5}, {"y": 0, "p": 0.5}])
        refuse(tmp_path, rows, "'y'", "a list in line 1", "'y.0'", name="a.jsonl")

    def test_values(self, tmp_path):
        def tried(*scores, words):
            rows = [{"y": k % 2, "p": p} for k, p in enumerate((0.5, 0.25, *scores))]
            return refuse(tmp_path, lines(rows), *words, name="a.jsonl")

        tried(None, words=["'p' has missing values in 1 of 3 rows (data row 3", "blank lines"])
        tried(float("nan"), words=["missing values", "data row 3"])
        tried(float("inf"), words=["infinite values", "data row 3"])
        tried(10**400, words=["infinite values", "data row 3"])
        tried(2, words=["from 0 to 1", "data row 3", "such as 2"])
        tried("much", words=["cannot be read as numbers", "'much'", "data row 3"])
        tried(True, words=["cannot be read as numbers", "'true'", "data row 3"])
        rows = lines([{"y": 0, "p": 0.5}, {"y": 1}])
        refuse(tmp_path, rows, "'p' has missing values in 1 of 2 rows (data row 2", name="a.jsonl")

    def test_half_a_character(self, tmp_path):
        rows = '{"y": "a", "p": 0.5}\n{"y": "\\ud800", "p": 0.5}\n'
        refuse(tmp_path, rows, "'y'", "lone surrogate", "line 2", name="a.jsonl")
        odd = open_table(file(tmp_path, '{"\\ud800": 1, "y": 2}\n', "a.jsonl"))
        refused(lambda: odd.read(["z"]), "no column 'z'")

    def test_other_encodings(self, tmp_path):
        text = lines([{"y": 1}]) + '{"y": "ü"}\n'
        refuse_file(tmp_path, text.encode("latin-1"), "not UTF-8", "line 2")
        refuse_file(tmp_path, text.encode("utf-16"), "UTF-16")
        refuse_file(tmp_path, text.encode("utf-16-le"), "UTF-16")

    def test_names_that_promise_json(self, tmp_path):
        for name in ("a.jsonl", "a.json", "a.ndjson", "a.jsonl.gz"):
            content = b"y,p\n1,0.5\n"
            data = gzip.compress(content) if name.endswith("gz") else content
            refuse_file(tmp_path, data, "name says JSON", "b'y,p", name=name)
        refuse_file(tmp_path, "", "empty (0 bytes)", name="a.jsonl")
        refuse_file(tmp_path, " \n\n", "name says JSON", name="a.jsonl")

    def test_cut_off_gzip(self, tmp_path):
        rng = np.random.default_rng(0)
        packed = gzip.compress(lines({"p": p} for p in rng.random(9000).tolist()).encode())
        refuse_file(tmp_path, packed[: len(packed) // 2], "cut off", name="a.jsonl.gz")
        few = gzip.compress(lines({"p": p} for p in [0.1, 0.2]).encode())
        refuse_file(tmp_path, few[:-12], "cut off", name="a.jsonl.gz")  # not one line is whole
        refuse_file(tmp_path, packed[:5], name="a.jsonl.gz")

    def test_too_many_paths(self, tmp_path, monkeypatch):
        monkeypatch.setattr(json_files, "_MOST_COLUMNS", 20)
        table = open_table(file(tmp_path, lines([{"v": [*range(30)], "y": 1}]), "a.jsonl"))
        assert len(table.column_names) == 20
        assert table.read(["y", "v.29"]).to_pylist() == [{"y": 1, "v.29": 29}]
        refused(table.read, "more than 20 different paths")


class TestDocuments:
    def test_an_object_with_a_list_of_cases(self, tmp_path):
        log = {"version": 2, "plan": [{"a": 1}], "samples": [{"id": k} for k in range(3)]}
        for indent in (None, 2):
            message = refuse_file(
                tmp_path, json.dumps(log, indent=indent), "3 objects in 'samples'", name="log.json"
            )
            assert f"jq -c '.samples[]' {tmp_path / 'log.json'} > lines.jsonl" in message
        text = json.dumps({"my rows": [{"a": 1}] * 2})
        refuse_file(tmp_path, text, """jq -c '.["my rows"][]'""", name="log.json")

        one = open_table(file(tmp_path, lines([{"p": 0.5, "messages": [{"text": "a"}]}])))
        assert one.read(["p", "messages.0.text"]).num_rows == 1
        refused(lambda: one.read(["q"]), "1 objects in 'messages'")

    def test_one_object(self, tmp_path):
        text = json.dumps({"y": {"0": 1, "1": 0}, "p": {"0": 0.5, "1": 0.4}}, indent=1)
        refuse_file(tmp_path, text, "one JSON object over the whole file", name="a.json")

    def test_objects_over_several_lines(self, tmp_path):
        text = "\n".join(json.dumps({"y": k, "p": 0.5}, indent=2) for k in range(3))
        refuse_file(tmp_path, text, "over several lines each", "jq -c . ", name="a.json")
        refuse_file(tmp_path, text[:5], "line 1 is not JSON", name="a.json")

    def test_objects_on_one_line(self, tmp_path):
        text = '{"y": 0, "p": 0.5}{"y": 1, "p": 0.5}\n'
        refuse_file(tmp_path, text, "written several to a line", "jq -c . ", name="a.json")
        text = '{"y": 0, "p": 0.5},\n{"y": 1, "p": 0.5}\n'
        refuse_file(tmp_path, text, "line 1 is not JSON", "near", name="a.json")

    def test_lists(self, tmp_path, monkeypatch):
        table = open_table(file(tmp_path, ' [{"y": 1},\n {"y": 2}]\n', "a.csv"))
        assert table.kind == "JSON"
        assert table.read().to_pylist() == [{"y": 1}, {"y": 2}]
        refuse_file(tmp_path, "[]", "list is empty", name="a.json")
        refuse_file(tmp_path, "[[1, 2], [3, 4]]", "element 1 of the list is a list")
        refuse_file(tmp_path, '[{"y": 1}, 2]', "element 2 of the list is a number", name="a.json")
        refuse_file(tmp_path, '[{"y": 1},\n {"y": 2}', "not JSON", "line 2", name="a.json")
        refuse_file(tmp_path, '[{"y": [1]}, {"y": 2}]', "element 1", "'y.0'", name="a.json")
        monkeypatch.setattr(json_files, "LARGEST", 20)
        refuse_file(tmp_path, ' [{"y": 1},\n {"y": 2}]\n', "more than 20 bytes", "jq -c '.[]'")

    def test_long_lines(self, tmp_path, monkeypatch):
        monkeypatch.setattr(json_files, "LARGEST", 3 << 20)
        fine = lines([{"y": 1}, {"y": 2, "x": "x" * (2 << 20)}, {"y": 3, "x": "x" * (2 << 20)}])
        assert open_table(file(tmp_path, fine)).read(["y"]).num_rows == 3
        refuse_file(tmp_path, fine + lines([{"x": "x" * (5 << 20)}]), "longer than 3,145,728 bytes")
        assert json_documents.LARGEST == 1 << 26
