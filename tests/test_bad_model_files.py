"""Files that are damaged or made to do harm: one clear line, and nothing runs."""

from __future__ import annotations

import io
import json
import pickle
import random

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from skops.io._audit import NODE_TYPE_MAPPING

from fragility import ERMClassifier
from fragility.exceptions import ModelFileError
from fragility.pipelines import load_model, read_about
from fragility.pipelines.trusted_types import OWN_TYPES

from .model_file_tools import (
    arguments,
    called,
    edit,
    members,
    refusal,
    tampered,
    text,
    write,
)
from .patient_table import patients


class TestMalice:
    @pytest.mark.outside
    def test_calls_do_not_run(self, saved, tmp_path):
        mark = tmp_path / "it-ran"
        touch = f"touch {mark}"
        source = f"open({str(mark)!r}, 'w')"
        nodes = {
            "os.system": called("os", "system", touch),
            "posix.system": called("posix", "system", touch),
            "subprocess.getoutput": called("subprocess", "getoutput", touch),
            "builtins.eval": called("builtins", "eval", source),
            "fragility.pipelines.training.train_pipeline": called(
                "fragility.pipelines.training", "train_pipeline", "x", "y"
            ),
            "fragility._files.write_whole": called("fragility._files", "write_whole", "x", "y"),
            "functools.partial": {
                "__class__": "partial",
                "__module__": "functools",
                "__loader__": "PartialNode",
                "content": {
                    "func": {"__class__": "system", "__module__": "os", "__loader__": "TypeNode"},
                    "args": arguments(touch),
                    "kwds": text({}),
                    "namespace": text(None),
                },
            },
            "operator.methodcaller": {
                "__class__": "methodcaller",
                "__module__": "operator",
                "__loader__": "OperatorFuncNode",
                "attrs": arguments("system", touch),
            },
            "sklearn.pipeline.Pipeline": {
                "__class__": "Pipeline",
                "__module__": "sklearn.pipeline",
                "__loader__": "MethodNode",
                "content": {"func": "fit", "obj": text("x")},
            },
            "numpy.load": {
                "__class__": "load",
                "__module__": "numpy",
                "__loader__": "FunctionNode",
            },
            "fragility.ambiguity.kl.KL": called("fragility.ambiguity.kl", "KL"),
        }
        whole = saved.read_bytes()
        for name, node in nodes.items():
            saved.write_bytes(whole)
            edit(saved, tampered(node))
            message = refusal(saved)
            words = "not known to be safe" if name == "numpy.load" else "might run code"
            assert words in message
            assert name in message
            for protocol in (0, 1):  # older loaders, to which a file may refer
                edit(saved, lambda schema, number=protocol: schema.update(protocol=number))
                assert words in refusal(saved)
            assert not mark.exists()
        # The same calls do run where they are trusted: they are no blanks.
        saved.write_bytes(whole)
        edit(saved, tampered(nodes["os.system"]))
        if ("ConstructorFromReduceNode", 2) in NODE_TYPE_MAPPING:  # not in early versions
            skops.io.load(saved, trusted=[*OWN_TYPES, "os.system"])
            assert mark.exists()

    @pytest.mark.parametrize("loader", ["ObjectNode", "TypeNode", "ListNode", "NdArrayNode"])
    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("os", "system"),
            ("builtins", "eval"),
            ("fragility.pipelines.training", "train_pipeline"),
            ("fragility.pipelines.training", "TrainedPipeline"),
            ("fragility.certificates.certificate", "Certificate"),
            ("fragility", "KL"),
            ("fragility.losses.hinge", "HingeOfMine"),
            ("subprocess", "Popen"),
            ("pathlib", "Path"),
        ],
    )
    def test_foreign_types_are_named_and_refused(self, saved, loader, module, name):
        node = {"__class__": name, "__module__": module, "__loader__": loader}
        if loader == "ListNode":
            node["content"] = []
        if loader == "NdArrayNode":
            node |= {"type": "json", "content": [], "shape": arguments(0)}
        edit(saved, tampered(node))
        message = refusal(saved)
        assert "not known to be safe" in message
        assert f"'{module}.{name}'" in message

    def test_known_types_only_as_what_they_are(self, saved):
        for loader in ("ListNode", "TypeNode", "NdArrayNode"):
            node = {"__class__": "KL", "__module__": "fragility.ambiguity.kl", "__loader__": loader}
            edit(saved, tampered(node))
            assert f"fragility.ambiguity.kl.KL ({loader})" in refusal(saved)

    def test_formats_in_which_functions_have_other_names(self, saved):
        node = {
            "__class__": "log1p",
            "__module__": "numpy",
            "__loader__": "FunctionNode",
            "content": {"module_path": "os", "function": "system"},
        }
        edit(saved, tampered(node))
        for protocol in (0, -1, None, "2", True):
            edit(saved, lambda schema, number=protocol: schema.update(protocol=number))
            with pytest.raises(ModelFileError):
                load_model(saved, trusted=["numpy.log1p"])
        edit(saved, lambda schema: schema.update(protocol=0))
        with pytest.raises(ModelFileError, match="format that is not read here"):
            load_model(saved, trusted=["numpy.log1p"])

    def test_bombs(self, saved, monkeypatch):
        contents = members(saved)
        contents["bomb.npy"] = b"\0" * 3_000_000
        write(saved, contents)
        assert saved.stat().st_size < 100_000
        monkeypatch.setattr("fragility.pipelines.archives.LARGEST", 2_000_000)
        whole = sum(len(content) for content in contents.values())
        assert f"unpacks to {whole:,} bytes" in refusal(saved)

    def test_arrays_without_end_and_nodes_without_bottom(self, saved):
        whole = saved.read_bytes()
        contents = members(saved)
        header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (1 << 60,)}
        huge = io.BytesIO()
        np.lib.format.write_array_header_1_0(huge, header)
        write(
            saved,
            {n: huge.getvalue() if n.endswith(".npy") else c for n, c in contents.items()},
        )
        assert "says that it has the shape (1152921504606846976,)" in refusal(saved)
        contents["schema.json"] = "[" * 100_000 + "]" * 100_000
        write(saved, contents)
        assert "schema.json is damaged" in refusal(saved)
        saved.write_bytes(whole)

        def cycle(schema):
            steps = schema["content"]["content"]["steps"]
            steps["content"][0]["content"][0] = {"__id__": steps["__id__"]} | text("x")

        edit(saved, cycle)  # a step named by the list of steps: no reference is followed
        assert load_model(saved).steps[0][0] == "x"


class TestDamage:
    def test_files_that_are_none(self, tmp_path, trained):
        path = tmp_path / "model.skops"
        for content, words in (
            (b"", "the file is empty"),
            (pickle.dumps(trained.pipeline), "looks like a pickle"),
            (b"age,ill\n30,yes\n", "not a file of skops at all"),
            (b"PK\x03\x04 and no more", "not a file of skops at all"),
        ):
            path.write_bytes(content)
            assert words in refusal(path)
            with pytest.raises(ModelFileError, match="not a usable model"):
                read_about(path)
        write(path, {"readme.txt": "hello"})
        assert "without schema.json" in refusal(path)
        for schema in ("{", "[]", "{}", "3", '{"protocol": 2}', '{"protocol": 99}'):
            write(path, {"schema.json": schema})
            refusal(path)
        with pytest.raises(FileNotFoundError):
            load_model(tmp_path / "nowhere.skops")

    @pytest.mark.slow
    def test_files_cut_short_or_changed(self, saved):
        whole = saved.read_bytes()
        data = patients()
        expected = load_model(saved).predict_proba(data)
        for length in range(1, len(whole), len(whole) // 40):
            saved.write_bytes(whole[:length])
            refusal(saved)
        rng, refused = random.Random(0), 0
        for _ in range(150):
            place = rng.randrange(len(whole))
            changed = bytearray(whole)
            changed[place] ^= 1 << rng.randrange(8)
            saved.write_bytes(changed)
            try:
                read = load_model(saved)
            except ModelFileError:
                refused += 1
            else:  # a date of the archive, or the like
                np.testing.assert_array_equal(read.predict_proba(data), expected)
        assert refused > 100

    @pytest.mark.slow
    def test_schemas_that_make_no_sense(self, saved):
        """Whatever is put in the place of any part, the answer is a model or one clear line."""
        contents = members(saved)
        rng = random.Random(0)
        junk = (None, 3, "x", [], {}, [[]], {"a": 1}, text("x"), text([1]), arguments(1, 2))
        refused = 0
        for _ in range(200):
            schema = part = json.loads(contents["schema.json"])
            while True:
                key = rng.choice([*(part if isinstance(part, dict) else range(len(part)))])
                below = part[key]
                if not below or not isinstance(below, (dict, list)) or rng.random() < 0.15:
                    break
                part = below
            part[key] = rng.choice(junk)
            write(saved, contents | {"schema.json": json.dumps(schema)})
            try:
                assert isinstance(load_model(saved), Pipeline)
            except ModelFileError:
                refused += 1
        assert refused > 50

    def test_things_that_are_no_classifier(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        path = tmp_path / "model.skops"
        for thing, words in (
            ({"a": 1}, "holds a dict, not a Pipeline"),
            (ERMClassifier(), "not a Pipeline"),
            (LogisticRegression().fit(X, y), "not a Pipeline"),
            (make_pipeline(LinearRegression()).fit(X, y), "LinearRegression, is not a fitted"),
            (make_pipeline(StandardScaler()).fit(X), "StandardScaler, is not a fitted"),
            (make_pipeline(LogisticRegression()), "LogisticRegression, is not a fitted"),
            (make_pipeline(ERMClassifier()), "ERMClassifier, is not a fitted"),
            (make_pipeline(RandomForestClassifier(2)).fit(X, y), "sklearn.tree._tree.Tree"),
        ):
            skops.io.dump(thing, path)
            assert words in refusal(path, trusted=[LogisticRegression, LinearRegression])
