"""The query of bins in DuckDB and Spark: the same bytes as here, the same numbers of flaws."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch
from fragility.distributed import bins_query, group_sketches

from .test_sql import cases

pytestmark = pytest.mark.outside

FLAWED = {
    "y": [0, 1, 1, 0, 0, 1, 0, None, 1],
    "p": [0.1, None, float("nan"), 1.5, -0.1, float("inf"), float("-inf"), 0.3, 0.9],
}


@pytest.fixture
def run(request, engine):
    """Rows of a query of a file, which is called `scores`."""
    if engine == "duckdb":
        base = pytest.importorskip("duckdb").connect()

        def by_duckdb(path, *queries):
            base.execute(f"CREATE OR REPLACE VIEW scores AS SELECT * FROM '{path}'")
            return [base.execute(query).fetchall() for query in queries]

        return by_duckdb
    session = request.getfixturevalue("spark")

    def by_spark(path, *queries):
        session.read.parquet(str(path)).createOrReplaceTempView("scores")
        return [session.sql(query).collect() for query in queries]

    return by_spark


def asked(engine, **options):
    quote = {"duckdb": '"', "spark": "`"}[engine] if options.pop("quoted", False) else None
    return bins_query("scores", **{"label": "y", "score": "p", "quote": quote} | options)


ENGINES = pytest.mark.parametrize("engine", ["duckdb", "spark"])


@ENGINES
def test_the_bytes_are_those_of_the_scores(run, engine, tmp_path):
    y, p, w = cases(100_000)
    g = np.array(["a", "b", "one class"])[np.random.default_rng(1).integers(0, 3, y.size)]
    y[g == "one class"] = 0
    path = tmp_path / "scores.parquet"
    columns = {"y": y, "p": p, "the weight": w, "g": g, "single": p.astype(np.float32)}
    pq.write_table(pa.table(columns), path, row_group_size=30_000)
    grouped, weighted = run(
        path,
        asked(engine, by="g", quoted=True),
        asked(engine, score="single", weight="the weight", n_bins=64, quoted=True),
    )
    found = group_sketches(grouped, n_rows=y.size)
    for name, sketch in found.items():
        wanted = FragilitySketch(labels=[0, 1]).update(y[g == name], p[g == name])
        assert sketch.to_bytes() == wanted.to_bytes()
    assert sum(found.values()).to_bytes() == FragilitySketch().update(y, p).to_bytes()
    wanted = FragilitySketch(64).update(y, columns["single"], w)
    found = FragilitySketch.from_bins(weighted, n_rows=y.size, n_bins=64)
    assert found.to_bytes() == wanted.to_bytes()


@ENGINES
def test_flaws_are_counted(run, engine, tmp_path):
    path = tmp_path / "flawed.parquet"
    pq.write_table(pa.table(FLAWED), path)
    (rows,) = run(path, asked(engine))
    said = (
        r"Of 9 rows of the table 1 have no score \(NULL\) and 1 have the score NaN and 4 have a "
        r"score that is no number from 0 to 1 and 1 have no label \(NULL\)\."
    )
    with pytest.raises(ValueError, match=said):
        FragilitySketch.from_bins(rows, n_rows=9)


@ENGINES
@pytest.mark.parametrize("kind", ["text", "boolean", "decimal", "empty", "flawed", "heavy"])
def test_kinds_of_columns(run, engine, kind, tmp_path):
    y, p, w = cases(300)
    if kind == "heavy":  # at the edge of a bin: a single sum would be above 2⁶³
        y, p, w = np.arange(5000) % 2, np.full(5000, 0.5 / 4096), np.full(5000, 65536)
    text = np.array(["no", "yes"])[y]
    own = {
        "text": pa.array(text),
        "boolean": pa.array(y.astype(bool)),
        "decimal": pa.array(y).cast(pa.decimal128(20, 0)),
    }.get(kind, pa.array(y))
    weights = w.astype(float)
    if kind == "flawed":
        weights = np.choose(w, [0.0, 1.5, np.nan, np.inf, 4.0])
    data = pa.table({"y": own, "p": p, "w": weights})
    if kind == "empty":
        data = data.slice(0, 0)
    path = tmp_path / "scores.parquet"
    pq.write_table(data, path)
    weighed = kind in ("flawed", "heavy")
    (rows,) = run(path, asked(engine, weight="w" if weighed else None))
    if kind == "flawed":
        said = f"{int(((w > 0) & (w < 4)).sum())} have a weight that is not a whole number"
        with pytest.raises(ValueError, match=said):
            FragilitySketch.from_bins(rows, n_rows=300)
        return
    found, wanted = FragilitySketch.from_bins(rows, n_rows=data.num_rows), FragilitySketch()
    if kind != "empty":
        wanted.update(text if kind == "text" else y, p, w if weighed else None)
    assert found.to_bytes() == wanted.to_bytes()
