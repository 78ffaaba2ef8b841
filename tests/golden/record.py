"""Record the banks anew: ``python -m tests.golden.record NAME ...``.

Only for what is meant to change, in a commit of its own that says which answers and why.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import banks
from .ask import flat, report_of, whole
from .files import answers_of_files
from .functions import questions
from .more_sets import more_sets
from .sets import cases


def figures_of_sets() -> dict[str, Any]:
    """Return the figures of every set of `sets.py`."""
    return {
        name: flat(report_of(case.pop("y"), case.pop("models"), **case)) for name, case in cases()
    }


def reports_of_more_sets() -> dict[str, Any]:
    """Return figures and whole reports of every set of `more_sets.py`."""
    content = {}
    for name, case in more_sets():
        options = dict(case)
        report = report_of(options.pop("y", None), options.pop("models"), **options)
        shortened = banks.shortened(banks.plain(whole(report)))
        content[name] = {"figures": flat(report), "report": shortened}
    return content


BANKS: dict[str, Callable[[], Any]] = {
    "sets": figures_of_sets,
    "more_sets": reports_of_more_sets,
    "files": answers_of_files,
    "functions": lambda: dict(questions()),
}


def main() -> None:
    """Record the banks that are named, or all."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or BANKS:
        path = banks.write(name, BANKS[name]())
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
