"""Which kind of source some data are: nothing is imported that the data did not come from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..tables.arrow import pyarrow
from ..tables.opening import check_once
from ..tables.several_files import parquet_files
from . import local
from .source import Source

_GIVE = (
    "Give a mapping of columns to arrays; a table or frame (anything with __arrow_c_stream__); "
    "a Parquet file, a folder of them, or a pattern such as 'scores/*.parquet'; an Arrow dataset; "
    "a LazyFrame of polars; a relation of DuckDB; or a DataFrame of Dask or Spark, or a Dataset of "
    "Ray."
)


def open_source(data: Any) -> Source:
    """The source of these data; nothing but names and types of columns is read.

    Raises
    ------
    ValueError
        If they are of no kind that is known.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)) or _are_paths(data):
        given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
        if not given:
            raise ValueError("The list of Parquet files is empty.")
        paths = [path for one in given for path in parquet_files(one)]
        check_once(paths)
        return local.of_parquet(paths)
    if isinstance(data, Mapping):
        return local.of_arrays(data)
    package = type(data).__module__.partition(".")[0]
    kind = type(data).__name__
    if package == "pyarrow":
        if kind == "RecordBatchReader":
            return local.OneReading(data)
        if hasattr(data, "get_fragments"):
            return local.of_dataset(data)
        if kind == "RecordBatch":
            data = pyarrow().Table.from_batches([data])
        if kind in ("RecordBatch", "Table"):
            return local.of_table(data)
    if package == "polars" and kind == "LazyFrame":
        return local.of_lazy_frame(data)
    if kind == "DuckDBPyRelation":
        return local.of_relation(data)
    if package in ("dask", "dask_expr"):
        from .dask import DaskSource

        return DaskSource(data)
    if package == "pyspark":
        from .spark import SparkSource

        return SparkSource(data)
    if package == "ray":
        from .ray import RaySource

        return RaySource(data)
    if hasattr(data, "__arrow_c_stream__"):
        return local.of_stream(data)
    raise ValueError(f"data is a {type(data).__name__}, which is no source of rows. {_GIVE}")


def _are_paths(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and all(isinstance(p, (str, os.PathLike)) for p in data)
