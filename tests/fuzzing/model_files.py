"""Model files that are damaged or tampered with, and what must hold for each of them.

A file is refused with one line, or it gives a model that predicts.
"""

from __future__ import annotations

import copy
import io
import json
import math
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fragility import ERMClassifier, SatisficingClassifier
from fragility.exceptions import ModelFileError
from fragility.losses import SmoothedHinge
from fragility.pipelines import ColumnReader, load_model, read_about, save_model, train_pipeline

from ..patient_table import patients

_VALUES = (
    *("NaN", "Infinity", "-Infinity", "0", "1", "2", "-1", "0.5", "1e308", "-1e308", "1e-320"),
    *("true", "false", "null", '""', '"x"', '"drop"', '"passthrough"', '"pandas"', '"error"'),
    *("[]", "{}", "[1, 2]", '["age"]', '{"a": 1}', "9" * 30, "9" * 5000, "[" * 3000 + "]" * 3000),
    *('"median"', '"infrequent_if_exist"', '"age"', '"smoker"', '"/tmp/cache"', "4", "7", "{"),
)
_WORDS = (
    *("ObjectNode", "ListNode", "TupleNode", "DictNode", "SetNode", "JsonNode", "NdArrayNode"),
    *("TypeNode", "FunctionNode", "MethodNode", "PartialNode", "CachedNode", "SliceNode"),
    *("Pipeline", "StandardScaler", "SimpleImputer", "OneHotEncoder", "ColumnTransformer"),
    *("KNNImputer", "LogisticRegression", "ERMClassifier", "float64", "str", "system", "os"),
    *("sklearn.pipeline", "sklearn.preprocessing._data", "sklearn.impute._base", "builtins", ""),
)
_JUNK = (None, 3, -1, 2.5, True, "x", "", [], {}, [[]], {"a": 1}, math.nan, 10**30)


def corpus() -> list[bytes]:
    """Files of models of several shapes."""
    data = patients()
    gaps = data.assign(dose=data["dose"].where(np.arange(len(data)) != 3))
    three = data.assign(ill=np.where(data["age"] > 65, "old", data["ill"]))
    X, y = data[["age", "dose", "stage"]], data["ill"].to_numpy(dtype=str)
    encoder = OneHotEncoder(drop="first", min_frequency=30, handle_unknown="infrequent_if_exist")
    parts = ColumnTransformer(
        [("n", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]), ("c", encoder, [2])],
        transformer_weights={"n": 0.5},
    )
    pipelines = [
        train_pipeline(gaps, "ill", impute=True).pipeline,
        train_pipeline(three, "ill", method="erm").pipeline,
        make_pipeline(parts, SatisficingClassifier(SmoothedHinge(), slack=0.1)).fit(X, y),
        make_pipeline(StandardScaler(), ERMClassifier()).fit(X[["age", "dose"]].to_numpy(), y),
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.skops" for number in range(len(pipelines))]
        for pipeline, path in zip(pipelines, paths, strict=True):
            save_model(pipeline, path)
        return [path.read_bytes() for path in paths]


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Changed files without end, each with one to three changes of `data`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    while True:
        kind = rng.random()
        if kind < 0.15:
            yield _bytes_changed(data, rng)
            continue
        changed = dict(contents)
        for _ in range(rng.integers(1, 4)):
            if kind < 0.45:
                _change_array(changed, rng)
            elif kind < 0.55:
                _change_json(changed, "about.json", rng)
            else:
                _change_json(changed, "schema.json", rng)
        packed = _zipped(changed, rng)
        yield _records_changed(packed, rng) if kind > 0.93 else packed


def check(data: bytes) -> bool:
    """Fail unless a file is refused in one line, or holds a model that predicts: which of them."""
    try:
        return _check(data)
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of a refusal: {error}") from error


def _check(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.skops"
        path.write_bytes(data)
        try:
            read_about(path)
        except ModelFileError as error:
            _check_line(str(error))
        try:
            pipeline = load_model(path)
        except ModelFileError as error:
            _check_line(str(error))
            return False
        assert [found.name for found in Path(folder).iterdir()] == ["model.skops"]
        _check_model(pipeline)
    return True


def _check_model(pipeline: Pipeline) -> None:
    assert type(pipeline) is Pipeline
    for name, value in pipeline.get_params().items():
        assert value is None or name.rpartition("__")[2] not in ("memory", "n_jobs"), name
    repr(pipeline)
    rows, classes = _good_rows(pipeline), pipeline.classes_
    probabilities, predicted = pipeline.predict_proba(rows), pipeline.predict(rows)
    assert len(set(classes.tolist())) == classes.size >= 2
    assert probabilities.shape == (len(rows), classes.size)
    assert np.isfinite(probabilities).all()
    assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert set(predicted.tolist()) <= set(classes.tolist())


def _check_line(message: str) -> None:
    assert message.startswith("model.skops is not a usable model: "), message
    assert message.endswith("."), message
    assert message.isprintable(), message
    assert len(message) < 3000, message


def _good_rows(pipeline: Pipeline):
    """Rows that a model says it can read."""
    rng = np.random.default_rng(0)
    first = pipeline.steps[0][1]
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    numbers = rng.normal(size=(20, 1)) * 10.0 ** rng.integers(-3, 4, size=(20, 1))
    if isinstance(first, ColumnReader):
        columns = {name: rng.permutation(numbers[:, 0]) for name in first.numeric}
        for name, levels in first.levels_.items():
            columns[name] = [levels[place] for place in rng.integers(len(levels), size=20)]
        return pd.DataFrame(columns)
    assert isinstance(first, BaseEstimator)
    if isinstance(first, ColumnTransformer):
        stages = rng.choice(["I", "II", "III"], size=(20, 1))
        values = np.hstack([numbers.astype(object)] * 2 + [stages])
        return pd.DataFrame(values, columns=first.feature_names_in_)
    return np.hstack([numbers] * first.n_features_in_)


def _pick(rng: np.random.Generator, items):
    return items[rng.integers(len(items))]


def _bytes_changed(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place, kind = int(rng.integers(len(changed))), rng.integers(4)
        if kind == 0:
            changed[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del changed[place : place + int(rng.integers(1, 100))]
        elif kind == 2:
            changed[place:place] = rng.bytes(int(rng.integers(1, 20)))
        else:  # the directory at the end is what a reader looks at first
            changed[-1 - place % min(len(changed), 1200)] = int(rng.integers(256))
        if not changed:
            return b""
    return bytes(changed)


def _zipped(contents: dict[str, bytes], rng: np.random.Generator) -> bytes:
    """An archive, now and then of an odd kind."""
    file, odd = io.BytesIO(), rng.integers(40)
    methods = {0: zipfile.ZIP_BZIP2, 1: zipfile.ZIP_LZMA, 2: zipfile.ZIP_STORED}
    with (
        warnings.catch_warnings(),
        zipfile.ZipFile(file, "w", methods.get(int(odd), zipfile.ZIP_DEFLATED)) as archive,
    ):
        warnings.simplefilter("ignore")
        names = list(contents)
        for name in names:
            archive.writestr(f"../{name}" if odd == 3 else name, contents[name])
        if odd == 4:
            archive.writestr(_pick(rng, names), contents[_pick(rng, names)])
        if odd == 5:
            archive.writestr("folder/", b"")
        if odd == 6:
            archive.writestr("more.npy", b"\0" * 2_000_000)
    return file.getvalue()


def _records_changed(packed: bytes, rng: np.random.Generator) -> bytes:
    """A field of a record of the archive with another value: version, flags, method, sizes."""
    signature, places = _pick(
        rng,
        [
            (b"PK\x03\x04", (4, 6, 8, 10, 14, 18, 22, 26, 28)),
            (b"PK\x01\x02", (4, 6, 8, 10, 12, 16, 20, 24, 28, 30, 32, 34, 38, 42)),
            (b"PK\x05\x06", (4, 6, 8, 10, 12, 16, 20)),
        ],
    )
    starts = [at for at in range(len(packed)) if packed.startswith(signature, at)]
    changed, place = bytearray(packed), _pick(rng, starts) + _pick(rng, places)
    value = _pick(rng, [0, 1, 8, 9, 12, 45, 84, 99, 0x7FFF, 0x0801, 0xFFFF])
    struct.pack_into("<H", changed, place, value)
    return bytes(changed)


def _change_array(contents: dict[str, bytes], rng: np.random.Generator) -> None:
    names = [name for name in contents if name.endswith(".npy")]
    if not names:
        return
    name = _pick(rng, names)
    try:
        array = np.load(io.BytesIO(contents[name]))
    except Exception:  # changed before
        return
    if array.size > 10_000:  # of entries without bytes, which any copy would fill
        return
    kind = rng.integers(10)
    if kind == 0:
        contents[name] = contents[_pick(rng, names)]
    elif kind == 1:
        contents[name] = _bytes_changed(contents[name], rng)
    elif kind == 2:
        header = np.lib.format.header_data_from_array_1_0(array)
        shape = _pick(rng, [(1 << 60,), (1 << 33, 8), (0,), (-1,), (3, 1 << 62), (10**12,)])
        descr = _pick(rng, [header["descr"], "<f8", "|V0", "<U0", "|O"])
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(file, header | {"shape": shape, "descr": descr})
        contents[name] = file.getvalue() + array.tobytes()
    elif kind == 3:
        del contents[name]
    else:
        contents[name] = _npy(_other_array(array, rng))


def _other_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(5)
    if kind == 0 and array.dtype.kind == "f" and array.size:
        wrong = array.copy()
        odd = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308, 5e-324, 1e99]
        with np.errstate(over="ignore"):  # of half precision
            wrong.flat[rng.integers(array.size)] = _pick(rng, odd)
        return wrong
    if kind == 1:
        dtype = _pick(rng, ["c16", "i8", "u1", "f2", "f4", ">f8", "?", "U5", "S5", "M8[s]"])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return array.astype(dtype)
            except Exception:  # NumPy has many reasons
                return np.zeros(array.shape, dtype)
    if kind == 2:
        return np.resize(array, _pick(rng, [(), (0,), (1,), (2,), (7,), (1, 7), (2, 7), (3, 7)]))
    if kind == 3:
        return np.full(array.shape, array.flat[0] if array.size else 0)
    return (
        _pick(rng, [array.T, array[..., None], array[::-1], array.ravel(), array[:-1]])
        if (array.ndim)
        else np.zeros(2)
    )


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def _change_json(contents: dict[str, bytes], name: str, rng: np.random.Generator) -> None:
    if rng.random() < 0.03:
        broken = ["", "{", "[]", "3", "null", "[" * 100_000 + "]" * 100_000, "\xff", '{"a": NaN}']
        contents[name] = _pick(rng, broken).encode("latin-1")
        return
    try:
        root = json.loads(contents[name])
    except (ValueError, RecursionError):
        return
    if not (root and isinstance(root, dict)):
        return
    part, key = _place(root, rng)
    kind = rng.integers(8)
    if kind == 0:
        part[key] = copy.deepcopy(_pick(rng, _JUNK))
    elif kind == 1:
        del part[key]
    elif kind == 2:
        other, place = _place(root, rng)
        part[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(part[key])
    elif kind == 3 and isinstance(part, list):
        part.insert(int(rng.integers(len(part) + 1)), copy.deepcopy(part[key]))
    elif kind == 4 and isinstance(part, dict):
        part[_pick(rng, ["transform", "predict", "_more", "x", "n_jobs"])] = part.pop(key)
    else:
        nodes = [node for node in _dicts(root) if "__loader__" in node]
        texts = [node for node in nodes if node["__loader__"] == "JsonNode"]
        if kind < 7 and texts:
            _pick(rng, texts)["content"] = _pick(rng, _VALUES)
        elif nodes:
            node, other = _pick(rng, nodes), _pick(rng, nodes)
            field = _pick(rng, ["__class__", "__module__", "__loader__", "__id__", "file", "type"])
            node[field] = _pick(rng, [other.get(field), *_WORDS])
    contents[name] = json.dumps(root).encode()


def _place(root, rng: np.random.Generator):
    """A container somewhere in a tree, and one of its keys."""
    part = root
    while True:
        key = _pick(rng, list(part) if isinstance(part, dict) else range(len(part)))
        below = part[key]
        if not below or not isinstance(below, (dict, list)) or rng.random() < 0.1:
            return part, key
        part = below


def _dicts(root) -> Iterator[dict]:
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting.extend(part.values() if isinstance(part, dict) else part)
        waiting = [below for below in waiting if isinstance(below, (dict, list))]
