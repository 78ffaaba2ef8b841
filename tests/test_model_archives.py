"""Archives of an odd kind, and tables too large for a model: one line, and nothing is written."""

from __future__ import annotations

import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fragility import ERMClassifier
from fragility.exceptions import ModelFileError, TableError
from fragility.pipelines import load_model, predict_frame, read_about, save_model, train_pipeline

from .command import fragility
from .model_file_tools import edit, members, refusal, write
from .patient_table import patients


class TestArchives:
    def file(self, saved, change):
        """The file with records of its archive changed: local ones and those of the directory."""
        content = bytearray(saved.read_bytes())
        for signature, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
            at = content.find(signature)
            while at >= 0:
                change(content, at + shift)
                at = content.find(signature, at + 4)
        saved.write_bytes(content)
        return saved

    @pytest.mark.parametrize(
        ("place", "value", "words"),
        [
            (4, 84, "zip file version 8.4"),
            (6, 1, "it is encrypted"),
            (8, 9, "compressed in another way"),
            (8, 99, "compressed in another way"),
            (8, 0xFFFF, "compressed in another way"),
            (22, 7, "not a file of skops"),
        ],
    )
    def test_of_other_kinds(self, saved, place, value, words):
        self.file(saved, lambda content, at: struct.pack_into("<H", content, at + place, value))
        assert words in refusal(saved)
        with pytest.raises(ModelFileError, match="not a usable model"):
            read_about(saved)

    @pytest.mark.parametrize(("place", "value"), [(4, 84), (6, 1), (8, 99)])
    def test_end_the_command_in_one_line(self, saved, tmp_path, place, value):
        self.file(saved, lambda content, at: struct.pack_into("<H", content, at + place, value))
        patients(5).to_csv(tmp_path / "new.csv", index=False)
        ended = fragility("predict", saved, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
        assert ended.code == 2
        assert "model.skops is not a usable model: it is" in " ".join(ended.err.split())
        assert not (tmp_path / "out.csv").exists()

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_other_compressions(self, saved, method):
        write(saved, members(saved), method)
        assert "compressed in another way" in refusal(saved)

    @pytest.mark.parametrize(
        "name", ["../model.npy", "/etc/x", "a/b.npy", "a\\b", "folder/", "x\x1b[2J", "..", "é"]
    )
    def test_names_of_members_are_plain(self, saved, name):
        write(saved, members(saved) | {name: b""})
        assert "plain names without folders" in refusal(saved)

    def test_two_members_of_one_name(self, saved):
        with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(saved, "a") as file:
            file.writestr("schema.json", "{}")
        assert "several members of one name" in refusal(saved)

    def test_a_member_that_says_it_is_small(self, saved):
        """It is unpacked no further than it says."""
        write(saved, members(saved) | {"bomb.npy": b"\0" * 50_000_000})
        content = bytearray(saved.read_bytes())
        real = struct.pack("<I", 50_000_000)
        assert content.count(real) == 2
        saved.write_bytes(bytes(content).replace(real, struct.pack("<I", 10)))
        assert "damaged" in refusal(saved)

    @pytest.mark.parametrize(
        "about",
        [
            {"format": True},
            {"format": 0},
            {"format": 10**30},
            {"versions": {"fragility": "²"}},
            {"versions": {"fragility": "1\n2"}},
            {"versions": {"fragility": 3}},
            {"versions": {"scikit-learn": "9" * 5000}},
            {"versions": {"scikit-learn": ["1"]}},
            {"about": [1]},
        ],
    )
    def test_odd_pages_about_a_model(self, saved, about):
        edit(saved, lambda written: written.update(about), "about.json")
        assert "about.json is damaged" in refusal(saved)

    def test_a_device_has_no_end(self, monkeypatch):
        monkeypatch.setattr("fragility.pipelines.model_files.LARGEST", 1000)
        with pytest.raises(ModelFileError, match="not a usable model"):
            load_model("/dev/zero")


class TestPredictions:
    def test_are_numbers_or_nothing_is_written(self, tmp_path):
        data = patients().assign(dose=lambda table: table["dose"] / 100.0)
        model, table = tmp_path / "model.skops", tmp_path / "new.csv"
        save_model(train_pipeline(data, "ill").pipeline, model)
        for value in (1e308, -1e308):
            new = data[:5].assign(dose=[0.0, 1.0, value, 0.0, value])
            with pytest.raises(TableError, match="no probabilities from 0 to 1 in") as error:
                predict_frame(load_model(model), new)
            assert "of 5 rows (first: 2" in str(error.value)
        new.to_csv(table, index=False)
        ended = fragility("predict", model, table, "--output", tmp_path / "out.csv")
        assert ended.code == 2
        assert "no probabilities" in " ".join(ended.err.split())
        assert not (tmp_path / "out.csv").exists()

    @pytest.mark.parametrize("sparse", [False, True])
    def test_of_a_model_in_memory(self, sparse):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(list("xyzuvw"), size=40)})
        parts = [("s", StandardScaler(), ["a"]), ("e", OneHotEncoder(), ["b"])]
        first = ColumnTransformer(parts, sparse_threshold=float(sparse))
        model = make_pipeline(first, ERMClassifier()).fit(frame, rng.random(40) < 0.5)
        assert len(predict_frame(model, frame)) == 40
        model[0].named_transformers_["s"].scale_[:] = 1e-300
        with pytest.raises(TableError, match="no probabilities"):
            predict_frame(model, frame.assign(a=1e10))
        model[-1].coef_[:] = np.nan
        with pytest.raises(TableError, match="no probabilities from 0 to 1 in 40 of 40 rows"):
            predict_frame(model, frame)
