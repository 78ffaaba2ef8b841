"""The process that checks the files of one area; it may crash, bloat or hang."""

from __future__ import annotations

import faulthandler
import importlib
import tempfile
import traceback
from itertools import count, islice
from pathlib import Path
from zlib import crc32

import numpy as np

GIB = 2**30
#: Mutations of one file in a row, from one generator.
BATCH = 300


def loaded(name: str):
    """The module of an area; a name with a dot is that of any module."""
    return importlib.import_module(name if "." in name else f"tests.fuzzing.{name}")


def batches(area, name: str, seed: int, first: int):
    """Numbers of batches with their files, without end; the corpus itself is the first."""
    corpus = area.corpus()
    assert corpus, f"{name} has no corpus"
    if first == 0:
        yield 0, corpus
    for batch in count(max(first, 1)):
        rng = np.random.default_rng([seed, crc32(name.encode()), batch])
        yield batch, islice(area.mutations(corpus[batch % len(corpus)], rng), BATCH)


def limit_memory(gigabytes: float) -> None:
    """No more address space than there is now and so much on top."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as sizes:
            now = int(sizes.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not Linux: only crashes and time are watched
        return
    most = now + int(gigabytes * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def work(name: str, seed: int, first: int, gigabytes: float, folder: str, pipe) -> None:
    """Check one file after another and say so, until killed.

    The file in hand lies in ``current``, for whoever finds this process dead or busy. What is said:
    ``begin`` with the number of the batch, then ``held`` with whether the file was accepted, or
    ``failed`` with the place, the traceback and the file.
    """
    faulthandler.enable()
    tempfile.tempdir = folder
    area, current = loaded(name), Path(folder) / "current"
    limited = False
    for batch, files in batches(area, name, seed, first):
        for data in files:
            if not limited:  # the corpus is made, and everything imported
                limit_memory(gigabytes)
                limited = True
            current.write_bytes(data)
            pipe.send(("begin", batch))
            try:
                accepted = area.check(data)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit and panics of Rust are no Exception
                told = "".join(traceback.format_exception(error))
                pipe.send(("failed", _place(error), told, data))
            else:
                pipe.send(("held", accepted))


def _place(error: BaseException) -> str:
    """Failures of one place are one kind."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
