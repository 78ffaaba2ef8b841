"""Commands on folders and patterns of Parquet files: the report of the same rows in one file."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility.exceptions import TableError
from fragility.tables import open_table

from .command import fragility, refused
from .engine_data import columns, write_parts

DATA = columns()
OPTIONS = ["--label", "sick", "--score", "p", "--score", "q", "--json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows") / "scores", DATA)


def test_a_folder_and_a_pattern_are_one_table(folder):
    whole = pa.table(DATA)
    for given in (folder, folder / "*.parquet"):
        table = open_table(given)
        assert (table.kind, table.n_rows) == ("Parquet", whole.num_rows)
        assert table.read().equals(whole)
        batches = list(table.batches(["p", "site"]))
        assert pa.Table.from_batches(batches).equals(whole.select(["p", "site"]))


def test_the_command_gives_the_report_of_one_file(folder, tmp_path):
    pq.write_table(pa.table(DATA), tmp_path / "all.parquet")
    asked = [*OPTIONS, "--case", "patient", "--hold", "1000"]
    made = [
        json.loads(fragility("evaluate", given, *asked).out)
        for given in (tmp_path / "all.parquet", folder, folder / "part-*.parquet")
    ]
    sources = [found.pop("provenance") for found in made]
    assert made[0] == made[1] == made[2]
    assert made[0]["models"][0]["worst_cases"][0]["case"].startswith("patient ")
    assert [found["source"] for found in sources] == ["all.parquet", "scores", "part-*.parquet"]
    content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    assert sources[1]["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_files_that_store_a_column_in_different_types(kind, tmp_path):
    """Held or not, the report is that of the files with one type."""
    names = pa.array(["no", "yes"])
    sick = pa.array(DATA["sick"])
    as_text = pa.DictionaryArray.from_arrays(sick, names)
    kinds = {
        "text": [as_text, as_text.cast("string"), as_text.cast("string").cast("string_view")],
        "numbers": [sick, sick.cast("bool"), sick.cast("float64")],
    }[kind]
    found = []
    for folder, stored in (("one", kinds[:1] * 3), ("several", kinds)):
        (tmp_path / folder).mkdir()
        for k, labels in enumerate(stored):
            part = pa.table({**DATA, "sick": labels}).slice(4000 * k, 4000)
            pq.write_table(part, tmp_path / folder / f"{k}.parquet")
        for hold in (1 << 20, 1000):
            ended = fragility("evaluate", tmp_path / folder, *OPTIONS, "--hold", hold)
            found.append(json.loads(ended.out)["models"][0]["raw"]["figures"])
    assert found[:2] == found[2:]
    with pytest.raises(TableError, match="as different types"):
        open_table(tmp_path / "several").read()


def test_what_is_wrong_is_said_with_file_or_row(tmp_path):
    write_parts(tmp_path, DATA)
    wrong = {**{name: values[:3] for name, values in DATA.items()}, "p": [0.1, 0.2, 1.5]}
    pq.write_table(pa.table(wrong), tmp_path / "part-0b.parquet")
    refused(
        fragility("evaluate", tmp_path, *OPTIONS), "data row 4003, counted from 1 over the files"
    )
    (tmp_path / "part-0b.parquet").write_bytes(b"PAR1 but no more")
    refused(fragility("evaluate", tmp_path, *OPTIONS), "part-0b.parquet")
    pq.write_table(pa.table({"sick": [0, 1]}), tmp_path / "part-0b.parquet")
    refused(fragility("evaluate", tmp_path, *OPTIONS), "part-0b.parquet: there is no column 'p'")


def test_empty_files_and_none(tmp_path):
    empty = pa.table({"sick": pa.array([], pa.int64())})
    pq.write_table(empty, tmp_path / "a.parquet")
    with pytest.raises(TableError, match="the files have no rows"):
        open_table(tmp_path)
    (tmp_path / "b").mkdir()
    with pytest.raises(TableError, match="this is a folder"):
        open_table(tmp_path / "b")
    with pytest.raises(TableError, match="no such file"):
        open_table(tmp_path / "*.arrow")
