"""Ray gives the bytes of the same rows in memory: `make test-ray`, which installs Ray."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, Report
from fragility.distributed import sketch, sketch_by
from fragility.exceptions import PartitionError

from .engine_data import columns, write_parts, wrong_parts

ray = pytest.importorskip("ray")

DATA = columns()


@pytest.fixture(scope="module", autouse=True)
def engine():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


def test_bytes_of_memory(folder):
    data = ray.data.read_parquet(str(folder))
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
    assert sketch(data, label="sick", score="p").to_bytes() == plain.to_bytes()
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    assert sketch(data, label="sick", score="p", weight="w").to_bytes() == weighted.to_bytes()
    assert list(sketch_by(data, "site", label="sick", score="p")) == ["a", "b", "c"]


def test_report_of_local_files(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    asked = {"label": "sick", "scores": ["p", "q"], "groups": "site", "hold": 1000}
    found = Report.from_source(ray.data.read_parquet(str(folder)), **asked)
    assert found.to_json() == Report.from_source(folder, **asked).to_json()


@pytest.mark.parametrize("flaw", wrong_parts())
def test_errors_name_the_block(tmp_path, flaw):
    part, words = wrong_parts()[flaw]
    pq.write_table(pa.table({"sick": [0, 1], "p": [0.25, 0.75]}), tmp_path / "good.parquet")
    pq.write_table(pa.table(part), tmp_path / "wrong.parquet")
    labels = [0, 1] if flaw == "third label" else None
    with pytest.raises(PartitionError, match=words) as caught:
        sketch(ray.data.read_parquet(str(tmp_path)), label="sick", score="p", labels=labels)
    assert caught.value.partition.startswith("block ")


def test_a_dataset_without_rows_is_refused():
    with pytest.raises(ValueError, match="There are no rows in the Dataset"):
        sketch(ray.data.from_items([]), label="sick", score="p")
