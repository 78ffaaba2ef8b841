"""Dask and Spark give the bytes of the same rows in memory; a killed worker changes nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, Report
from fragility.distributed import sketch, sketch_by
from fragility.exceptions import PartitionError

from .engine_data import columns, write_parts, wrong_parts

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pyspark_sql = pytest.importorskip("pyspark.sql")

# Engines warn of much, also in threads of their own, where an error would stop them for good.
pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("default")]

DATA = columns()
ENGINES = ["dask", "spark"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


@pytest.fixture(scope="module")
def dask():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = pyspark_sql.SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def opened(request):
    """Opens a folder with an engine."""

    def open_with(engine, folder):
        client = request.getfixturevalue(engine)
        read = client.read.parquet if engine == "spark" else dd.read_parquet
        return read(str(folder))

    return open_with


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_give_the_bytes_of_memory(engine, opened, folder):
    data = opened(engine, folder)
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
    assert sketch(data, label="sick", score="p").to_bytes() == plain.to_bytes()
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    asked = {"label": "sick", "score": "p", "weight": "w", "labels": [0, 1]}
    assert sketch(data, **asked).to_bytes() == weighted.to_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_groups(engine, opened, folder):
    found = sketch_by(opened(engine, folder), "site", label="sick", score="p", labels=[0, 1])
    assert list(found) == ["a", "b", "c"]
    for site, own in found.items():
        rows = DATA["site"] == site
        alone = FragilitySketch(labels=[0, 1]).update(DATA["sick"][rows], DATA["p"][rows])
        assert own.to_bytes() == alone.to_bytes()


@pytest.mark.parametrize("flaw", wrong_parts())
@pytest.mark.parametrize("engine", ENGINES)
def test_errors_name_partition_and_file(engine, opened, tmp_path, flaw):
    part, words = wrong_parts()[flaw]
    good = pa.table({"sick": [0, 1], "p": [0.25, 0.75]})
    for k in range(2):
        pq.write_table(good, tmp_path / f"good-{k}.parquet")
    pq.write_table(pa.table(part), tmp_path / "wrong.parquet")
    labels = [0, 1] if flaw == "third label" else None
    with pytest.raises(PartitionError, match=words) as caught:
        sketch(opened(engine, tmp_path), label="sick", score="p", labels=labels)
    assert caught.value.partition.startswith("partition ")
    assert "wrong.parquet" in caught.value.file


def test_a_file_that_dask_cannot_read_is_named(dask, tmp_path):
    write_parts(tmp_path, DATA)
    frame = dd.read_parquet(str(tmp_path))
    (tmp_path / "part-2.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(PartitionError, match="partition 2"):
        sketch(frame, label="sick", score="p", labels=[0, 1])


def test_a_file_that_spark_cannot_read_is_named(spark, tmp_path):
    write_parts(tmp_path, DATA)
    frame = spark.read.parquet(str(tmp_path))
    (tmp_path / "part-2.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(PartitionError, match=r"part-2\.parquet"):
        sketch(frame, label="sick", score="p", labels=[0, 1])


def test_mixed_types_in_a_partition_of_dask(dask):
    import pandas as pd

    odd = pd.DataFrame({"sick": [0, 1, 0, 1], "p": [0.5, 0.2, "often", 0.25]})
    with pytest.raises(PartitionError, match="partition 1"):
        sketch(dd.from_pandas(odd, npartitions=2), label="sick", score="p", labels=[0, 1])


ASKED = {
    "label": "sick",
    "scores": ["p", "q"],
    "groups": "site",
    "costs": {"error_cost": 10.0, "review_cost": 1.0},
    "hold": 1000,
}


@pytest.fixture(scope="module")
def local_report(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        return Report.from_source(folder, **ASKED).to_json()


@pytest.mark.parametrize("engine", ENGINES)
def test_reports_are_those_of_local_files(engine, opened, folder, local_report, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert Report.from_source(opened(engine, folder), **ASKED).to_json() == local_report


@pytest.mark.parametrize("engine", ENGINES)
def test_reports_name_partition_file_and_row(engine, opened, tmp_path):
    good = {"sick": [0, 1, 0], "p": [0.25, 0.75, 0.5]}
    pq.write_table(pa.table(good), tmp_path / "good.parquet")
    wrong = pa.table({**good, "p": [0.25, 0.75, 1.5]})
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    with pytest.raises(PartitionError, match=r"probabilities.*data row 3") as caught:
        Report.from_source(opened(engine, tmp_path), label="sick", scores="p")
    assert "wrong.parquet" in caught.value.file


def slow(frame):
    """The same rows, after a while."""
    time.sleep(0.15)
    return frame


@pytest.fixture
def killing(dask):
    """Kills a worker a while after the work began."""

    def kill():
        time.sleep(0.5)
        os.kill(next(iter(dask.run(os.getpid).values())), signal.SIGKILL)

    def run(work):
        killer = threading.Thread(target=kill)
        before = set(dask.scheduler_info()["workers"])
        killer.start()
        found = work()
        killer.join()
        dask.wait_for_workers(2)
        assert set(dask.scheduler_info()["workers"]) != before
        return found

    return run


def test_a_killed_worker_changes_no_sketch(dask, folder, killing):
    frame = dd.read_parquet(str(folder)).repartition(npartitions=12).map_partitions(slow)
    found = killing(lambda: sketch(frame, label="sick", score="p", labels=[0, 1]))
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
    assert found.to_bytes() == plain.to_bytes()


def test_a_killed_worker_changes_no_report(dask, folder, killing, local_report, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    frame = dd.read_parquet(str(folder)).repartition(npartitions=8).map_partitions(slow)
    assert killing(lambda: Report.from_source(frame, **ASKED)).to_json() == local_report
