"""Record the banks anew: ``python -m tests.golden.record NAME ...``.

Only for what is meant to change, in a commit of its own that says which answers and why.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import banks
from . import record_training as training
from .ask import ask_index, flat, report_of, whole
from .compare import plain, write_bank
from .files import answers_of_files
from .functions import questions
from .index import CASES
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
        shortened = banks.shortened(banks.recordable(whole(report)))
        content[name] = {"figures": flat(report), "report": shortened}
    return content


def index_cases() -> dict[str, Any]:
    """Return what is known of the index of every case."""
    return {name: {"what": case} | ask_index(case) for name, case in CASES.items()}


#: Banks whose long lists are shortened.
REPORTS: dict[str, Callable[[], Any]] = {
    "sets": figures_of_sets,
    "more_sets": reports_of_more_sets,
    "files": answers_of_files,
    "functions": lambda: dict(questions()),
}
#: Banks of training and of the index, with all digits.
TRAINING: dict[str, Callable[[], Any]] = {**training.BANKS, "index": index_cases}


def main() -> None:
    """Record the banks that are named, or all."""
    for name in sys.argv[1:] or [*REPORTS, *TRAINING]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = {**REPORTS, **TRAINING}[name]()
        if name in REPORTS:
            banks.write(name, content)
        else:
            write_bank(banks.path_of(name), plain(content))
        print(name, banks.path_of(name).stat().st_size)


if __name__ == "__main__":
    main()
