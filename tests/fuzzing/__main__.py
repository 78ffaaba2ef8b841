"""Throw damaged files at the library: ``python -m tests.fuzzing [AREA...] --seconds 600 --seed 0``.

Every other module of this folder is an area: ``corpus()`` returns real files made by the library,
``mutations(data, rng)`` yields changed ones, and ``check(data)`` raises where a promise is broken,
and may return whether the file was accepted. A new kind of file is a new module. An area runs in a
process of its own, with little memory and little time for each file, so that a file that crashes
it, bloats it or keeps it busy is found as well.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pkgutil
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests import fuzzing
from tests.fuzzing._child import limit_memory, loaded, work

#: Kept files of each kind of failure; all are counted.
KEPT = 3
#: A process that must be begun anew so often is not worth its start.
RESTARTS = 25
#: Seconds for imports and the corpus.
START = 120.0


def areas() -> list[str]:
    """The modules of this folder."""
    found = [module.name for module in pkgutil.iter_modules(fuzzing.__path__)]
    return [name for name in found if not name.startswith("_")]


class Run:
    """One area for some seconds."""

    def __init__(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        self.name, self.options, self.folder = name, options, folder
        self.checked = self.accepted = self.kept = 0
        self.kinds: Counter[str] = Counter()
        self.told = time.monotonic()

    def go(self, seconds: float) -> None:
        """Check files until the time is over."""
        end, batch = time.monotonic() + seconds, 0
        for _ in range(RESTARTS):
            with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                batch = 1 + self._one_process(end, batch, Path(scratch))
            if time.monotonic() >= end or not self.checked:
                return
        print(f"{self.name}: given up after {RESTARTS} processes", flush=True)

    def _one_process(self, end: float, batch: int, scratch: Path) -> int:
        """Until the time is over or a file ends the process; the last batch."""
        context = multiprocessing.get_context("spawn")
        pipe, other = context.Pipe(duplex=False)
        options = (self.options.seed, batch, self.options.memory, str(scratch), other)
        process = context.Process(target=work, args=(self.name, *options), daemon=True)
        process.start()
        other.close()
        current = scratch / "current"
        try:
            while time.monotonic() < end:
                patience = self.options.timeout if current.exists() else START
                if not pipe.poll(patience):
                    self._stopped(f"no end after {patience:g} s", current)
                    break
                what, *told = pipe.recv()
                if what == "begin":
                    (batch,) = told
                elif what == "failed":
                    self._failed(*told)
                else:
                    self._held(*told)
        except EOFError:
            process.join()
            self._stopped(f"the process died ({process.exitcode})", current)
        finally:
            process.kill()
            process.join()
            pipe.close()
        return batch

    def _held(self, accepted: bool | None) -> None:
        self.checked += 1
        self.accepted += bool(accepted)
        if time.monotonic() > self.told + 30.0:
            self.told = time.monotonic()
            print(f"  {self}", flush=True)

    def _stopped(self, kind: str, current: Path) -> None:
        if current.exists():
            self._failed(kind, "", current.read_bytes())
        else:
            self.kinds[kind] += 1
            print(f"\n{self.name}: {kind} before the first file", flush=True)

    def _failed(self, kind: str, text: str, data: bytes) -> None:
        self.checked += 1
        self.kinds[kind] += 1
        if self.kinds[kind] <= KEPT:
            self.kept += 1
            path = self.folder / f"{self.name}-{self.kept}"
            path.write_bytes(data)
            again = f"python -m tests.fuzzing {self.name} --replay {path}"
            print(f"\n{self.name}: {kind}\n{text}{again}", flush=True)

    def __str__(self) -> str:
        accepted = f", {self.accepted} of them accepted" if self.accepted else ""
        return f"{self.name}: {self.checked} files{accepted}, {self.kinds.total()} broke a promise"


def main(arguments: list[str]) -> int:
    """The command; 1 if a promise was broken or nothing was checked."""
    parser = argparse.ArgumentParser("python -m tests.fuzzing", description=__doc__)
    parser.add_argument("areas", nargs="*", help=f"default: {' '.join(areas())}")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all areas together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one file")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB for one file")
    parser.add_argument("--replay", type=Path, help="check this file alone, of the area given")
    options = parser.parse_args(arguments)
    if options.replay:
        if len(options.areas) != 1:
            parser.error("--replay needs the one area that the file is of")
        area = loaded(options.areas[0])
        area.corpus()
        limit_memory(options.memory)
        area.check(options.replay.read_bytes())
        print("No promise is broken.")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="fragility-fuzz-"))
    runs = [Run(name, options, folder) for name in options.areas or areas()]
    for run in runs:
        run.go(options.seconds / len(runs))
        print(run, flush=True)
    idle = [run.name for run in runs if not run.checked]
    if idle:
        print(f"Nothing was checked of {', '.join(idle)}: a check that checked nothing has failed.")
    failed = any(run.kinds for run in runs)
    if failed:
        print(f"The files that failed are in {folder}.")
    else:
        shutil.rmtree(folder)
    return int(failed or bool(idle) or not runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
