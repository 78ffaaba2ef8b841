"""Training under a limit of memory, on Dask, and by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import SatisficingClassifier
from fragility.ambiguity import KL, Wasserstein
from fragility.distributed import fit, fitting
from fragility.exceptions import PartitionError, TableError
from fragility.pipelines import load_model, train_out_of_memory, train_pipeline

from .command import fragility

pytestmark = pytest.mark.outside

#: Fits under a limit of a quarter of the file, then without; in memory it must run out of it.
LIMITED = """
import json, os, resource, sys
import numpy as np
import pyarrow.parquet as pq
from fragility import SatisficingClassifier
from fragility.ambiguity import KL, Wasserstein
from fragility.distributed import fit

path, found = sys.argv[1], {}
square = np.ones((600, 600))
square @ square  # BLAS takes its memory at the first product of this size
few = np.random.default_rng(0).normal(size=500)
fit(SatisficingClassifier(slack=0.1), {"x": few, "y": few + few[::-1] > 0}, label="y")
pq.read_table(path, columns=["x0"]).slice(0, 10).to_pydict()
line = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
limit = 1024 * int(line.split()[1]) + os.path.getsize(path) // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
for name, ambiguity in {"kl": KL(), "wasserstein": Wasserstein()}.items():
    model = fit(SatisficingClassifier(ambiguity=ambiguity, slack=0.1), path, label="y")
    found[name] = model.fragility_, model.n_passes_
file = pq.ParquetFile(path)
try:
    table = np.empty((file.metadata.num_rows, file.metadata.num_columns - 1))
    found["memory"] = "enough"
except MemoryError:
    found["memory"] = "MemoryError"
resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
rows = pq.read_table(path)
y = rows["y"].to_numpy()
X = np.column_stack([rows[name].to_numpy() for name in rows.column_names if name != "y"])
for name, ambiguity in {"kl": KL(), "wasserstein": Wasserstein()}.items():
    alone = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y).fragility_
    found[name] = *found[name], alone
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_quarter_of_the_file_is_memory_enough(tmp_path):
    path, rng = tmp_path / "large.parquet", np.random.default_rng(0)
    n, d = 1 << 16, 40
    slopes = rng.normal(size=d) / 3.0
    writer = None
    for _ in range(9):
        X = rng.normal(size=(n, d))
        columns = {f"x{j}": X[:, j] for j in range(d)}
        table = pa.table(columns | {"y": (X @ slopes + rng.logistic(size=n) > 0.0).astype(int)})
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    writer.close()
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, path],
        capture_output=True,
        text=True,
        env=alone,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found.pop("memory") == "MemoryError"
    for read, passes, in_memory in found.values():
        assert read == pytest.approx(in_memory, rel=1e-6)
        assert 2 < passes <= 6


def visits(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.choice(["a", "b", "c"], n)
    age, pressure = rng.normal(60.0, 10.0, n), rng.normal(120.0, 15.0, n)
    u = (age - 60.0) / 10.0 + (pressure - 120.0) / 20.0 + (ward == "b")
    return {
        "age": age,
        "ward": ward,
        "pressure": pressure,
        "smoker": rng.random(n) < 0.3,
        "one": np.ones(n),
        "sick": np.where(u + rng.logistic(size=n) > 0.5, "yes", "no"),
        "w": rng.integers(1, 4, n),
    }


@pytest.fixture
def folder(tmp_path):
    """Files of patients; a sample of them is small."""
    rows = pa.table(visits())
    (tmp_path / "visits").mkdir()
    for part in range(4):
        pq.write_table(rows.slice(1_000 * part, 1_000), tmp_path / "visits" / f"{part}.parquet")
    return tmp_path / "visits"


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(fitting, "_SAMPLE", 1 << 12)


@pytest.mark.parametrize(
    "settings",
    [
        {"slack": 0.1},
        {"ambiguity": "kl", "slack": 0.1, "weight": "w"},
        {"norm": 1, "target_ratio": 1.05, "exclude": ["w"], "class_weight": "balanced"},
        {"noise": {"pressure": 5.0}, "slack": 0.2, "exclude": ["w"]},
        {"method": "erm", "penalty": "l2", "exclude": ["w"]},
    ],
)
def test_pipelines_are_those_of_memory(folder, small_sample, settings):
    rows = pa.table(visits())
    alone = train_pipeline(rows, "sick", **settings)
    said = []
    read = train_out_of_memory(folder, "sick", say=said.append, **settings)
    assert read.pipeline[-1].n_passes_ > 2
    assert len(said) == read.pipeline[-1].n_passes_
    mine, theirs = read.summary.to_dict(), alone.summary.to_dict()
    for name in set(theirs) - {"auc", "certificate", "guarantee"}:
        if isinstance(theirs[name], float):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-6), name
        else:
            assert mine[name] == theirs[name], name
    new = pa.table(visits(50, seed=1))
    expected = alone.pipeline.predict_proba(new)
    assert read.pipeline.predict_proba(new) == pytest.approx(expected, abs=1e-3)


def test_command_on_patterns_and_folders(folder, tmp_path):
    model = tmp_path / "model.skops"
    asked = ["train", str(folder / "*.parquet"), "--label", "sick", "--slack", "0.1", "--stream"]
    run = fragility(*asked, "--output", model, "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    alone = train_pipeline(pa.table(visits()), "sick", slack=0.1)
    assert found["fragility"] == pytest.approx(alone.summary.fragility, rel=1e-6)
    assert found["auc"] is None
    assert "pass 1: 4,000 rows" in run.err
    new = pa.table(visits(50, seed=1))
    expected = alone.pipeline.predict_proba(new)
    assert load_model(model).predict_proba(new) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--loss", "hinge"], "corners"),
        (["--method", "dro"], "got DROClassifier"),
        (["--impute"], "impute needs the rows in memory"),
        (["--drop-missing"], "drop_missing needs the rows in memory"),
        (["--label", "sik"], "Did you mean 'sick'"),
        (["--label", "age"], "'age'"),
        (["--max-categories", "2"], "'ward' has more than 2 different values"),
    ],
)
def test_command_refuses_in_one_sentence(folder, tmp_path, options, said):
    label = [] if "--label" in options else ["--label", "sick"]
    asked = ["train", str(folder), *label, "--stream", "--output", tmp_path / "m.skops"]
    run = fragility(*asked, *options)
    assert run.code == 2
    assert said in run.err
    assert len(run.err.strip().splitlines()) == 1


def test_text_files_are_not_streamed(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n2,1\n")
    asked = ["train", str(tmp_path / "a.csv"), "--label", "y", "--stream", "--output"]
    run = fragility(*asked, tmp_path / "m.skops")
    assert run.code == 2
    assert "--stream reads Parquet files" in run.err


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("age", [None, *range(999)], "'age' has missing values"),
        ("age", [str(k) for k in range(1_000)], "'age' has more than 50|numbers in some files"),
        ("ward", [None, *["a"] * 999], "'ward' has missing values"),
        ("ward", ["2024-01-0" + str(1 + k % 9) for k in range(1_000)], "'ward'"),
    ],
)
def test_a_bad_file_is_named(folder, column, values, said):
    rows = pq.read_table(folder / "2.parquet")
    place = rows.column_names.index(column)
    pq.write_table(rows.set_column(place, column, pa.array(values)), folder / "2.parquet")
    if values[0] == "2024-01-01":  # all files
        for part in (0, 1, 3):
            os.remove(folder / f"{part}.parquet")
    with pytest.raises((PartitionError, TableError), match=said) as caught:
        train_out_of_memory(folder, "sick", slack=0.1)
    if isinstance(caught.value, PartitionError):
        assert caught.value.file.endswith("2.parquet")


@pytest.mark.parametrize("ambiguity", [KL(), Wasserstein()], ids=repr)
def test_no_rows_and_one_class(tmp_path, ambiguity):
    model = SatisficingClassifier(ambiguity=ambiguity, slack=0.1)
    with pytest.raises(ValueError, match="no rows"):
        fit(
            model,
            pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}),
            label="y",
        )
    with pytest.raises(ValueError, match="only the class 1"):
        fit(model, {"x": [0.5, 1.0], "y": [1, 1]}, label="y")
