"""What `make fuzz` says of files that break something; this module is an area, too."""

from __future__ import annotations

import os
import time

import pytest

from tests.fuzzing import __main__ as fuzz


def corpus():
    return [b"die", b"hang"]


def mutations(data, rng):
    yield from (b"!raise", b"!bloat", b"!exit", b"fine", b"!" + data)


def check(data):
    if data == b"!raise":
        raise ZeroDivisionError("broken")
    if data == b"!bloat":
        bytearray(2**36)
    if data == b"!exit":
        raise SystemExit(3)
    if data == b"!hang":
        time.sleep(1000.0)
    if data == b"!die":
        os.abort()
    return data == b"fine"


@pytest.mark.slow
def test_every_way_to_break_is_found(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz, "RESTARTS", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = "tests.test_fuzzing"
    assert fuzz.main([name, "--seconds", "300", "--timeout", "2", "--memory", "1"]) == 1
    said = capsys.readouterr().out
    assert f"{name}: 12 files, 2 of them accepted, 8 broke a promise" in said
    for kind in ("ZeroDivisionError", "MemoryError", "SystemExit"):
        assert said.count(f"{name}: {kind} in test_fuzzing.py, line") == 2
    assert f"{name}: no end after 2 s" in said
    assert f"{name}: the process died (-6)" in said
    (folder,) = tmp_path.iterdir()
    kept = sorted(path.read_bytes() for path in folder.iterdir())
    assert kept == sorted([b"!raise", b"!bloat", b"!exit"] * 2 + [b"!hang", b"!die"])
    assert f"python -m tests.fuzzing {name} --replay {folder / name}-1" in said


def test_a_file_is_checked_again(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz, "limit_memory", lambda gigabytes: None)
    (tmp_path / "file").write_bytes(b"fine")
    assert fuzz.main(["tests.test_fuzzing", "--replay", str(tmp_path / "file")]) == 0
    assert capsys.readouterr().out == "No promise is broken.\n"


def test_a_check_that_checked_nothing_has_failed(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert fuzz.main(["tests.command", "--seconds", "60"]) == 1
    said = capsys.readouterr().out
    assert "the process died (1) before the first file" in said
    assert "Nothing was checked of tests.command" in said


def test_every_module_is_an_area():
    assert {"baselines", "readers"} <= set(fuzz.areas())
    assert not any(name.startswith("_") for name in fuzz.areas())
