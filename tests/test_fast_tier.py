"""What `tests/fast.py` leaves out, and what it does not let pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.outside

TESTS = """
import subprocess
import sys

import pytest


def test_plain():
    pass


@pytest.mark.parametrize("number", range(100))
def test_many(number):
    pass


@pytest.mark.slow
def test_slow():
    pass


def test_torch():
    import torch


def test_cvxpy():
    import cvxpy.settings


def test_process():
    try:
        subprocess.run([sys.executable, "-c", ""])
    except Exception:
        pass  # the guard does not depend on what the test makes of it
"""

MARKED = """
import pytest
import torch

pytestmark = pytest.mark.outside


def test_anything():
    pass
"""


def test_what_does_not_belong_is_left_out_or_fails(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "test_marked.py").write_text(MARKED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.fast", "-p", "no:cacheprovider", "-rA"]
    marks = ["-o", "markers=slow\noutside"]
    ended = subprocess.run(
        [*command, *marks, str(tmp_path)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    lines = re.findall(r"^(PASSED|FAILED) test_some\.py::(\S+)", ended.stdout, re.MULTILINE)
    assert sorted(lines) == [
        ("FAILED", "test_cvxpy"),
        ("FAILED", "test_process"),
        ("FAILED", "test_torch"),
        ("PASSED", "test_many[0]"),
        ("PASSED", "test_many[50]"),
        ("PASSED", "test_many[99]"),
        ("PASSED", "test_plain"),
    ]
    assert "torch is not in the fast tier: mark the test with pytest.mark.outside" in ended.stdout
    assert "starts a process (subprocess.Popen): mark the test" in ended.stdout
