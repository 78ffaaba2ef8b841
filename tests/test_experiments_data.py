"""The UCI and MedMNIST loaders: their facts, their choices, and what they refuse."""

import hashlib
import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest

from experiments.data import load_medmnist, load_uci, medmnist, uci, uci_files
from experiments.data.text_table import TextTable
from fragility.datasets.files import DataFile

SHARED = Path(__file__).parents[2] / "shared" / "data"
REAL = Path(os.environ.get("FRAGILITY_DATA", SHARED))
needs_uci = pytest.mark.skipif(not (REAL / "uci" / "wpbc.data").is_file(), reason="no UCI files")
needs_images = pytest.mark.skipif(
    not (REAL / "medmnist" / "breastmnist.npz").is_file(), reason="no MedMNIST files"
)


pytestmark = pytest.mark.usefixtures("no_network")


@needs_uci
class TestRealTables:
    @pytest.mark.parametrize(
        ("name", "paper", "shape", "ones"),
        [
            ("coimbra", "BCC", (116, 9), 64),
            ("liver", "LD", (345, 6), 200),
            ("ilpd", "ILDP", (583, 10), 416),
            ("german", "SG", (1000, 61), 300),
            ("prognostic", "BCW", (198, 32), 47),
            ("diabetes", "DI", (768, 8), 268),
            ("ionosphere", "IO", (351, 34), 225),
            ("sonar", "CB", (208, 60), 111),
        ],
    )
    def test_counts(self, name, paper, shape, ones):
        loaded = load_uci(name, data_home=REAL)
        assert loaded.data.shape == shape == (len(loaded.target), len(loaded.feature_names))
        assert loaded.target.sum() == ones
        assert set(loaded.target) == {0, 1}
        assert len(set(loaded.feature_names)) == shape[1]
        assert np.isfinite(loaded.data).all()
        X, y = load_uci(paper, data_home=REAL, return_X_y=True)
        assert np.array_equal(X, loaded.data)
        assert np.array_equal(y, loaded.target)

    @pytest.mark.parametrize(
        ("name", "column", "rows"),
        [("ilpd", "albumin/globulin", 583), ("wpbc", "lymph nodes", 198)],
    )
    def test_missing_values(self, name, column, rows):
        kept, filled, dropped = (
            load_uci(name, missing=how, data_home=REAL) for how in ("keep", "median", "drop")
        )
        at = kept.feature_names.index(column)
        unknown = np.isnan(kept.data[:, at])
        assert unknown.sum() == np.isnan(kept.data).sum() == 4
        assert kept.n_missing == filled.n_missing == dropped.n_missing == 4
        median = np.sort(kept.data[~unknown, at])
        middle = (median[(rows - 5) // 2] + median[(rows - 4) // 2]) / 2
        assert (filled.data[unknown, at] == middle).all()
        assert np.array_equal(filled.data[~unknown], dropped.data)
        assert np.array_equal(filled.target[~unknown], dropped.target)

    def test_the_time_to_recurrence_is_no_feature(self):
        loaded = load_uci("prognostic", data_home=REAL)
        assert loaded.feature_names[0] == "mean radius"
        assert loaded.data[0, 0] == 18.02
        assert loaded.data[0, -2:].tolist() == [5.0, 5.0]
        times = [float(row.split(",")[2]) for row in _lines("wpbc.data")]
        assert not (loaded.data == np.array(times)[:, None]).all(axis=0).any()
        assert "left out" in loaded.DESCR

    def test_the_two_labels_of_liver(self):
        rows = np.array([row.split(",") for row in _lines("bupa.data")], dtype=float)
        selector = load_uci("bupa", data_home=REAL)
        drinks = load_uci("bupa", liver_label="drinks", data_home=REAL)
        much = load_uci("bupa", liver_label="drinks", drinks_from=6, data_home=REAL)
        assert np.array_equal(selector.data, rows[:, :6])
        assert np.array_equal(selector.target, rows[:, 6] == 2)
        assert np.array_equal(drinks.data, rows[:, :5])
        assert np.array_equal(drinks.target, rows[:, 5] >= 3)
        assert np.array_equal(much.target, rows[:, 5] >= 6)
        with pytest.raises(
            ValueError, match=r"drinks_from=99 puts all rows into one class.*0 to 20"
        ):
            load_uci("bupa", liver_label="drinks", drinks_from=99, data_home=REAL)

    def test_the_two_files_of_german(self):
        texts, numbers = (
            load_uci("german", german=kind, data_home=REAL) for kind in ("categorical", "numeric")
        )
        assert numbers.data.shape == (1000, 24)
        assert np.array_equal(texts.target, numbers.target)
        columns = dict(zip(texts.feature_names, texts.data.T, strict=True))
        assert np.array_equal(columns["age"], numbers.data[:, 9])
        levels = [v for n, v in columns.items() if n.startswith("purpose=")]
        assert np.array_equal(np.sum(levels, axis=0), np.ones(1000))
        assert len(levels) == 10

    def test_the_sex_is_one_column(self):
        loaded = load_uci("ilpd", data_home=REAL)
        assert np.array_equal(loaded.data[:3, 1], [0, 1, 1])


def _lines(name):
    return (REAL / "uci" / name).read_text().splitlines()


TOY = b"1,x\r\n?,y\r\n3,x\r\n"


@pytest.fixture
def toy(monkeypatch):
    """A data set of three rows instead of the sonar's."""
    table = TextTable(
        abbreviation="CB",
        title="Toy",
        file=DataFile(
            "uci",
            "toy.csv",
            hashlib.sha256(TOY).hexdigest(),
            "https://example.org/toy",
            "CC0",
            "Ask for it.",
        ),
        columns=("a", "kind"),
        label="kind",
        positive="x",
        target_names=("y", "x"),
        missing="?",
    )
    monkeypatch.setitem(uci.SETS, "sonar", table)
    return table


def test_a_table_of_ones_own_folder(toy, tmp_path):
    (tmp_path / "toy.csv").write_bytes(TOY)
    loaded = load_uci("cb", data_home=tmp_path)
    assert loaded.data.tolist() == [[1.0], [2.0], [3.0]]
    assert loaded.target.tolist() == [1, 0, 1]
    assert load_uci("cb", missing="drop", data_home=tmp_path).data.tolist() == [[1.0], [3.0]]


def test_the_text_of_an_indicator(toy, monkeypatch, tmp_path):
    table = replace(toy, label="a", positive="3", text={"kind": None})
    monkeypatch.setitem(uci.SETS, "sonar", table)
    (tmp_path / "toy.csv").write_bytes(TOY)
    loaded = load_uci("cb", data_home=tmp_path)
    assert loaded.feature_names == ["kind=x", "kind=y"]
    assert loaded.data.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_offline_says_where_and_what_to_know(toy, tmp_path):
    with pytest.raises(OSError, match=r"uci/toy\.csv.*FRAGILITY_DATA names\. Ask for it\."):
        load_uci("sonar")


def test_unknown_names_and_choices():
    with pytest.raises(ValueError, match=r"no data set 'iris'; there are 'coimbra'.*'BCC'"):
        load_uci("iris")
    with pytest.raises(ValueError, match=r"missing must be one of .*'drop'.*got 'mean'"):
        load_uci("ilpd", missing="mean")
    with pytest.raises(ValueError, match=r"liver_label must be one of"):
        load_uci("liver", liver_label="gout")
    with pytest.raises(ValueError, match=r"german must be one of"):
        load_uci("german", german="text")
    with pytest.raises(ValueError, match=r"no data set 'chest' here; there are 'blood', 'breast'"):
        load_medmnist("chest")


def images(labels=((0,), (1,), (1,), (0,))):
    """A small archive in the layout of MedMNIST: two, one and one images."""
    content = io.BytesIO()
    arrays = {}
    for split, rows in (("train", slice(0, 2)), ("val", slice(2, 3)), ("test", slice(3, 4))):
        arrays[f"{split}_images"] = np.arange(4 * 9, dtype=np.uint8).reshape(4, 3, 3)[rows]
        arrays[f"{split}_labels"] = np.array(labels, dtype=np.uint8)[rows]
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_images_are_downloaded_once(monkeypatch, tmp_path, kind):
    content = images()
    known = medmnist._Images(hashlib.new(kind, content).hexdigest(), (2, 1, 1), ("no", "yes"))
    monkeypatch.setitem(medmnist._SETS, "breastmnist", known)
    asked = []

    def answer(self, url, output, pooch):
        asked.append(url)
        Path(output).write_bytes(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", answer)
    for _ in range(2):
        loaded = load_medmnist("BreastMNIST")
        assert loaded.train.target.tolist() == [0, 1]
        assert loaded.val.target.tolist() == [1]
        assert loaded.test.data.tolist() == [np.arange(27, 36).reshape(3, 3).tolist()]
    assert asked == ["https://zenodo.org/records/10519652/files/breastmnist.npz"]
    (tmp_path / "breastmnist.npz").write_bytes(images(labels=((1,),) * 4))
    with pytest.raises(ValueError, match=f"{'MD5' if kind == 'md5' else 'SHA-256'} is .*expected"):
        load_medmnist("breast", data_home=tmp_path)


def test_every_checksum_is_one():
    tables = [*uci_files.SETS.values(), uci_files.GERMAN_NUMERIC]
    sums = [table.file.checksum for table in tables]
    sums += [known.checksum for known in medmnist._SETS.values()]
    assert len(set(sums)) == 18
    assert all(len(bytes.fromhex(checksum)) in (16, 32) for checksum in sums)


@needs_images
@pytest.mark.parametrize(
    ("name", "shape", "train", "test"),
    [
        ("breast", (28, 28), [147, 399], [42, 114]),
        ("retina", (28, 28, 3), [486, 128, 206, 194, 66], [174, 46, 92, 68, 20]),
        ("pneumonia", (28, 28), [1214, 3494], [234, 390]),
    ],
)
def test_real_images(name, shape, train, test):
    loaded = load_medmnist(name, data_home=REAL)
    assert np.bincount(loaded.train.target).tolist() == train
    assert np.bincount(loaded.test.target).tolist() == test
    assert loaded.train.data.shape[1:] == loaded.val.data.shape[1:] == shape
    assert len(loaded.target_names) == len(train)
