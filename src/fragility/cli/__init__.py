"""The command `fragility`."""

from __future__ import annotations

__all__ = ["BAD_INPUT", "FAILED", "FAULT", "INTERRUPTED", "PASSED", "main"]

#: Exit codes: all went well, a gate failed, bad input or usage, a fault of this program, Ctrl-C.
PASSED, FAILED, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130


def main() -> None:
    """Run the command with the arguments of the process."""
    import gc
    import sys

    from . import process

    process.set_interrupt("exit")
    process.open_streams()
    process.use_one_thread()
    try:
        from .app import run
    except ImportError as error:
        if error.name is None or error.name.startswith("fragility"):
            raise
        print(
            f"Error: the command needs {error.name}, which is not installed: "
            'pip install "fragility[cli]"',
            file=sys.stderr,
        )
        sys.exit(BAD_INPUT)
    process.set_interrupt("raise")
    code = run(sys.argv[1:])
    process.set_interrupt("ignore")
    if code not in (PASSED, FAILED):
        # What was being read when an error came is closed here: a reader with a thread of its own
        # must not be left to the end of the process, which would abort then.
        gc.collect()
    sys.exit(code)
