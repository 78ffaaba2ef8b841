"""`make soak` finds what grows, and does every call once."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests import soak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]


@pytest.fixture(autouse=True)
def few_checkpoints(monkeypatch):
    monkeypatch.setattr(soak, "CHECKPOINTS", 4)
    gc.freeze()  # to look for garbage among all that other tests have left takes seconds


def test_a_leak_is_found(capsys):
    kept = []

    def leak():
        kept.append(bytearray(2**20 // 4))

    def drop():
        return bytearray(2**20 // 4)

    assert soak.soak({"drop": (1, drop)}, 100) == 0
    assert "Nothing grew in 100 calls" in capsys.readouterr().out
    assert soak.soak({"drop": (1, drop), "leak": (1, leak)}, 100) == 1
    assert "A leak: mib grew from" in capsys.readouterr().out


def test_open_files_are_found(capsys, tmp_path):
    kept = []

    def opened():
        kept.append(open(tmp_path / "file", "w"))  # noqa: SIM115

    assert soak.soak({"opened": (1, opened)}, 100) == 1
    assert "A leak: files grew from" in capsys.readouterr().out
    for file in kept:
        file.close()


@pytest.mark.filterwarnings("ignore")
def test_every_call_of_it_works(tmp_path):
    for _, call in soak.tasks(tmp_path).values():
        call()
    assert {path.name for path in tmp_path.iterdir()} == {"predictions.csv"}
