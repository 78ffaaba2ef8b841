"""Sources on this machine: all give the bytes of the same rows in memory, and say what is wrong."""

from __future__ import annotations

import pickle
import re
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from fragility import FragilitySketch, Report, fragility_index
from fragility.distributed import sketch, sketch_by, sketching
from fragility.exceptions import PartitionError
from fragility.sources import local
from fragility.sources import source as source_module
from fragility.sources.opening import open_source
from fragility.tables import open_table
from fragility.tables.several_files import parquet_files
from fragility.tables.values import numbers

from .engine_data import columns, write_hollow, write_parts, wrong_parts

DATA = columns()
KINDS = ["arrays", "table", "pandas", "polars", "folder", "pattern", "paths", "dataset", "lazy"]
KINDS += ["relation"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("rows"), DATA)


def made(kind, folder):
    """The rows as one of `KINDS`."""
    pattern = str(folder / "*.parquet")
    return {
        "arrays": lambda: DATA,
        "table": lambda: pa.table(DATA),
        "pandas": lambda: pd.DataFrame(DATA).assign(odd=[{1}] * len(DATA["p"])),
        "polars": lambda: pl.DataFrame(DATA),
        "folder": lambda: folder,
        "pattern": lambda: pattern,
        "paths": lambda: sorted(folder.glob("*.parquet")),
        "dataset": lambda: pyarrow.dataset.dataset(folder),
        "lazy": lambda: pl.scan_parquet(pattern),
        "relation": lambda: duckdb.read_parquet(pattern),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_bytes_of_memory(kind, folder):
    data = made(kind, folder)
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"])
    assert sketch(data, label="sick", score="p").to_bytes() == plain.to_bytes()
    weighted = FragilitySketch(labels=[0, 1]).update(DATA["sick"], DATA["p"], DATA["w"])
    asked = {"label": "sick", "score": "p", "weight": "w", "labels": [0, 1]}
    assert sketch(data, **asked).to_bytes() == weighted.to_bytes()


def rows_of(frame, monkeypatch, batches, most_slices):
    """Rows of a query in order, and how many slices they came in; 0 if it was streamed."""
    monkeypatch.setattr(local, "_BATCHES", batches)
    monkeypatch.setattr(local, "_MOST_SLICES", most_slices)
    monkeypatch.setattr(local, "batch_rows", lambda n_columns: 50)
    slices, plain = [], local._slices

    def counted(chosen, most):
        found = plain(chosen, most)
        found = None if found is None else list(found)
        slices.append(len(found or []))
        return found

    monkeypatch.setattr(local, "_slices", counted)
    source = local.of_lazy_frame(frame)

    def add(state, batch, part):
        assert batch.schema.names == ["p", "sick"]
        return [*(state or []), *batch.to_pylist()]

    rows = source.reduce(add, lambda earlier, later: earlier + later, ["p", "sick"])
    return pl.DataFrame(rows), slices[0]


@pytest.mark.parametrize("most_slices", [1000, 5])
def test_plain_scans_of_polars_are_read_in_slices(folder, most_slices, monkeypatch):
    """All rows in their order, across files; too many slices are streamed."""
    frame = pl.scan_parquet(folder / "*.parquet")
    rows, n_slices = rows_of(frame, monkeypatch, 3, most_slices)
    assert rows.equals(frame.select("p", "sick").collect())
    # After a full last slice polars is asked for one more.
    assert n_slices == (len(DATA["p"]) // 150 + 1 if most_slices == 1000 else 0)


@pytest.mark.parametrize(
    "asked",
    [
        lambda frame: frame.filter(pl.col("p") > 0.5),
        lambda frame: frame.head(777),
        lambda frame: frame.with_columns(p=pl.col("p") / 2.0),
        lambda frame: frame.sort("p", maintain_order=True),
        lambda frame: pl.concat([frame, frame]),
        lambda frame: frame.collect().lazy(),
    ],
    ids=["filter", "head", "computed", "sorted", "two", "memory"],
)
def test_other_queries_of_polars_are_computed_once(folder, asked, monkeypatch):
    frame = asked(pl.scan_parquet(folder / "*.parquet"))
    rows, n_slices = rows_of(frame, monkeypatch, 3, 1000)
    assert n_slices == 0
    assert rows.equals(frame.select("p", "sick").collect())


def test_interval_holds_the_index(folder):
    found = sketch(folder, label="sick", score="q").fragility()
    exact = fragility_index(DATA["sick"], DATA["q"])
    assert found.lower - 1e-13 <= exact <= found.upper + 1e-13


@pytest.mark.parametrize("kind", ["arrays", "folder", "lazy"])
def test_groups_in_one_reading(kind, folder):
    found = sketch_by(made(kind, folder), "site", label="sick", score="p", weight="w")
    assert list(found) == ["a", "b", "c"]
    for site, own in found.items():
        rows = DATA["site"] == site
        alone = FragilitySketch(labels=[0, 1]).update(*(DATA[c][rows] for c in ("sick", "p", "w")))
        assert own.to_bytes() == alone.to_bytes()


def test_several_columns_of_groups_are_tuples(folder):
    found = sketch_by(folder, ["sick", "site"], label="sick", score="p", labels=[0, 1])
    expected = {(y, s) for y, s in zip(DATA["sick"].tolist(), DATA["site"], strict=True)}
    assert set(found) == expected
    assert sum(int(own.support.sum()) for own in found.values()) == len(DATA["p"])


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-3, 12], [0.0, 1.0]])
def test_labels_of_every_kind(labels):
    y = np.array(labels)[DATA["sick"]]
    found = sketch({"y": y, "p": DATA["p"]}, label="y", score="p", pos_label=labels[0])
    expected = FragilitySketch(labels=labels, pos_label=labels[0]).update(y, DATA["p"])
    assert found.to_bytes() == expected.to_bytes()
    codes = pa.array(y).dictionary_encode()
    assert sketch({"y": codes, "p": DATA["p"]}, label="y", score="p", pos_label=labels[0]) == found


def test_several_classes(folder):
    rng = np.random.default_rng(5)
    scores = rng.dirichlet([1.0, 1.0, 1.0], 4_000)
    y = np.array(["x", "y", "z"])[rng.integers(0, 3, 4_000)]
    data = {"truth": y, **{f"p{k}": scores[:, k] for k in range(3)}}
    for multi_class in ("ovo", "ovr"):
        found = sketch(data, label="truth", score=["p0", "p1", "p2"], multi_class=multi_class)
        expected = FragilitySketch(labels=["x", "y", "z"], multi_class=multi_class)
        assert found.to_bytes() == expected.update(y, scores).to_bytes()


@pytest.mark.parametrize("flaw", wrong_parts())
@pytest.mark.parametrize("reader", ["folder", "dataset"])
def test_errors_name_the_file(tmp_path, flaw, reader):
    part, words = wrong_parts()[flaw]
    write_parts(tmp_path, DATA)
    pq.write_table(pa.table(part), tmp_path / "part-1b.parquet")
    data = tmp_path if reader == "folder" else pyarrow.dataset.dataset(tmp_path)
    labels = [0, 1] if flaw == "third label" else None
    with pytest.raises(PartitionError, match=words) as caught:
        sketch(data, label="sick", score="p", labels=labels)
    assert "part-1b.parquet" in caught.value.file
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.file) == (str(caught.value), caught.value.file)


@pytest.mark.parametrize(
    ("third", "words"),
    [(1, r"0 in \S*0\.parquet.* 7 in \S*1\.parquet"), (0, r"All labels are in .*0\.p")],
)
def test_a_third_label_is_told_with_its_file(tmp_path, third, words):
    for k in range(2):
        part = {"sick": [0, 1, 7 if k == third else 1], "p": [0.1, 0.5, 0.9]}
        pq.write_table(pa.table(part), tmp_path / f"{k}.parquet")
    with pytest.raises(ValueError, match="3 classes.*" + words):
        sketch(tmp_path, label="sick", score="p")
    with pytest.raises(ValueError, match="3 classes.*" + words):
        Report.from_source(tmp_path, label="sick", scores="p")


def test_mixed_types_in_one_part(tmp_path):
    write_parts(tmp_path, DATA)
    text = {"sick": pa.array(["yes", "no"]), "p": pa.array([0.5, 0.25])}
    pq.write_table(pa.table(text), tmp_path / "part-9.parquet")
    with pytest.raises(ValueError, match="text and numbers"):
        sketch(tmp_path, label="sick", score="p")
    with pytest.raises(PartitionError, match="part-9"):
        sketch(tmp_path, label="sick", score="p", labels=[0, 1])
    frame = pd.DataFrame({"sick": [0, 1, 0], "p": [0.5, "often", 0.25]})
    with pytest.raises(PartitionError, match=r"often|type"):
        sketch(frame, label="sick", score="p")


def test_a_damaged_file_fails_the_call(tmp_path):
    for k in (2, 0):  # of the first one, columns are looked up before anything is read
        write_parts(tmp_path, DATA)
        (tmp_path / f"part-{k}.parquet").write_bytes(b"PAR1 but no more")
        with pytest.raises(PartitionError, match=rf"part-{k}\.parquet"):
            sketch(tmp_path, label="sick", score="p")
        if k:  # the first one says what the columns of a dataset are
            with pytest.raises(PartitionError, match=rf"part-{k}\.parquet"):
                sketch(pyarrow.dataset.dataset(tmp_path), label="sick", score="p")
    write_parts(tmp_path, DATA)
    lacking = pa.table({"sick": [0, 1]})
    pq.write_table(lacking, tmp_path / "part-2.parquet")
    with pytest.raises(PartitionError, match="no column 'p'"):
        sketch(tmp_path, label="sick", score="p")


def test_a_filtered_dataset_is_read_with_its_filter(folder):
    data = pyarrow.dataset.dataset(folder).filter(pyarrow.dataset.field("q") > 0.5)
    kept = DATA["q"] > 0.5
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"][kept], DATA["p"][kept])
    assert sketch(data, label="sick", score="p").to_bytes() == plain.to_bytes()


def test_groups_of_more_columns_than_a_number_tells_apart():
    """1,024 values in each of seven columns: numbers of combinations had lost their first bits."""
    step = np.arange(1024)
    first, others = np.append(step, 0 * step), np.append(0 * step, step)
    rows = {"y": np.arange(2048) % 2, "p": np.linspace(0.0, 1.0, 2048), "g0": first}
    names = [f"g{k}" for k in range(7)]
    rows |= dict.fromkeys(names[1:], others)
    found = sketch_by(rows, names, label="y", score="p", n_bins=16)
    assert len(found) == 2047  # all 0 twice
    assert {int(own.support.sum()) for key, own in found.items() if any(key)} == {1}


def test_groups_of_rows_that_were_chosen_are_a_dataset(tmp_path):
    """Their file says that it has more rows than they do."""
    pq.write_table(pa.table(DATA), tmp_path / "all.parquet", row_group_size=6_000)
    data = pyarrow.dataset.dataset(tmp_path)
    (fragment,) = data.get_fragments()
    chosen = [fragment.subset(row_group_ids=[1])]
    chosen = pyarrow.dataset.FileSystemDataset(chosen, data.schema, data.format)
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"][6_000:], DATA["p"][6_000:])
    assert sketch(chosen, label="sick", score="p").to_bytes() == plain.to_bytes()


def test_rows_that_a_file_promises_but_lacks_fail_the_call(tmp_path):
    write_parts(tmp_path, DATA)
    write_hollow(tmp_path / "part-1.parquet", pa.table(DATA).schema)
    for data in (tmp_path, pyarrow.dataset.dataset(tmp_path)):
        with pytest.raises(PartitionError, match=r"part-1\.parquet.*2 rows, but has 0"):
            sketch(data, label="sick", score="p")


def test_small_batches_are_joined_and_large_ones_cut(monkeypatch):
    monkeypatch.setattr(source_module, "LEAST_ROWS", 100)
    monkeypatch.setattr(source_module, "MOST_ROWS", 250)
    sizes = [1, 0, 60, 45, 900, 3]
    batches = [pa.RecordBatch.from_pydict({"x": np.arange(n) + 1000 * n}) for n in sizes]
    found = list(source_module.even_batches(batches))
    assert [batch.num_rows for batch in found] == [106, 250, 250, 250, 150, 3]
    rows = pa.Table.from_batches(found).column("x").to_pylist()
    assert rows == pa.Table.from_batches(batches).column("x").to_pylist()


def test_categories_of_a_part_stay_as_its_batches_have_them(tmp_path):
    """Joined, those of two batches had the order of the first, or too many for their codes."""
    p = np.linspace(0.0, 1.0, 100)

    def stored(names, **options):
        values = pa.array(np.arange(100) % len(names), pa.int8())
        category = pa.DictionaryArray.from_arrays(values, pa.array(names), **options)
        return pa.table({"category": category, "y": np.arange(100) // 50, "p": p})

    def parts(tables):
        with pq.ParquetWriter(tmp_path / "all.parquet", tables[0].schema) as writer:
            for own in tables:
                writer.write_table(own)
        return pa.concat_tables(tables), tmp_path, pyarrow.dataset.dataset(tmp_path)

    turned = [stored(names, ordered=True) for names in (["low", "high"], ["high", "low"])]
    for data in parts(turned):
        with pytest.raises(ValueError, match=r"in both orders.*pos_label="):
            sketch(data, label="category", score="p")
        with pytest.raises(ValueError, match="in both orders"):
            Report.from_source(data, label="category", scores="p")
    many = [stored([f"{letter}{k}" for k in range(100)]) for letter in "ab"]
    for data in parts(many):
        assert len(sketch_by(data, "category", label="y", score="p", n_bins=16)) == 200


def test_parts_are_merged_in_their_order(folder):
    def add(state, batch, part):
        return (state or []) + batch.column("patient").to_pylist()

    found = open_source(folder).reduce(add, lambda a, b: a + b, ["patient"])
    assert found == DATA["patient"].tolist()


def test_a_stream_is_read_once():
    table = pa.table({"y": [0, 1], "p": [0.2, 0.7]})
    found = sketch(table.to_reader(), label="y", score="p", labels=[0, 1])
    assert found.support.tolist() == [1, 1]
    with pytest.raises(ValueError, match="can be read once"):
        sketch(table.to_reader(), label="y", score="p")


def test_no_rows_are_an_empty_sketch():
    empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    found = sketch(empty, label="y", score="p", labels=[0, 1])
    assert found.to_bytes() == FragilitySketch(labels=[0, 1]).to_bytes()
    with pytest.raises(ValueError, match="no label"):
        sketch(empty, label="y", score="p")
    assert sketch_by(empty, "y", label="y", score="p", labels=[0, 1]) == {}


def test_too_many_groups_are_refused():
    n = 200
    data = {"g": np.arange(n), "y": np.arange(n) % 2, "p": np.linspace(0, 1, n)}
    with pytest.raises(PartitionError, match=r"1 GiB.*n_bins=262144"):
        sketch_by(data, "g", label="y", score="p", n_bins=1 << 20)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_groups_whose_weights_take_too_much_are_refused(n_parts, monkeypatch):
    """Sums of weights of many scales are longer: they are counted as they are."""
    n = 40
    monkeypatch.setattr(sketching, "_MOST_BYTES", 12 << 20)  # 9 MB are taken to be enough for 20
    data = {"g": np.arange(n) // 2, "y": np.arange(n) % 2, "p": np.linspace(0, 1, n)}
    data["w"] = 0.3 * 10.0 ** (18 * data["y"])
    parts = [pa.table(data).slice(k * n // n_parts, n // n_parts) for k in range(n_parts)]
    rows = pyarrow.dataset.dataset(list(map(pyarrow.dataset.dataset, parts)))
    asked = {"label": "y", "score": "p", "labels": [0, 1]}
    assert len(sketch_by(rows, "g", **asked)) == 20
    with pytest.raises(ValueError, match=r"20 groups or more take more than 1 GiB.*n_bins=1024"):
        sketch_by(rows, "g", weight="w", **asked)


def test_files_of_folders_and_patterns(tmp_path):
    for name in ("b.parquet", "a.parquet", "deep/c.pq", "_temporary/d.parquet", ".e.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"PAR1")
    names = [path.removeprefix(f"{tmp_path}/") for path in parquet_files(tmp_path)]
    assert names == ["a.parquet", "b.parquet", "deep/c.pq"]
    # A pattern may match folders and what is in them, and what a broken job of an engine left.
    for pattern in ("**", "**/*", "*"):
        found = parquet_files(tmp_path / pattern)
        assert sorted(found) == [f"{tmp_path}/{name}" for name in names]
    assert parquet_files(tmp_path / "?.parquet") == [str(tmp_path / f"{x}.parquet") for x in "ab"]
    refused = ("nothing", "no such file"), ("*.csv", "such a name.$"), ("_*/*", "a line below.$")
    for given, words in refused:
        with pytest.raises(ValueError, match=words):
            parquet_files(tmp_path / given)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no Parquet file"):
        parquet_files(tmp_path / "empty")


def test_folders_that_are_called_like_files_and_links(tmp_path):
    """Engines write folders of parts that end in .parquet."""
    own, other = tmp_path / "own", tmp_path / "other.parquet"
    for number, folder in enumerate((own / "monday.parquet", other)):
        folder.mkdir(parents=True)
        rows = {name: values[100 * number : 100 * number + 100] for name, values in DATA.items()}
        pq.write_table(pa.table(rows), folder / "part-0.parquet")
    (own / "tuesday").symlink_to(other)
    (own / "above").symlink_to(own)  # which would go on for ever
    plain = FragilitySketch(labels=[0, 1]).update(DATA["sick"][:200], DATA["p"][:200])
    assert sketch(own, label="sick", score="p", labels=[0, 1]).to_bytes() == plain.to_bytes()
    assert open_table(own).n_rows == 200
    (own / "latest.parquet").symlink_to(other / "part-0.parquet")
    with pytest.raises(ValueError, match="would count twice"):
        sketch(own, label="sick", score="p")
    with pytest.raises(ValueError, match="would count twice"):
        open_table(own)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "sik", "score": "p"}, "no column 'sik'.*Did you mean 'sick'"),
        ({"label": "sick", "score": "sick"}, "two things"),
        ({"label": "sick", "score": []}, "names no column"),
        ({"label": "sick", "score": ["p", "q"], "labels": [0, 1, 2]}, "3 classes"),
        ({"label": "sick", "score": "p", "n_bins": 100}, "power of two"),
        ({"label": "patient", "score": "p"}, "more than 1,000 different labels"),
        ({"label": "q", "score": "p"}, "more than 1,000 different labels"),
    ],
)
def test_wrong_requests(options, words):
    with pytest.raises(ValueError, match=words):
        sketch(DATA, **options)


def test_what_is_no_source():
    for data in (3, pyarrow.dataset.dataset(pa.table(DATA)).scanner()):
        with pytest.raises(ValueError, match=r"(int|Scanner), which is no source.*Parquet"):
            sketch(data, label="y", score="p")
    with pytest.raises(ValueError, match="different lengths"):
        sketch({"y": [0, 1], "p": [0.5]}, label="y", score="p")
    with pytest.raises(ValueError, match="column 'y' is not an array of one type"):
        sketch({"y": [0, 1 << 70], "p": [0.5, 0.5]}, label="y", score="p")


def test_a_file_counts_once(folder):
    part = str(folder / "part-0.parquet")
    for given in ([folder, part], [part, part]):
        with pytest.raises(ValueError, match=r"part-0.parquet is the same file as .* twice"):
            sketch(given, label="sick", score="p")
    with pytest.raises(ValueError, match="list of Parquet files is empty"):
        sketch([], label="sick", score="p")


def test_names_of_columns_of_frames():
    y, p = DATA["sick"], DATA["p"]
    plain = FragilitySketch().update(y, p).to_bytes()
    assert sketch(pd.DataFrame({0: y, 1: p}), label="0", score="1").to_bytes() == plain
    twice = pd.DataFrame(np.stack([y, p, p], axis=1), columns=["y", "p", "p"])
    for data in (twice, pa.table([y, p, p], names=["y", "p", "p"])):
        with pytest.raises(ValueError, match="Several columns of the data have the name 'p'"):
            sketch(data, label="y", score="p")


@pytest.mark.parametrize("kind", ["decimal128(4, 2)", "decimal128(18, 11)", "decimal128(38, 20)"])
def test_decimals_are_the_nearest_floats(kind):
    """So `pyarrow` does not cast them: it multiplies by a power of ten that is no float."""
    hundredths = [Decimal(k) / 100 for k in range(101)]
    text = [str(value) for value in hundredths]
    cast = pa.array(hundredths, pa.decimal128(*map(int, re.findall(r"\d+", kind)[1:])))
    expected = [float(value) for value in text]
    assert numbers(cast).tolist() == expected
    sick = [k % 3 == 0 for k in range(101)]
    plain = FragilitySketch().update(sick, expected)
    found = sketch(pa.table({"sick": sick, "p": cast}), label="sick", score="p")
    assert found.to_bytes() == plain.to_bytes()


def test_whole_decimals_are_labels():
    """As the sum of whole numbers is in many engines."""
    sums = pa.array([Decimal(k % 2) for k in range(10)], pa.decimal128(38, 0))
    p = np.linspace(0.1, 0.9, 10)
    found = sketch(pa.table({"sick": sums, "p": p}), label="sick", score="p")
    plain = FragilitySketch().update(np.arange(10) % 2, p)
    assert FragilitySketch.from_bytes(found.to_bytes()).to_bytes() == plain.to_bytes()
    assert list(sketch_by({"n": sums, "y": sums, "p": p}, "n", label="y", score="p")) == [0, 1]


def test_long_decimals_are_labels_and_groups():
    """As whole numbers without a sign are in Spark; as doubles, neighbours would be the same."""
    long = [2**63, 2**63 + 1, 2**63 + 1, 2**63]
    column, p = pa.array(map(Decimal, long), pa.decimal128(20, 0)), [0.2, 0.4, 0.6, 0.8]
    found = sketch({"y": column, "p": p}, label="y", score="p")
    assert found.to_bytes() == FragilitySketch().update(np.array(long, np.uint64), p).to_bytes()
    rows = {"y": [0, 1, 0, 1], "p": p, "group": column}
    assert list(sketch_by(rows, "group", label="y", score="p")) == sorted(set(long))
    longer = pa.array([Decimal(10) ** 20 + k for k in range(4)], pa.decimal128(38, 0))
    with pytest.raises(PartitionError, match=r"'group' holds values of type decimal128\(38, 0\)"):
        sketch_by(rows | {"group": longer}, "group", label="y", score="p")


@pytest.mark.parametrize("kind", ["pandas", "table", "file", "polars"])
def test_the_later_of_ordered_categories_is_positive(kind, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    risk = np.where(rng.random(200) < p, "high", "low")
    frame = pd.DataFrame({"risk": pd.Categorical(risk, ["low", "high"], ordered=True), "p": p})
    frame.to_parquet(tmp_path / "risk.parquet")
    data = {
        "pandas": frame,
        "table": pa.Table.from_pandas(frame),
        "file": tmp_path / "risk.parquet",
        "polars": pl.DataFrame({"risk": pl.Series(risk, dtype=pl.Enum(["low", "high"])), "p": p}),
    }[kind]
    plain = FragilitySketch().update(frame["risk"], p)
    assert plain.fragility().value < 1.0
    assert sketch(data, label="risk", score="p").to_bytes() == plain.to_bytes()
    # In an order that is asked for, the second one is.
    turned = FragilitySketch(labels=["high", "low"]).update(risk, p)
    asked = sketch(data, label="risk", score="p", labels=["high", "low"])
    assert asked.to_bytes() == turned.to_bytes()


def test_an_order_that_no_file_holds_is_refused(tmp_path):
    """Without a dictionary page categories are read in the order in which they first come."""
    risk = pd.Categorical(["high", "low", "high"], ["low", "high"], ordered=True)
    frame = pd.DataFrame({"risk": risk, "p": [0.9, 0.2, 0.3]})
    frame.to_parquet(tmp_path / "risk.parquet", use_dictionary=False)
    whole = pyarrow.dataset.dataset(tmp_path)
    positive = pyarrow.dataset.field("p") > 0.0
    filtered = whole.filter(positive), pyarrow.dataset.dataset([whole]).filter(positive)
    for data in (tmp_path, whole, *filtered):
        with pytest.raises(ValueError, match=r"may not hold the order; .* pos_label="):
            sketch(data, label="risk", score="p")
        with pytest.raises(ValueError, match="does not hold the order; name the positive class"):
            Report.from_source(data, label="risk", scores="p")
        assert sketch(data, label="risk", score="p", pos_label="high").pos_label == "high"


def test_a_filtered_dataset_keeps_the_order_that_its_files_hold(tmp_path):
    risk = pd.Categorical(["high", "low", "high"], ["low", "high"], ordered=True)
    frame = pd.DataFrame({"risk": risk, "p": [0.9, 0.2, 0.3]})
    frame.to_parquet(tmp_path / "risk.parquet")
    for data in (pyarrow.dataset.dataset(tmp_path), pyarrow.dataset.dataset(pa.table(frame))):
        chosen = data.filter(pyarrow.dataset.field("p") > 0.0)
        found = sketch(chosen, label="risk", score="p")
        assert found.to_bytes() == sketch(frame, label="risk", score="p").to_bytes()


def test_categories_in_both_orders_are_refused(tmp_path):
    for k, order in enumerate((["low", "high"], ["high", "low"])):
        risk = pd.Categorical(["low", "high"], order, ordered=True)
        pd.DataFrame({"risk": risk, "p": [0.1, 0.9]}).to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(ValueError, match=r"in both orders.*pos_label="):
        sketch(tmp_path, label="risk", score="p")


def test_labels_of_another_kind_are_blamed_on_their_file(tmp_path):
    """Labels are found first; which files have them is known."""
    for name, sick in {"a": [0, 1], "b": ["0", "1"], "c": [0, 1]}.items():
        pq.write_table(pa.table({"sick": sick, "p": [0.2, 0.8]}), tmp_path / f"{name}.parquet")
    with pytest.raises(PartitionError, match=r"holds '.' here, and . in .*a\.parquet") as caught:
        sketch(tmp_path, label="sick", score="p")
    assert caught.value.file.endswith("b.parquet")
    pq.write_table(pa.table({"sick": [0, 2], "p": [0.2, 0.8]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"3 classes .*2 in .*b\.parquet"):
        sketch(tmp_path, label="sick", score="p")


def test_a_panic_of_polars_fails_the_part(folder, monkeypatch):
    """Its exception is none that others catch; a file that shrank meanwhile raises it."""

    class PanicException(BaseException):
        pass

    def broken(frame, most):
        raise PanicException("assertion failed")

    monkeypatch.setattr(local, "_slices", broken)
    with pytest.raises(PartitionError, match="the query: polars broke off; were the files"):
        sketch(made("lazy", folder), label="sick", score="p", labels=[0, 1])


def test_shares_are_between_no_bounds_outside_of_0_and_1():
    flat = FragilitySketch().update([0, 1] * 500, np.full(1000, 0.3)).fragility()
    assert flat.auc.bounds == (0.0, 1.0)


def test_folders_that_are_named_for_values_are_no_columns_of_files(tmp_path):
    for site in "ab":
        (tmp_path / f"site={site}").mkdir()
        rows = pa.table({"sick": [0, 1], "p": [0.2, 0.8]})
        pq.write_table(rows, tmp_path / f"site={site}" / "rows.parquet")
    with pytest.raises(ValueError, match=r"no column 'site' in the files.*partitioning=.hive"):
        sketch_by(sorted(tmp_path.rglob("*.parquet")), "site", label="sick", score="p")
    dataset = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    assert list(sketch_by(dataset, "site", label="sick", score="p")) == ["a", "b"]
