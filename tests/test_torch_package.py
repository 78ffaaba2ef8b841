"""The door to `fragility.torch`: what it needs is imported late, and what is missing is named."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

# One process for all: most of its time goes into importing PyTorch.
CODE = """
import json, sys

def refused(statement):
    try:
        exec(statement)
    except ImportError as error:
        return str(error)
    return "imported"

absent = ("torch", "torchmetrics", "lightning", "pytorch_lightning")
import fragility
found = {"early": [name for name in absent if name in sys.modules]}
sys.modules.update(dict.fromkeys(absent))  # None: as if it were not installed
found["torch"] = refused("import fragility.torch")
del sys.modules["torch"]
import torch
compiler = "torch._dynamo" in sys.modules
from fragility.torch import *
import fragility.torch
found["compiler"] = ("torch._dynamo" in sys.modules) - compiler
found["star"] = [name for name in fragility.torch.__all__ if name in globals()]
found["listed"] = dir(fragility.torch)
found["metrics"] = refused("from fragility.torch import BinaryFragilityIndex")
del sys.modules["torchmetrics"]
from fragility.torch import BinaryFragilityIndex, MulticlassFragilityIndex
found["value"] = MulticlassFragilityIndex(2).n_classes
found["callback"] = refused("from fragility.torch import FragilityCallback")
found["unknown"] = refused("from fragility.torch import Nothing")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_library_imports_none_of_it(found):
    assert found["early"] == []
    assert found["compiler"] == 0  # two seconds that only those should wait who compile


def test_what_is_missing_is_named(found):
    assert 'PyTorch, which is not installed: pip install "fragility[torch]"' in found["torch"]
    assert "torchmetrics (pip install torchmetrics), which is not installed" in found["metrics"]
    assert '"fragility[lightning]"' in found["metrics"]
    assert (
        'Lightning, which is not installed: pip install "fragility[lightning]"'
        in (found["callback"])
    )
    assert "cannot import name 'Nothing'" in found["unknown"]


def test_the_rest_works_without_torchmetrics_and_lightning(found):
    assert found["star"] == [
        "FragilityRegularizer",
        "fit_temperature",
        "fragility_index",
    ]
    assert {*found["star"], "BinaryFragilityIndex", "FragilityCallback"} <= {*found["listed"]}
    assert found["value"] == 2
