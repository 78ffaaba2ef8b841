"""Long rows, odd names and damaged files: one sentence that says what is the matter."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility.tables import TableError, open_table, write_table
from fragility.tables.text_quotes import check_rows
from tests.command import fragility
from tests.command import refused as refused_by_command
from tests.engine_data import write_hollow

LONG = 3 << 20


def refused(path, *words, columns=None):
    """Both ways of reading give the same sentence, which has these words."""
    messages = []
    for read in (
        lambda: open_table(path).read(columns),
        lambda: list(open_table(path).batches(columns)),
    ):
        with pytest.raises(TableError) as caught:
            read()
        messages.append(str(caught.value))
    for message in messages:
        assert "\n" not in message
        for word in words:
            assert word in message, message
    return messages[0]


def file(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class TestLongRows:
    @pytest.mark.parametrize("quote", ["", '"'])
    def test_a_field_of_megabytes(self, tmp_path, quote):
        """Not a word of quotes, whether there are some or not."""
        text = f"{quote}{'x' * LONG}{quote}"
        path = file(tmp_path, f'a,b,c\n1,2,y\n"3",4,"q\nr"\n1,2,{text}\n1,2,3\n')
        message = refused(path, "line 5", f"{LONG + 4 + 2 * len(quote):,} bytes", columns=["a"])
        assert "1,048,576" in message
        assert "Parquet" in message
        assert "quote" not in message

    def test_an_odd_quote_elsewhere_is_a_character(self, tmp_path):
        """A field beyond the limit of Python's reader and a quote for inches: nothing is wrong."""
        path = file(tmp_path, f'a,b\n1,{"x" * 200_000}\n2,5" pipe\n')
        table = open_table(path).read()
        assert table.column("b").to_pylist()[1] == '5" pipe'
        assert table.num_rows == 2

    def test_a_quote_after_a_long_field(self, tmp_path):
        path = file(tmp_path, f'a,b\n1,{"x" * 200_000}\n2,"5 pipe\n3,4\n')
        refused(path, "quote", "opened in line 3", "never closed")

    def test_no_line_breaks(self, tmp_path):
        path = file(tmp_path, "1,0.5," * 300_000)
        assert "quote" not in refused(path, "header but no rows", "only one line", "line breaks")
        path = file(tmp_path, "x" * LONG)
        assert "quote" not in refused(path, "more than 1,000 characters", "line breaks")
        path = file(tmp_path, '"' + "x" * LONG)
        refused(path, "quote in the first line not closed")

    def test_binary_content_under_the_name_of_text(self, tmp_path):
        numbers = np.random.default_rng(0).normal(size=20_000).tobytes()
        assert "quote" not in refused(file(tmp_path, numbers), "neither text")
        hidden = b"a,b\n" + b"1,2\n" * 300_000 + numbers
        refused(file(tmp_path, hidden), "table.csv", "line 300002")


class TestQuotes:
    """The scanner against Python's csv module, in blocks of every size."""

    @pytest.mark.parametrize("seed", range(4))
    def test_against_the_csv_module(self, seed):
        from .reference.tables import unclosed_quote

        rng = np.random.default_rng(seed)
        for _ in range(500):
            text = "".join(rng.choice(list('",\nab\r'), size=rng.integers(1, 30)))
            for size in (1, 2, 3, 100):
                data = text.encode()
                blocks = (data[k : k + size] for k in range(0, len(data), size))
                assert check_rows(blocks, ",", 1000).unclosed == unclosed_quote(text), repr(text)

    def test_the_first_long_row(self):
        text = b'a,b\n"' + b"x\n" * 30 + b'",2\n1,2\n' + b"y" * 40 + b"\n"
        for size in (1, 3, 1000):
            blocks = (text[k : k + size] for k in range(0, len(text), size))
            found = check_rows(blocks, ",", 50)
            assert (found.long_row, found.long_bytes) == (2, 64)
            blocks = (text[k : k + size] for k in range(0, len(text), size))
            assert check_rows(blocks, ",", 64).long_row is None


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
class TestNamesThatAreNoText:
    """The byte 0xff is no UTF-8; Python holds it as a lone surrogate, which nothing can print."""

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"])
    def test_such_files_are_written_and_read(self, tmp_path, ending):
        table = pa.table({"y": [0, 1, 0], "p": [0.1, 0.9, 0.3]})
        path = tmp_path / os.fsdecode(b"\xff" + ending.encode())
        write_table(table, path)
        assert open_table(path).read().equals(table)
        assert sum(batch.num_rows for batch in open_table(path).batches(["p"])) == 3

    def test_they_are_shown_escaped(self, tmp_path):
        path = file(tmp_path, "y,p\n0,0.1\n", os.fsdecode(b"caf\xe9.csv"))
        messages = [refused(path, r"caf\xe9.csv: there is no column", columns=["q"])]
        near = path.with_name(os.fsdecode(b"caf\xe8.csv"))
        messages.append(refused(near, r"caf\xe8.csv", r"Did you mean", r"caf\xe9.csv'"))
        messages.append(refused(tmp_path, "this is a folder", r"'caf\xe9.csv'"))
        with pytest.raises(TableError, match="no folder") as caught:
            write_table(pa.table({"y": [0]}), near / "a.csv")
        messages.append(str(caught.value))
        for message in messages:
            message.encode("ascii", "strict")

    def test_control_characters_in_a_message(self, tmp_path):
        path = file(tmp_path, "a,b\n1,2\n", "\x1b[31m\n.csv")
        refused(path, r"\x1b[31m .csv: there is no column", columns=["q"])


class TestDamaged:
    @pytest.mark.parametrize(
        "error",
        [
            StopIteration(),
            RuntimeError("x"),
            KeyError("x"),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"),
        ],
    )
    @pytest.mark.parametrize("when", ["open", "read"])
    def test_whatever_the_reader_raises(self, tmp_path, monkeypatch, error, when):
        path = tmp_path / "a.parquet"
        write_table(pa.table({"y": [0, 1]}), path)

        def broken(*_, **__):
            raise error

        if when == "open":
            monkeypatch.setattr(pq, "ParquetFile", broken)
        else:
            monkeypatch.setattr(pq.ParquetFile, "read", broken)
            monkeypatch.setattr(pq.ParquetFile, "iter_batches", broken)
        refused(path, "a.parquet", "Parquet", "damaged", "again")

    def test_more_memory_than_there_is(self, tmp_path, monkeypatch):
        path = tmp_path / "a.parquet"
        write_table(pa.table({"y": [0, 1]}), path)

        def broken(*_, **__):
            raise pa.ArrowMemoryError("malloc of size 1152921504606846976 failed")

        monkeypatch.setattr(pq.ParquetFile, "read", broken)
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", broken)
        refused(path, "memory", "damaged, or too large", "--hold 0")

    def test_text_that_lies_elsewhere_in_memory(self, tmp_path):
        """Offsets of Arrow text beyond its end would be read from anywhere."""
        path = tmp_path / "a.arrow"
        write_table(pa.table({"y": ["cat", "dog"] * 50}), path)
        content = bytearray(path.read_bytes())
        offsets = np.arange(0, 303, 3, dtype="<i4").tobytes()
        place = bytes(content).index(offsets)
        content[place + 8 : place + 12] = (2**31 - 1).to_bytes(4, "little")
        refused(file(tmp_path, bytes(content), "b.arrow"), "damaged")

    def test_codes_beyond_the_categories(self, tmp_path):
        path = tmp_path / "a.arrow"
        codes = np.tile(np.array([0, 1], np.int32), 50)
        write_table(pa.table({"y": pa.DictionaryArray.from_arrays(codes, ["a", "b"])}), path)
        content = bytearray(path.read_bytes())
        place = bytes(content).index(codes.tobytes())
        content[place + 40 : place + 44] = (77).to_bytes(4, "little")
        refused(file(tmp_path, bytes(content), "b.arrow"), "damaged")

    def test_a_checksum_of_a_page_is_heeded(self, tmp_path):
        path = tmp_path / "a.parquet"
        numbers = np.arange(1000.0)
        options = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
        pq.write_table(pa.table({"y": numbers}), path, **options)
        content = bytearray(path.read_bytes())
        content[content.index(numbers.tobytes()) + 6] ^= 1
        refused(file(tmp_path, bytes(content), "b.parquet"), "damaged")

    def test_rows_that_are_promised_but_not_there(self, tmp_path):
        schema = pa.schema([("y", pa.int64()), ("p", pa.float64())])
        path = write_hollow(tmp_path / "two.parquet", schema)
        refused(path, "damaged", "it says that it has 2 rows, but has 0")
        for way in ((), ("--hold", "0")):
            asked = ("evaluate", path, "--label", "y", "--score", "p", *way)
            refused_by_command(fragility(*asked), "two.parquet", "2 rows")

    def test_latin_1_in_a_row_that_is_uneven(self, tmp_path, capfd):
        path = file(tmp_path, "a,b\n1,2\né,é,é\n".encode("latin-1"))
        refused(path, "not UTF-8", "number 8", "line 3")
        assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_the_command_takes_names_that_are_no_text(tmp_path):
    """As input, output and baseline: exit 0 or 2, and escaped in what is said."""
    name = {k: tmp_path / os.fsdecode(b"\xff." + k.encode()) for k in ("csv", "html", "json")}
    rng = np.random.default_rng(0)
    p = rng.random(40)
    write_table(pa.table({"y": (rng.random(40) < p).astype(int), "p": p}), name["csv"])
    asked = ("--label", "y", "--score", "p")
    assert fragility("evaluate", name["csv"], *asked).code == 0
    refused_by_command(fragility("evaluate", name["csv"], "--label", "q", "--score", "p"), r"\xff.")
    for kind in ("html", "json"):
        ended = fragility("report", name["csv"], *asked, "--output", name[kind])
        assert ended.code == 0, ended
        assert name[kind].exists()
        assert "Traceback" not in ended.err
    gone = tmp_path / os.fsdecode(b"\xfe.json")
    ended = fragility("gate", name["csv"], *asked, "--baseline", gone)
    assert ended.code == 2, ended
    assert ended.err.startswith("Error: ")
