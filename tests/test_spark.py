"""Spark gives the bytes of the same rows in memory, by its Python workers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, Report
from fragility.distributed import sketch, sketch_by
from fragility.exceptions import PartitionError
from fragility.sources.spark import _explained

from .engine_data import ASKED, columns, write_parts, wrong_parts

pytest.importorskip("pyspark.sql")

# Spark warns of versions of other libraries.
pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("default")]

DATA = columns()
PLAIN = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
BYTES_OF_A_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


@pytest.fixture(scope="module")
def rows(spark, folder):
    """The rows, some of which have names and kinds that are trouble."""
    frame = spark.read.parquet(str(folder))
    sites = frame.selectExpr("*", "sick = 1 AS is_sick", "IF(sick = 1, 'yes', 'no') AS `is {sick}`")
    return sites.selectExpr("*", "CAST(sick AS DECIMAL(9, 0)) AS d", "CAST(p AS FLOAT) AS `a``b`")


def test_columns_of_every_kind_give_the_bytes_of_memory(rows):
    assert sketch(rows, label="sick", score="p").to_bytes() == PLAIN.to_bytes()
    single = FragilitySketch(64, ["no", "yes"], "no")
    single.update(np.array(["no", "yes"])[DATA["sick"]], DATA["p"].astype(np.float32))
    asked = {"label": "is {sick}", "score": "a`b", "pos_label": "no", "n_bins": 64}
    assert sketch(rows, **asked).to_bytes() == single.to_bytes()
    booleans = FragilitySketch(labels=[False, True]).update(DATA["sick"] == 1, DATA["p"])
    found = sketch(rows, label="is_sick", score="p", labels=[False, True])
    assert found.to_bytes() == booleans.to_bytes()


def test_groups_give_the_bytes_of_memory(rows):
    found = sketch_by(rows, ["site", "is_sick"], label="sick", score="p", labels=[0, 1])
    assert list(found) == [(site, sick) for site in "abc" for sick in (False, True)]
    for (site, sick), own in found.items():
        chosen = (DATA["site"] == site) & (DATA["sick"] == sick)
        alone = FragilitySketch(labels=[0, 1]).update(DATA["sick"][chosen], DATA["p"][chosen])
        assert own.to_bytes() == alone.to_bytes()
    none = rows.where("p > 2")
    assert sketch_by(none, "site", label="sick", score="p", labels=[0, 1]) == {}
    empty = FragilitySketch(labels=[0, 1])
    assert sketch(none, label="sick", score="p", labels=[0, 1]).to_bytes() == empty.to_bytes()


def test_weights_and_odd_names_give_the_bytes_of_memory(spark, rows):
    before = spark.conf.get(BYTES_OF_A_BATCH)
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    # Names that Spark itself would take apart.
    named = rows.withColumnsRenamed({"d": "d x", "p": "p.1", "w": "w`2"})
    asked = {"score": "p.1", "weight": "w`2", "labels": [0, 1]}
    assert sketch(named, label="d x", **asked).to_bytes() == weighted.to_bytes()
    assert spark.conf.get(BYTES_OF_A_BATCH) == before


@pytest.mark.parametrize("flaw", [*wrong_parts(), "null group", "'NA' in a group"])
def test_errors_name_partition_and_file(spark, tmp_path, flaw):
    y, p, site = pa.array([0, 1, 1]), pa.array([0.1, 0.5, 0.9]), pa.array(["a", "b", "a"])
    missing = pa.array(["a", None if "null" in flaw else "NA", "a"])
    of_groups = {"sick": y, "p": p, "site": missing}, "'site' has missing values"
    part, words = wrong_parts().get(flaw, of_groups)
    for k in range(2):
        good = {"sick": y, "p": p, "site": site}
        pq.write_table(pa.table(good), tmp_path / f"good-{k}.parquet")
    pq.write_table(pa.table({"site": site} | part), tmp_path / "wrong.parquet")
    asked = {"label": "sick", "score": "p", "labels": [0, 1] if flaw == "third label" else None}
    data = spark.read.parquet(str(tmp_path))
    with pytest.raises(PartitionError, match=words) as caught:
        sketch_by(data, "site", **asked) if "group" in flaw else sketch(data, **asked)
    assert caught.value.partition.startswith("partition ")
    assert caught.value.file.endswith("/wrong.parquet")


def test_a_third_label_is_told_with_its_file(spark, tmp_path):
    """Labels that nobody has named: which partition has the third one."""
    for name, label in (("good", [0, 1, 1]), ("wrong", [7, 7, 7])):
        part = {"sick": label, "p": [0.1, 0.5, 0.9]}
        pq.write_table(pa.table(part), tmp_path / f"{name}.parquet")
    data = spark.read.parquet(str(tmp_path))
    words = r"3 classes.*first seen: .*7 in \S*/wrong\.parquet"
    with pytest.raises(ValueError, match=words):
        sketch(data, label="sick", score="p")
    with pytest.raises(ValueError, match=words):
        Report.from_source(data, label="sick", scores="p")


@pytest.mark.parametrize("flaw", ["damaged", "text", "no numbers"])
def test_files_of_another_kind_are_named(spark, tmp_path, flaw):
    write_parts(tmp_path, DATA)
    path = tmp_path / "part-2.parquet"
    frame = spark.read.parquet(str(tmp_path))
    part = pq.read_table(path)
    place = part.column_names.index("p")
    if flaw == "damaged":
        path.write_bytes(b"PAR1 but no more")
    elif flaw == "text":  # among files of numbers
        pq.write_table(part.set_column(place, "p", part["p"].cast(pa.string())), path)
    else:
        frame = frame.selectExpr("*", "IF(w = 1.5, 'often', '0.5') AS word")
    score = "word" if flaw == "no numbers" else "p"
    words = "often" if flaw == "no numbers" else r"part-2\.parquet"
    with pytest.raises(PartitionError, match=words) as caught:
        sketch(frame, label="sick", score=score, labels=[0, 1])
    assert caught.value.file is not None
    why = {"damaged": "is not a Parquet file", "text": "type mismatch", "no numbers": "often"}
    assert why[flaw] in caught.value.reason


def test_a_column_that_is_not_there(rows):
    with pytest.raises(ValueError, match=r"no column 'P' in the DataFrame.*Did you mean 'p'"):
        sketch(rows, label="sick", score="P", labels=[0, 1])


def test_reports_are_those_of_local_files(spark, folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    found = Report.from_source(spark.read.parquet(str(folder)), **ASKED).to_json()
    assert found == Report.from_source(folder, **ASKED).to_json()


def test_reports_name_partition_file_and_row(spark, tmp_path):
    good = {"sick": [0, 1, 0], "p": [0.25, 0.75, 0.5]}
    pq.write_table(pa.table(good), tmp_path / "good.parquet")
    wrong = pa.table({**good, "p": [0.25, 0.75, 1.5]})
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    with pytest.raises(PartitionError, match=r"probabilities.*data row 3") as caught:
        Report.from_source(spark.read.parquet(str(tmp_path)), label="sick", scores="p")
    assert "wrong.parquet" in caught.value.file


CONNECTED = """
import sys
from pyspark.sql import SparkSession
from fragility.distributed import sketch
from fragility.exceptions import PartitionError
from tests.engine_sessions import SPARK
builder = SparkSession.builder.remote("local[2]")
for name, value in SPARK.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
frame = session.read.parquet(sys.argv[1])
assert type(frame).__module__.startswith("pyspark.sql.connect")
for k, weight in enumerate([None, "w"]):
    found = sketch(frame, label="sick", score="p", weight=weight)
    open(f"{sys.argv[2]}/{k}.fsk", "wb").write(found.to_bytes())
try:
    sketch(frame.selectExpr("sick", "2 * p AS p"), label="sick", score="p", labels=[0, 1])
except PartitionError as error:
    assert ".parquet" in error.file, error
    assert "from 0 to 1" in str(error), error
else:
    raise AssertionError("scores up to 2 were taken")
session.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="Connect needs grpcio")
def test_connect_gives_the_same_bytes(folder, tmp_path):
    # In a process of its own: a process has a session of one kind.
    command = [sys.executable, "-c", CONNECTED, str(folder), str(tmp_path)]
    settings = os.environ | {"PYSPARK_PYTHON": sys.executable}
    subprocess.run(command, check=True, timeout=300, capture_output=True, env=settings)
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    for k, wanted in enumerate([PLAIN, weighted]):
        assert (tmp_path / f"{k}.fsk").read_bytes() == wanted.to_bytes()


def test_workers_without_the_library_are_told_so():
    text = "An exception was thrown from the Python worker:\nModuleNotFoundError: No module named"
    found = _explained(RuntimeError(f"{text} 'fragility'\n"))
    assert isinstance(found, ImportError)
    assert "no module 'fragility': install fragility" in str(found)
