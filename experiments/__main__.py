"""``python -m experiments``."""

import os
import sys

# One process for each core does more than one with a thread for each, and the number of
# threads can change the last digit of a sum. Libraries read this when they are imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

if __name__ == "__main__":
    from experiments.command import main

    sys.exit(main(sys.argv[1:]))
