"""The real command, and files for it to read."""

from __future__ import annotations

import atexit
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from unittest import mock

import numpy as np

ENVIRONMENT = {
    **os.environ,
    "PYTHONIOENCODING": "utf-8",
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "100",
    "GITHUB_ACTIONS": "false",  # wherever the tests run
}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def unsourced(text: str) -> str:
    """What a command printed or wrote, without the name and checksum of the file that it read."""
    text = re.sub(r'"(source|sha256)": ("[^"]*"|null)', r'"\1": ""', text)
    return re.sub(r"From \S.*?\(SHA-256 \w+\)", "From a file", text)


def executable(*arguments, **environment) -> Ended:
    """Run the installed ``fragility`` as a shell would."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("fragility"), *map(str, arguments)],
        capture_output=True,
        timeout=300,
        check=False,
        env={**ENVIRONMENT, **environment},
    )
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return Ended(ended.returncode, ended.stdout.decode(encoding), ended.stderr.decode(encoding))


def fragility(*arguments, cwd=".") -> Ended:
    """Run ``fragility`` in a process of its own, forked from one that has imported everything.

    The fast tier starts no process: there it runs in this one.
    """
    if "tests.fast" in sys.modules:
        return _here([str(argument) for argument in arguments], cwd)
    server, folder = _server()
    out, err = folder / "out", folder / "err"
    request = {
        "arguments": [str(argument) for argument in arguments],
        "cwd": str(Path(cwd).resolve()),
        "out": str(out),
        "err": str(err),
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    code = int(server.stdout.readline())
    return Ended(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


def _here(arguments, cwd) -> Ended:
    from fragility.cli.app import run

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "argv", ["fragility", *arguments]),
        mock.patch.dict(os.environ, ENVIRONMENT),
    ):
        code = run(arguments)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))
    return Ended(code, *texts)


@lru_cache(1)
def _server():
    folder = tempfile.TemporaryDirectory()
    server = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.command_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
        env=ENVIRONMENT,
        encoding="utf-8",
    )

    @atexit.register
    def stop():
        server.stdin.close()
        server.wait(10)
        folder.cleanup()

    return server, Path(folder.name)


def refused(ended: Ended, *words: str) -> None:
    """Exit code 2, one line on standard error that has these words, nothing else."""
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    assert ended.out == ""
    lines = ended.err.strip().splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("Error: ")
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"


def patients(n=500, seed=0):
    """Label, group and probabilities of a fair and of a bold model."""
    rng = np.random.default_rng(seed)
    logit = 2 * rng.normal(size=n)
    sick = rng.random(n) < 1 / (1 + np.exp(-logit))
    return {
        "id": [f"case {k}" for k in range(n)],
        "sex": rng.choice(["f", "m"], n).tolist(),
        "weight": rng.integers(1, 4, n).tolist(),
        "sick": np.where(sick, "yes", "no").tolist(),
        "fair": (1 / (1 + np.exp(-logit))).tolist(),
        "bold": (1 / (1 + np.exp(-2.5 * logit))).tolist(),
    }


def write_csv(path: Path, columns: dict, header=None) -> Path:
    names = list(columns) if header is None else header
    lines = [",".join(names)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
