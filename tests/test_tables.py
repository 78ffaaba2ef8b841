"""Opening tables: every kind of file, and one clear line for everything that is wrong with one."""

import gzip
import io
import os
import string
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragility.tables import TableError, open_table, require_columns, text_files, write_table

from .reference.tables import records

SMALL = pa.table({"label": [1, 0, 1], "score": [0.9, 0.2, 0.4], "note": ["a", "b,c", "d\ne"]})
ENDINGS = [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather"]


def file(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(action, *words):
    """The one line of an error, which has these words."""
    with pytest.raises(TableError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message
    return message


def refuse_file(folder, content, *words, name="table.csv"):
    path = file(folder, content, name)
    return refused(lambda: open_table(path).read(), str(path), *words)


def stream_file(path, table=SMALL, rows=2):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


class TestKinds:
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_there_and_back(self, tmp_path, ending):
        path = tmp_path / f"table{ending}"
        write_table(SMALL, path)
        table = open_table(path)
        assert table.column_names == SMALL.column_names
        assert table.size_bytes == path.stat().st_size
        assert table.is_compressed == (ending == ".csv.gz")
        assert table.n_rows == (3 if ending == ".parquet" else None)
        assert table.read().equals(SMALL)
        part = table.read(["score", "label"])
        assert part.equals(SMALL.select(["score", "label"]))
        types = {"label": pa.int64(), "score": pa.float64()}
        batches = pa.Table.from_batches(table.batches(["score", "label"], types))
        assert batches.equals(part)
        assert os.listdir(tmp_path) == [path.name]

    def test_content_counts_more_than_the_name(self, tmp_path):
        pa.parquet.write_table(SMALL, tmp_path / "a.csv")
        pa.feather.write_feather(SMALL, tmp_path / "b.bin", compression="lz4")
        stream_file(tmp_path / "c")
        file(tmp_path, gzip.compress(b"label,score\n1,0.5\n"), "d.csv")
        kinds = [open_table(tmp_path / n).kind for n in ("a.csv", "b.bin", "c", "d.csv")]
        assert kinds == ["Parquet", "Arrow file", "Arrow stream", "CSV"]
        assert open_table(tmp_path / "b.bin").read().equals(SMALL)
        stream = open_table(tmp_path / "c")
        assert stream.read(["note"]).equals(SMALL.select(["note"]))
        assert pa.Table.from_batches(stream.batches(["score"])).equals(SMALL.select(["score"]))

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow", ".arrows"])
    def test_batches_tell_how_far_they_are(self, tmp_path, ending, monkeypatch):
        monkeypatch.setattr(text_files, "_BLOCK", 1 << 14)
        n = 3_000_000 if ending == ".parquet" else 40_000
        table = pa.table({"a": np.arange(n), "b": np.arange(n) % 7})
        path = tmp_path / f"long{ending}"
        if ending == ".arrows":
            stream_file(path, table, rows=5_000)
        elif ending == ".arrow":
            pa.feather.write_feather(table, str(path), chunksize=5_000)
        else:
            write_table(table, path)
        batches = open_table(path).batches(["b"], {"b": pa.int64()})
        fractions, rows = [], 0
        for batch in batches:
            fractions.append(batches.fraction)
            rows += batch.num_rows
        assert rows == n
        assert len(fractions) > 2
        assert fractions == sorted(fractions)
        assert fractions[0] > 0.0
        if ".csv" not in ending:  # of text, pyarrow reads much ahead
            assert fractions[0] < 0.5
        assert fractions[-1] == pytest.approx(1.0, abs=2e-3)

    def test_wide_batches_have_few_rows(self, tmp_path):
        path = tmp_path / "wide.parquet"
        write_table(pa.table({str(i): np.zeros(4_000) for i in range(500)}), path)
        assert max(batch.num_rows for batch in open_table(path).batches()) < 3_000

    def test_types_of_stored_columns_can_be_changed(self, tmp_path):
        write_table(SMALL, tmp_path / "a.parquet")
        table = open_table(tmp_path / "a.parquet")
        assert table.read(["label"], {"label": pa.float32()}).column(0).type == pa.float32()
        refused(lambda: table.read(["note"], {"note": pa.int8()}), "'note' cannot be read as int8")

    def test_a_column_with_a_dot_in_its_name(self, tmp_path):
        write_table(pa.table({"a": [1], "a.b": [2]}), tmp_path / "a.parquet")
        table = open_table(tmp_path / "a.parquet")
        assert table.read(["a.b"]).to_pydict() == {"a.b": [2]}
        assert [b.to_pydict() for b in table.batches(["a.b"])] == [{"a.b": [2]}]


class TestMessyButFine:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"\xef\xbb\xbfa,b\n1,2\n", {"a": [1], "b": [2]}),
            (b"a,b\r\n1,2\r\n3,4\r\n", {"a": [1, 3], "b": [2, 4]}),
            (b"a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
            (b"a,b\n1,2", {"a": [1], "b": [2]}),
            (b"a, b , c\n1, 2.5,x\n", {"a": [1], "b": [2.5], "c": ["x"]}),
            (b'"a,x","b ""q"""\n"1","u\nv"\n', {"a,x": [1], 'b "q"': ["u\nv"]}),
            (b'"a\nb",c\n1,2\n', {"a\nb": [1], "c": [2]}),
            (b"a;b\n1;2\n", {"a": [1], "b": [2]}),
            (b"a\tb\n1\t2\n", {"a": [1], "b": [2]}),
            (b"a|b\n1|2\n", {"a": [1], "b": [2]}),
            (b"a;b, c, d;e\n1;2;3\n", {"a": [1], "b, c, d": [2], "e": [3]}),
            (b"a,b;c;d\n1,2\n", {"a": [1], "b;c;d": [2]}),
            (b"\n\n  \na,b\n\n1,2\n\n", {"a": [1], "b": [2]}),
            ("größe,年\n1,é\n".encode(), {"größe": [1], "年": ["é"]}),
            (b",a,,b\n0,1,,2\n", {"a": [1], "b": [2]}),
            (b'a,b\n1,5" pipe\n', {"a": [1], "b": ['5" pipe']}),
            (b"only\n1\n2\n", {"only": [1, 2]}),
        ],
    )
    @pytest.mark.parametrize("is_compressed", [False, True])
    def test_text(self, tmp_path, content, expected, is_compressed):
        table = open_table(file(tmp_path, gzip.compress(content) if is_compressed else content))
        assert table.read(list(expected)).to_pydict() == expected

    def test_a_gzip_file_of_several_members(self, tmp_path):
        content = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n")
        assert open_table(file(tmp_path, content)).read().to_pydict() == {"a": [1, 3], "b": [2, 4]}

    def test_other_encodings_in_columns_that_nobody_asks_for(self, tmp_path):
        table = open_table(file(tmp_path, "a,b\n1,né\n".encode("latin-1")))
        assert table.read(["a"]).to_pydict() == {"a": [1]}

    def test_a_header_longer_than_any_block(self, tmp_path):
        names = [f"column number {i}" for i in range(100_000)]
        content = ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n"
        table = open_table(file(tmp_path, content))
        assert table.read([names[-1]]).to_pydict() == {names[-1]: [1]}

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(data=st.data())
    def test_what_the_csv_module_reads(self, tmp_path, data):
        import csv

        delimiter = data.draw(st.sampled_from(",;\t|"))
        ends = data.draw(st.sampled_from(["\n", "\r\n"]))
        names = data.draw(
            st.lists(st.text(string.ascii_letters + ",; ", min_size=1), min_size=2, max_size=4)
        )
        names = [f"{place}{name}".strip() for place, name in enumerate(names)]
        value = st.text("ab01.é年,;\t|\n\"' ", max_size=6).map(lambda text: f"x{text}")
        rows = data.draw(
            st.lists(st.lists(value, min_size=len(names), max_size=len(names)), min_size=1)
        )
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows(
            [names, *rows]
        )
        table = open_table(file(tmp_path, text.getvalue()))
        expected = records(text.getvalue(), delimiter)
        assert table.column_names == list(expected[0])
        types = {name: pa.string() for name in names}
        assert table.read(types=types).to_pylist() == expected
        assert pa.Table.from_batches(table.batches()).to_pylist() == expected

    def test_rows_over_many_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr(text_files, "_BLOCK", 200)
        rows = [(i, f'text\n"{i}",' * (i % 3)) for i in range(500)]
        quoted = "".join('{},"{}"\n'.format(i, t.replace('"', '""')) for i, t in rows)
        table = open_table(file(tmp_path, "a,b\n" + quoted))
        assert table.read().column("a").to_pylist() == [i for i, _ in rows]
        texts = pa.Table.from_batches(table.batches(["b"])).column(0).to_pylist()
        assert texts == [text or None for _, text in rows]


class TestRefused:
    def test_no_such_file(self, tmp_path):
        file(tmp_path, "a\n1\n", "predictions.csv")
        missing = tmp_path / "Prediction.csv"
        refused(lambda: open_table(missing), "no such file", str(tmp_path / "predictions.csv"))
        refused(lambda: open_table(tmp_path / "zzz"), "no such file", "there is 'predictions.csv'")
        refused(lambda: open_table(tmp_path / "no" / "x.csv"), "no folder", str(tmp_path / "no"))
        refused(lambda: open_table(tmp_path / "predictions.csv" / "x"), "no such file")

    def test_not_a_file(self, tmp_path):
        refused(lambda: open_table(tmp_path), str(tmp_path), "folder", "there is nothing")
        refused(lambda: open_table("https://example.org/a.csv"), "address", "Download")
        refused(lambda: open_table(os.devnull), "device")
        refused(lambda: open_table("x" * 5000), "cannot be opened")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, tmp_path):
        path = file(tmp_path, "a,b\n1,2\n")
        path.chmod(0)
        refused(lambda: open_table(path), "not permitted to read", "chmod")

    def test_no_permission_as_root(self, tmp_path, monkeypatch):
        path = file(tmp_path, "a,b\n1,2\n")

        def forbidden(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", forbidden)
        refused(lambda: open_table(path), str(path), "not permitted to read", "chmod")

    def test_nothing_in_it(self, tmp_path):
        refuse_file(tmp_path, "", "empty (0 bytes)")
        refuse_file(tmp_path, "a,b\n", "header but no rows", "a, b")
        refuse_file(tmp_path, "a,b", "header but no rows")
        refuse_file(tmp_path, "a,b\r\n\r\n  \r\n", "header but no rows")
        refuse_file(tmp_path, "\n\n", "no line names the columns")
        refuse_file(tmp_path, gzip.compress(b"a,b\n"), "header but no rows")
        for ending in (".parquet", ".arrow"):
            write_table(SMALL.slice(0, 0), tmp_path / f"none{ending}")
            refused(lambda e=ending: open_table(tmp_path / f"none{e}"), "has no rows")
        refused(lambda: open_table(stream_file(tmp_path / "s", SMALL.slice(0, 0))), "has no rows")

    @pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
    @pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".arrow", ".arrows"])
    def test_cut_off(self, tmp_path, ending, keep):
        rng = np.random.default_rng(0)
        table = pa.table({"a": rng.random(5_000), "b": rng.random(5_000)})
        path = tmp_path / f"whole{ending}"
        stream_file(path, table, 900) if ending == ".arrows" else write_table(table, path)
        content = path.read_bytes()
        cut = file(tmp_path, content[: int(keep * len(content))], f"cut{ending}")
        refused(lambda: open_table(cut).read(), str(cut), "cut off, damaged", "again")
        refused(lambda: list(open_table(cut).batches()), str(cut), "cut off, damaged")

    def test_damaged_inside(self, tmp_path):
        write_table(pa.table({"a": np.random.default_rng(0).random(5_000)}), tmp_path / "a.csv.gz")
        content = bytearray((tmp_path / "a.csv.gz").read_bytes())
        content[20_000:20_010] = b"0123456789"
        refuse_file(tmp_path, bytes(content), "cut off, damaged", name="b.csv.gz")
        write_table(pa.table({"a": np.arange(5_000.0)}), tmp_path / "a.parquet")
        content = bytearray((tmp_path / "a.parquet").read_bytes())
        content[4:400] = bytes(396)
        refuse_file(tmp_path, bytes(content), "cut off, damaged", name="b.parquet")

    @pytest.mark.parametrize("name", ["a.csv", "a.dat", "a", "a.gz"])
    def test_garbage(self, tmp_path, name):
        noise = np.random.default_rng(0).bytes(5_000)
        refuse_file(tmp_path, noise, "neither text nor Parquet nor Arrow", "CSV", name=name)
        refuse_file(tmp_path, gzip.compress(noise), "neither text", name=name)

    def test_named_as_what_it_is_not(self, tmp_path):
        refuse_file(tmp_path, "a,b\n1,2\n", "name says Parquet", "b'a,b", name="a.parquet")
        refuse_file(tmp_path, "a,b\n1,2\n", "name says Arrow", name="a.feather")

    @pytest.mark.parametrize(
        ("name", "content", "what"),
        [
            ("a.xlsx", b"PK\x03\x04 and more", "Excel"),
            ("a.csv", b"PK\x03\x04 and more", "ZIP archive"),
            ("a.zip", b"anything", "ZIP archive"),
            ("a.feather", b"FEA1 and more", "Feather version 1"),
            ("a.csv.bz2", b"BZh9 and more", "bzip2"),
            ("a.csv", b"<!DOCTYPE html><html>", "web page"),
        ],
    )
    def test_other_kinds(self, tmp_path, name, content, what):
        refuse_file(tmp_path, content, what, name=name)
        assert "Export the table as CSV or Parquet" in refuse_file(tmp_path, content, name=name)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    def test_utf_16(self, tmp_path, encoding):
        refuse_file(tmp_path, "a,b\n1,2\n".encode(encoding), "UTF-16", "line 1", "UTF-8")

    def test_latin_1(self, tmp_path):
        refuse_file(tmp_path, "a,bé\n1,2\n".encode("latin-1"), "number 3, at about line 1", "UTF-8")
        rows = "a,b\n" + "1,x\n" * 300_000 + "1,é\n"
        path = file(tmp_path, rows.encode("latin-1"))
        words = ("not UTF-8", "number 1200006, at about line 300002", "Save the file")
        refused(lambda: open_table(path).read(), *words)
        refused(lambda: list(open_table(path).batches(["b"])), *words)

    def test_utf_8_across_the_blocks_of_the_search(self, tmp_path):
        """A character of two bytes, cut by the end of a block, is not taken for an error."""
        start = "a,b\n" + "x" * ((1 << 20) - 7) + ",é\n"
        assert len(start.encode()) > 1 << 20 > len(start.encode()) - 3
        path = file(tmp_path, start.encode() + "1,é\n".encode("latin-1"))
        refused(lambda: open_table(path).read(), f"number {len(start.encode()) + 2}", "line 3")

    def test_names_twice(self, tmp_path):
        refuse_file(tmp_path, "a,b,a,b,c\n1,2,3,4,5\n", "several columns", "'a', 'b'")
        refuse_file(tmp_path, "a, a\n1,2\n", "several columns", "'a'")
        table = pa.table([[1], [2]], names=["a", "a"])
        pa.parquet.write_table(table, tmp_path / "a.parquet")
        refused(lambda: open_table(tmp_path / "a.parquet"), "several columns", "'a'")

    @pytest.mark.parametrize("block", [32, 1 << 22])
    def test_uneven_rows(self, tmp_path, block, monkeypatch):
        monkeypatch.setattr(text_files, "_BLOCK", block)
        rows = ["1,2"] * 40 + ["1,2,3", "", '"a\nb",2', "1", "1,2"] + ["9"] * 5
        path = file(tmp_path, "\na,b\n" + "\n".join(rows) + "\n")
        words = ("7 rows have not 2 fields", "but 3 or 1", "data rows 41, 43, 45, 46, 47, ...")
        refused(lambda: open_table(path).read(["a"]), *words, "header is line 1", "quotes")
        refused(lambda: list(open_table(path).batches(["b"])), *words)
        one = file(tmp_path, "a;b\n1;2\n1;2;3\n")
        refused(
            lambda: open_table(one).read(), "1 row has not 2 fields", "but 3: data row 2,", "';'"
        )

    def test_a_quote_that_never_ends(self, tmp_path):
        """It would take in the rows that follow, in a column that nobody reads."""
        content = 'a,b,c\n1,2,x\n1,2,"y\n3,4,z\n5,6,z\n'
        words = ("quote", "opened in line 3", "never closed")
        refused(lambda: open_table(file(tmp_path, content)).read(["a"]), *words)
        refused(lambda: list(open_table(file(tmp_path, content)).batches(["a"])), *words)
        long = content + "5,6,z\n" * 1_000_000
        refused(lambda: open_table(file(tmp_path, long)).read(["a"]), *words)
        refuse_file(tmp_path, '"a,b\n' + "1,2\n" * 5_000, "quote in the first line not closed")


class TestRequiredColumns:
    def test_nearest_names(self, tmp_path):
        table = open_table(file(tmp_path, "label,score_a,score_b\n1,2,3\n"))
        require_columns(table, ["score_b", "label"])
        refused(
            lambda: require_columns(table, ["Lable", "score_b", "xyz", "score"]),
            str(table.path),
            "no column 'Lable', 'xyz', 'score'",
            "'label' for 'Lable'",
            "'score_b' for 'score'",
            "columns are 'label', 'score_a', 'score_b'",
        )
        refused(lambda: table.read(["scor_a"]), "'score_a' for 'scor_a'")
        refused(lambda: table.batches(["scor_a"]), "'score_a' for 'scor_a'")

    def test_many_columns(self, tmp_path):
        names = ",".join(f"c{i}" for i in range(200))
        table = open_table(file(tmp_path, names + "\n" + ",".join(["1"] * 200)))
        assert "(180 more)" in refused(lambda: require_columns(table, ["q"]))

    def test_no_header(self, tmp_path):
        table = open_table(file(tmp_path, "1,0.5\n0,0.2\n"))
        refused(lambda: require_columns(table, ["label"]), "looks like data", "name the columns")


@pytest.mark.outside
def test_pyarrow_is_imported_late_and_missed_with_advice(tmp_path):
    code = """if True:
        import sys
        sys.modules["pyarrow"] = None
        import fragility
        from fragility.tables import check_writable, open_table, parse_models, write_file
        parse_models(["a"]); check_writable("a"); write_file(sys.argv[1], "a,b\\n1,2\\n")
        try:
            open_table(sys.argv[1])
        except ImportError as error:
            print(error)
    """
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv")]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 'pip install "fragility[cli]"' in out
