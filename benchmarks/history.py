"""False alarms of `error_alarm` over two years of weeks, and how soon it notices: a simulation.

Run with ``make coverage``. Weeks are drawn from a known error rate. Without a change every alarm is
a false one, with a promise that is just kept, or with the first week as the reference. Then the
rate doubles at once or after a year: how many weeks pass until the alarm.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fragility import error_alarm

RESULTS = Path(__file__).parent / "results" / "history.md"
WEEKS = 104
SIZES = (20, 100, 500, 5000)
RATES = (0.002, 0.02, 0.1)
#: Weeks before the rate doubles.
CHANGES = (0, 52)


def first_alarms(size: int, rate: float, change: int, n: int, *, promised: bool) -> np.ndarray:
    """Week of the first alarm of each of `n` histories, from 0; infinite if there is none.

    Without a promise a week more is drawn first, which is the reference.
    """
    rng = np.random.default_rng([size, round(1e6 * rate), change, promised])
    rates = np.full(WEEKS, rate)
    rates[change:] *= 2.0
    found = np.full(n, np.inf)
    for k in range(n):
        # Weeks differ in size, as real ones do.
        decided = rng.poisson(size, WEEKS)
        errors = rng.binomial(decided, rates)
        if promised:
            first = error_alarm(errors, decided, rate).first_alarm
        else:
            reference = max(rng.poisson(size), 1)
            e = np.r_[rng.binomial(reference, rate), errors]
            if e[0] == reference:
                continue  # refused: nothing can be worse
            first = error_alarm(e, np.r_[reference, decided]).first_alarm
            first = None if first is None else first - 1
        if first is not None:
            found[k] = first
    return found


def rows(n: int) -> Iterator[list[str]]:
    for size in SIZES:
        for rate in RATES:
            cells = [f"{size:,}", f"{100 * rate:g} %"]
            for promised in (True, False):
                false = first_alarms(size, rate, WEEKS, n, promised=promised)
                cells.append(f"{100 * np.isfinite(false).mean():.2f} %")
            for change in CHANGES:
                # What goes off before the change is a false alarm, and no delay.
                found = first_alarms(size, rate, change, n, promised=True)
                delays = found[found >= change] - change + 1
                median, late = np.percentile(delays, [50, 90], method="higher")
                cells += [_weeks(median), _weeks(late)]
            yield cells


def _weeks(delay: float) -> str:
    return f"{delay:.0f}" if np.isfinite(delay) else "not yet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    began = time.perf_counter()
    found = list(rows(given.histories))
    took = time.perf_counter() - began
    head = ["decided a week", "errors", "false, promised", "false, first week"]
    head += ["doubled: median", "90 %", f"after {CHANGES[1]}: median", "90 %"]
    lines = [
        "# Alarms of `fragility history`",
        "",
        f"{given.histories:,} drawn histories of {WEEKS} weeks each, numbers of cases by Poisson's "
        "law, alarms at 95 %. False alarms: share of the histories with any alarm where the error "
        "rate is just the promised one, or where the first week is the reference; at most 5 % is "
        "promised. Doubled: weeks until the alarm, with the promise, from the first week on or "
        f"after {CHANGES[1]} good weeks; *not yet*: none within the {WEEKS} weeks.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---:|' * len(head)}",
        *(f"| {' | '.join(cells)} |" for cells in found),
        "",
        f"`python benchmarks/history.py`, {took:.0f} s; Python {platform.python_version()}, NumPy "
        f"{np.__version__}.",
    ]
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
