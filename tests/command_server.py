"""Runs commands in forks of a process that has imported everything once.

Starting Python and importing scikit-learn takes longer than most commands. Reads one JSON object a
line, {"arguments": [...], "cwd": path, "out": path, "err": path}, and answers with the exit code.
"""

from __future__ import annotations

import json
import os
import sys

import pandas  # noqa: F401
import pyarrow.csv
import pyarrow.parquet  # noqa: F401

from fragility.cli.app import run


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(request["cwd"])
            for descriptor, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            sys.argv = ["fragility", *request["arguments"]]
            code = run(request["arguments"])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # threads of pyarrow may not outlive a fork in good order
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
