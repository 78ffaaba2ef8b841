"""The process around the command: no exit code depends on who reads or who presses Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from .command import ENVIRONMENT, patients, write_csv

pytestmark = pytest.mark.outside

COMMAND = Path(sys.executable).with_name("fragility")
ASKED = "--label sick --score fair"


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("streams") / "p.csv", patients(60))


def shell(line):
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, check=False, timeout=300, env=ENVIRONMENT
    )


@pytest.mark.parametrize(
    ("streams", "limit", "code"),
    [
        (">&-", "0.01", 1),
        ("2>/dev/full", "0.01", 1),
        (">/dev/full", "0.9", 0),
        (">&- 2>&- <&-", "0.01", 1),
    ],
)
def test_a_gate_ends_with_its_verdict_whatever_can_be_printed(csv, streams, limit, code):
    ended = shell(f"{COMMAND} gate {csv} {ASKED} --max-fi {limit} --max-ratio 9 {streams}")
    assert ended.returncode == code, ended
    assert b"Traceback" not in ended.stderr


def test_a_gate_that_fails_into_a_closed_pipe_fails(csv):
    gate = f"{COMMAND} gate {csv} {ASKED} --max-fi 0.01"
    ended = shell(f"set -o pipefail; {gate} | true")
    assert ended.returncode == 1, ended
    assert b"Gate failed" in ended.stderr


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_bad_input_is_2_whatever_can_be_printed(csv, streams):
    assert shell(f"{COMMAND} evaluate {csv} --label no --score fair {streams}").returncode == 2


def test_bad_usage_is_2_whatever_can_be_printed():
    assert shell(f"{COMMAND} evaluate 2>&-").returncode == 2


def test_output_that_is_lost_is_told(csv):
    ended = shell(f"{COMMAND} evaluate {csv} {ASKED} --json >/dev/full")
    assert ended.returncode == 2
    assert b"standard output could not be written (No space left on device)" in ended.stderr
    assert shell(f"{COMMAND} evaluate {csv} {ASKED} >&-").returncode == 0


def test_nothing_is_printed_into_the_file_that_is_written(csv, tmp_path):
    page = tmp_path / "page.html"
    ended = shell(f"{COMMAND} report {csv} {ASKED} --output {page} <&- >&- 2>&-")
    assert ended.returncode == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")


def interrupted(arguments, begun, **environment):
    """Start the command, press Ctrl-C as soon as a file is there, and wait for the end."""
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, **environment},
        # Whoever runs the tests may ignore Ctrl-C; the command would then do so, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for _ in range(3000):
        if begun.exists():
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    return process.returncode, err.decode()


def first(folder):
    """PYTHONPATH with a folder before all that is on it already."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


#: A library that says when its import has begun, waits, and turns Ctrl-C into an error of its own.
SLOW = """
import pathlib, time
pathlib.Path({begun!r}).touch()
try:
    time.sleep(100)
except BaseException:
    raise ImportError("no {name}", name="{name}") from None
"""


@pytest.mark.parametrize(
    ("name", "command"), [("click", ["--version"]), ("numpy", ["demo"])], ids=["click", "numpy"]
)
def test_ctrl_c_during_imports_leaves_no_traceback(tmp_path, name, command):
    begun = tmp_path / "begun"
    (tmp_path / f"{name}.py").write_text(SLOW.format(begun=str(begun), name=name))
    code, err = interrupted(command, begun, PYTHONPATH=first(tmp_path))
    assert code == 130
    assert err == "Interrupted.\n"


def test_ctrl_c_during_a_late_import_is_not_called_bad_input(tmp_path, csv):
    begun = tmp_path / "begun"
    (tmp_path / "narwhals.py").write_text(SLOW.format(begun=str(begun), name="narwhals"))
    asked = ["slices", str(csv), *ASKED.split()]
    code, err = interrupted(asked, begun, PYTHONPATH=first(tmp_path))
    assert code == 130, err
    assert err.endswith("Interrupted.\n")
    assert "Traceback" not in err


def test_ctrl_c_that_the_parent_ignores_stays_ignored(csv):
    line = (
        f"trap '' INT; {COMMAND} evaluate {csv} {ASKED} --json & sleep 0.5; kill -INT $!; wait $!"
    )
    ended = shell(line)
    assert ended.returncode == 0, ended
    assert ended.stdout.rstrip().endswith(b"}")


def test_every_public_name_is_found_late_and_is_what_type_checkers_see():
    import ast

    import fragility

    stub = ast.parse(Path(fragility.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = {name.name: node.module for node in imports for name in node.names}
    (listed,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    public = {name for name, module in names.items() if module and not name.startswith("_")}
    assert public == set(listed) == set(fragility.__all__)
    for name, module in names.items():
        owner = import_module(f"fragility.{module or name}")
        assert getattr(fragility, name) is (getattr(owner, name) if module else owner)
        assert name in dir(fragility)
    with pytest.raises(AttributeError, match="no attribute 'fragilty_index'"):
        _ = fragility.fragilty_index


def test_importing_the_package_imports_nothing_slow():
    code = "import sys, fragility; print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stdout.split() == [b"False", b"False"]


def test_a_pipe_that_does_not_block_loses_nothing(csv):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(
        [COMMAND, "evaluate", csv, *ASKED.split(), "--score", "bold", "--json"],
        stdout=writer,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    os.close(writer)
    time.sleep(0.1)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    assert process.wait(120) == 0
    assert json.loads(text)["n_samples"] == 60


@pytest.mark.parametrize(("given", "told"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_linear_algebra_of_reports_has_one_thread_unless_told_otherwise(given, told):
    """Threads of the small matrices of a report wait for each other."""
    code = """
import sys
sys.argv = ["fragility", "evaluate", "missing.csv", "--label", "y"]
from fragility.cli import main
try:
    main()
except SystemExit:
    import os, numpy, threadpoolctl
    print(os.environ.get("OPENBLAS_NUM_THREADS"))
    print(max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()))
"""
    own = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, env=own | given
    )
    said, threads = ended.stdout.split()
    assert said == told
    if told == "1":
        assert threads == "1"
