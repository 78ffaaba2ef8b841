"""Dask gives the bytes of the same rows in memory; a killed worker changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, Report
from fragility.distributed import sketch, sketch_by
from fragility.exceptions import PartitionError
from fragility.sources.dask import _blamed
from fragility.sources.source import Part

from .engine_data import ASKED, columns, write_parts, wrong_parts

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
CommClosedError = pytest.importorskip("distributed.comm").CommClosedError

# Engines warn of much, also in threads of their own, where an error would stop them for good.
pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("dask"),
]

DATA = columns()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


@pytest.fixture(scope="module")
def local_report(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        return Report.from_source(folder, **ASKED).to_json()


def test_bytes_of_memory(folder):
    data = dd.read_parquet(str(folder))
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
    assert sketch(data, label="sick", score="p").to_bytes() == plain.to_bytes()
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    asked = {"label": "sick", "score": "p", "weight": "w", "labels": [0, 1]}
    assert sketch(data, **asked).to_bytes() == weighted.to_bytes()


def test_groups(folder):
    asked = {"label": "sick", "score": "p", "labels": [0, 1]}
    found = sketch_by(dd.read_parquet(str(folder)), "site", **asked)
    assert list(found) == ["a", "b", "c"]
    for site, own in found.items():
        rows = DATA["site"] == site
        alone = FragilitySketch(labels=[0, 1]).update(DATA["sick"][rows], DATA["p"][rows])
        assert own.to_bytes() == alone.to_bytes()


@pytest.mark.parametrize("flaw", wrong_parts())
def test_errors_name_partition_and_file(tmp_path, flaw):
    part, words = wrong_parts()[flaw]
    good = pa.table({"sick": [0, 1], "p": [0.25, 0.75]})
    for k in range(2):
        pq.write_table(good, tmp_path / f"good-{k}.parquet")
    pq.write_table(pa.table(part), tmp_path / "wrong.parquet")
    labels = [0, 1] if flaw == "third label" else None
    with pytest.raises(PartitionError, match=words) as caught:
        sketch(dd.read_parquet(str(tmp_path)), label="sick", score="p", labels=labels)
    assert caught.value.partition.startswith("partition ")
    assert "wrong.parquet" in caught.value.file


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    write_parts(tmp_path, DATA)
    frame = dd.read_parquet(str(tmp_path))
    (tmp_path / "part-2.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(PartitionError, match="partition 2"):
        sketch(frame, label="sick", score="p", labels=[0, 1])


def test_columns_may_have_numbers_for_names():
    data = dd.from_pandas(pd.DataFrame({0: DATA["sick"], 1: DATA["p"]}), npartitions=3)
    plain = FragilitySketch().update(DATA["sick"], DATA["p"])
    assert sketch(data, label="0", score="1").to_bytes() == plain.to_bytes()


@pytest.mark.parametrize("filesystem", ["arrow", "fsspec"])
@pytest.mark.parametrize("kind", ["all", "last", "moved"])
def test_files_that_are_read_together_are_all_named(tmp_path, filesystem, kind):
    """Where few of the columns are asked for, Dask reads several files as one partition."""
    rng = np.random.default_rng(0)
    for k in range(7):
        rows = {f"x{j}": rng.random(20) for j in range(12)} | {"sick": [0, 1] * 10}
        rows["p"] = np.where(np.arange(20) == 3, 1.5 if k == 5 else 0.5, 0.2)
        pq.write_table(pa.table(rows), tmp_path / f"part-{k}.parquet")
    data = dd.read_parquet(str(tmp_path), filesystem=filesystem)
    data = {"all": data, "last": data.partitions[1:], "moved": data.shuffle("x0")}[kind]
    for asked in (
        lambda: sketch(data, label="sick", score="p", labels=[0, 1]),
        lambda: Report.from_source(data, label="sick", scores="p"),
    ):
        with pytest.raises(PartitionError, match=r"1\.5") as caught:
            asked()
        if kind == "moved":  # the row may be of any file
            assert caught.value.file is None
        else:
            names = [name.rpartition("/")[2] for name in caught.value.file.split(", ")]
            assert "part-5.parquet" in names
            assert 1 < len(names) < 7


def test_a_damaged_file_is_named_where_dask_looks_into_it_to_plan(tmp_path):
    for k in range(3):
        rows = {"sick": [0, 1], "p": [0.1, 0.2]} | {f"x{j}": [0, 1] for j in range(9)}
        pq.write_table(pa.table(rows), tmp_path / f"part-{k}.parquet")
    data = dd.read_parquet(str(tmp_path), filesystem="arrow")
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(PartitionError, match=r"part-1\.parquet"):
        sketch(data, label="sick", score="p")


def test_nothing_of_dask_was_used_before(tmp_path):
    """Dask loses settings of its cluster if it imports that when it plans."""
    write_parts(tmp_path, DATA)
    script = (
        "import sys, dask.dataframe as dd; from fragility.distributed import sketch; "
        "data = dd.read_parquet(sys.argv[1], filesystem='arrow'); "
        "print(sketch(data, label='sick', score='p').support.sum())"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["12000"]


def test_mixed_types_in_a_partition():
    from dask import config as dask_config

    odd = pd.DataFrame({"sick": [0, 1, 0, 1], "p": [0.5, 0.2, "often", 0.25]})
    with pytest.raises(PartitionError, match="partition 1"):
        sketch(dd.from_pandas(odd, npartitions=2), label="sick", score="p", labels=[0, 1])
    odd["p"] = pd.Series([0, 1, 1 << 70, 0], dtype=object)
    with (
        dask_config.set({"dataframe.convert-string": False}),
        pytest.raises(PartitionError, match=r"partition 1: .* not of one type \(.*too large"),
    ):
        sketch(dd.from_pandas(odd, npartitions=2), label="sick", score="p", labels=[0, 1])


def test_reports_are_those_of_local_files(folder, local_report, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    frame = dd.read_parquet(str(folder))
    assert Report.from_source(frame, **ASKED).to_json() == local_report


def test_reports_name_partition_file_and_row(tmp_path):
    good = {"sick": [0, 1, 0], "p": [0.25, 0.75, 0.5]}
    pq.write_table(pa.table(good), tmp_path / "good.parquet")
    wrong = pa.table({**good, "p": [0.25, 0.75, 1.5]})
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    with pytest.raises(PartitionError, match=r"probabilities.*data row 3") as caught:
        Report.from_source(dd.read_parquet(str(tmp_path)), label="sick", scores="p")
    assert "wrong.parquet" in caught.value.file


def slow(frame):
    """The same rows, after a while."""
    time.sleep(0.15)
    return frame


#: Seconds after which something has gone wrong that would else wait for ever.
PATIENCE = 120


def finish(work, found):
    try:
        found.set_result(work())
    except BaseException as error:
        found.set_exception(error)


@pytest.fixture
def killing(dask):
    """Kills a worker while some work is done, which must end all the same."""

    def run(work):
        dask.wait_for_workers(2, timeout=PATIENCE)
        # Asked before the work: a worker that dies meanwhile would never answer.
        processes = dask.run(os.getpid)
        killer = threading.Timer(0.5, os.kill, [next(iter(processes.values())), signal.SIGKILL])
        killer.start()
        found: Future[Any] = Future()
        # A daemon: if it never ends, the tests must.
        threading.Thread(target=finish, args=[work, found], daemon=True).start()
        found.result(PATIENCE)
        killer.join(PATIENCE)
        dask.wait_for_workers(2, timeout=PATIENCE)
        assert set(dask.run(os.getpid).values()) != set(processes.values())
        return found.result()

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


@pytest.mark.parametrize("task", ["('fold-part', 2)", ("fold-part", 2)])
def test_a_partition_that_kills_its_workers_is_named(task):
    parts = [Part(k, f"partition {k}", f"part-{k}.parquet") for k in range(3)]
    error = distributed.KilledWorker(task, SimpleNamespace(address="tcp://there"), 3)
    found = _blamed(None, [], parts, error)  # asks for nothing to be computed again
    assert isinstance(found, PartitionError)
    assert (found.partition, found.file) == ("partition 2", "part-2.parquet")
    assert _blamed(None, [], parts, CommClosedError("gone")).args == ("gone",)
