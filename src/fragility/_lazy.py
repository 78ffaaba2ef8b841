"""Packages whose names are imported when they are first used.

The names of such a package stand once, in its stub ``__init__.pyi``: type checkers read the imports
there, and so does the interpreter. A command that needs little starts at once, and Ctrl-C is heard
before anything slow begins.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the stub beside `file`.

    The stub holds relative imports and ``__all__``. Modules (``from . import metrics``) and names
    that are not in its ``__all__`` can be used, too.
    """
    modules, names = set(), {}
    public: list[str] = []
    for statement in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            found = [alias.name for alias in statement.names]
            if statement.module is None:
                modules.update(found)
            else:
                module = "." * statement.level + statement.module
                names.update(dict.fromkeys(found, module))
        elif isinstance(statement, ast.Assign):
            public = sorted(ast.literal_eval(statement.value))

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(names[name], package), name)
        setattr(sys.modules[package], name, value)  # found at once from now on
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *modules})

    return get, listed, public
