"""Memory of one fit, in a process of its own: prints the bytes of X and the peak.

The peak is that of the process less its size before X was made. `training.py` runs it.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from problems import PENALISED, Problem
from sklearn.linear_model import LogisticRegression

FITS = {
    "LogisticRegression": lambda X, y: LogisticRegression().fit(X, y),
    **{fit.name: fit.run for fit in PENALISED},
}


def resident(which: str) -> int:
    """Resident memory in bytes: now (VmRSS) or at most so far (VmHWM).

    Not from getrusage: its peak is inherited from the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which):
            return 1024 * int(line.split()[1])
    raise OSError("/proc/self/status does not tell: needs Linux")


def main() -> None:
    name, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    fit = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(*Problem(500, 20).data())  # libraries that load on first use are not ours to count
        before = resident("VmRSS")
        X, y = Problem(n, d).data()
        fit(X, y)
    print(X.nbytes, resident("VmHWM") - before)


if __name__ == "__main__":
    main()
