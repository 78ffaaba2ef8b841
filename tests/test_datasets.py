"""Loaders: where files come from, and that altered ones are refused."""

import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pooch
import pytest

from fragility.datasets import load_heart
from fragility.datasets.files import DataFile

CONTENT = b"a,b\n1,2\n"
FILE = DataFile(
    "toy", "toy.csv", hashlib.sha256(CONTENT).hexdigest(), "https://example.org/toy", "CC0"
)
SHARED = Path(__file__).parents[2] / "shared" / "data"
REAL = Path(os.environ.get("FRAGILITY_DATA", SHARED))


@pytest.fixture(autouse=True)
def own_cache(no_network, tmp_path):
    """Where the toy file is cached."""
    return tmp_path / "cache" / "fragility" / "toy" / "toy.csv"


def serve(monkeypatch, content):
    asked = []

    def answer(self, url, output, pooch):
        asked.append(url)
        Path(output).write_bytes(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", answer)
    return asked


@pytest.mark.parametrize("place", ["toy.csv", "toy/toy.csv"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_a_folder_of_the_user(tmp_path, monkeypatch, place, by_variable):
    path = tmp_path / "mine" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    if by_variable:
        monkeypatch.setenv("FRAGILITY_DATA", str(tmp_path / "mine"))
        assert FILE.read() == CONTENT
    else:
        assert FILE.read(tmp_path / "mine") == CONTENT


def test_an_altered_copy_is_refused(tmp_path):
    (tmp_path / "toy.csv").write_bytes(CONTENT + b"3,4\n")
    with pytest.raises(ValueError, match=r"is not the toy\.csv we know: its SHA-256 is .*expected"):
        FILE.read(tmp_path)


def test_a_folder_without_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"toy/toy\.csv or .*toy\.csv is not there"):
        FILE.read(tmp_path)


def test_download_once_and_keep(monkeypatch, own_cache):
    asked = serve(monkeypatch, CONTENT)
    assert FILE.read() == CONTENT
    assert own_cache.read_bytes() == CONTENT
    assert FILE.read() == CONTENT
    assert asked == ["https://example.org/toy"]
    assert [path.name for path in own_cache.parent.iterdir()] == ["toy.csv"]


def test_download_of_an_archive(monkeypatch):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("folder/toy.csv", CONTENT)
    serve(monkeypatch, archive.getvalue())
    assert FILE.read() == CONTENT


def test_an_archive_without_the_file_is_refused(monkeypatch, own_cache):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("other.csv", CONTENT)
    serve(monkeypatch, archive.getvalue())
    with pytest.raises(OSError, match=r"archive at https://example\.org/toy holds no toy\.csv"):
        FILE.read()
    assert not own_cache.exists()


def test_an_altered_copy_in_the_cache_is_downloaded_again(monkeypatch, own_cache):
    own_cache.parent.mkdir(parents=True)
    own_cache.write_bytes(b"altered")
    with pytest.raises(OSError, match=rf"yourself \(SHA-256 {FILE.checksum}\) and put it at"):
        FILE.read()
    serve(monkeypatch, CONTENT)
    assert FILE.read() == CONTENT
    assert own_cache.read_bytes() == CONTENT


def test_pooch_is_needed_for_downloads_only(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / "toy.csv").write_bytes(CONTENT)
    assert FILE.read(tmp_path) == CONTENT
    with pytest.raises(ImportError, match=r'pip install "fragility\[datasets\]"'):
        FILE.read()


def test_an_altered_download_is_not_kept(monkeypatch, own_cache):
    serve(monkeypatch, b"<html>please log in</html>")
    with pytest.raises(ValueError, match=r"https://example\.org/toy is not the toy\.csv we know"):
        FILE.read()
    assert not own_cache.exists()


def test_an_interrupted_write_leaves_nothing(monkeypatch, own_cache):
    serve(monkeypatch, CONTENT)

    def fails(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.move", fails)
    with pytest.raises(KeyboardInterrupt):
        FILE.read()
    assert list(own_cache.parent.iterdir()) == []


def test_offline_says_where_to_put_the_file(own_cache):
    with pytest.raises(OSError, match=r"could not be downloaded.*put it at .*FRAGILITY_DATA") as e:
        FILE.read()
    assert str(own_cache) in str(e.value)


def test_offline_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAGILITY_DATA", str(tmp_path / "mine"))
    with pytest.raises(OSError, match="mine, where it is not"):
        FILE.read()


@pytest.mark.skipif(not (REAL / "heart" / "heart.csv").is_file(), reason="no heart.csv at hand")
class TestHeart:
    def test_content(self):
        heart = load_heart(data_home=REAL)
        assert heart.data.shape == (918, 20)
        assert np.bincount(heart.target).tolist() == [410, 508]
        columns = dict(zip(heart.feature_names, heart.data.T, strict=True))
        assert columns["Age"].mean() == pytest.approx(53.51, abs=0.01)
        assert int((columns["Cholesterol"] == 0).sum()) == 172
        for prefix, levels in (("Sex", 2), ("ChestPainType", 4), ("RestingECG", 3)):
            indicators = [v for n, v in columns.items() if n.startswith(prefix + "=")]
            assert len(indicators) == levels
            assert np.array_equal(np.sum(indicators, axis=0), np.ones(918))

    def test_return_x_y(self):
        X, y = load_heart(data_home=REAL, return_X_y=True)
        heart = load_heart(data_home=REAL)
        assert np.array_equal(X, heart.data)
        assert np.array_equal(y, heart.target)
