"""Every public name of the library with its parameters, as lines of text.

``python -m tests.public_names`` writes ``tests/public_names.txt``, which the tests compare.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from inspect import isclass as is_class
from pathlib import Path
from types import ModuleType
from typing import Any

import fragility

FILE = Path(__file__).with_suffix(".txt")


def modules() -> Iterator[str]:
    """Names of all modules that declare public names."""
    yield "fragility"
    for module in pkgutil.walk_packages(fragility.__path__, "fragility."):
        private = any(part.startswith("_") for part in module.name.split("."))
        if not private and hasattr(importlib.import_module(module.name), "__all__"):
            yield module.name


def names(module: ModuleType) -> list[str]:
    """Public names of a module, with those that it imports when they are asked for."""
    return sorted({*module.__all__, *getattr(module, "_LAZY", ())})


def signature(called: Callable[..., Any]) -> str:
    """Names of the public parameters; an optional one has a =, * stands before keywords."""
    shown: list[str] = []
    for parameter in inspect.signature(called).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(p.startswith("*") for p in shown):
            shown.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        shown.append(star + parameter.name + ("" if parameter.default is parameter.empty else "="))
    return f"({', '.join(shown)})"


def members(found: type, public: set[type]) -> Iterator[str]:
    """Public methods and properties of a class: what it has from other public classes is there."""
    for name in sorted(dir(found)):
        owner = next(base for base in found.__mro__ if name in vars(base))
        elsewhere = not owner.__module__.startswith("fragility") or owner in public - {found}
        generated = name.endswith("_request") or name in getattr(found, "__dataclass_fields__", ())
        if name.startswith("_") or elsewhere or generated:
            continue
        member = inspect.getattr_static(found, name)
        if isinstance(member, staticmethod | classmethod) or inspect.isfunction(member):
            yield f"{name}{signature(getattr(found, name))}"
        else:
            yield name


def lines() -> list[str]:
    """One line for each name: functions and classes with their parameters, members below."""
    offered = {
        module: {name: getattr(sys.modules[module], name) for name in names(sys.modules[module])}
        for module in modules()
    }
    public = {value for found in offered.values() for value in found.values() if is_class(value)}
    first: dict[int, str] = {}
    written: list[str] = []
    for module, found in offered.items():
        written += ["", module]
        for name, value in found.items():
            home = first.setdefault(id(value), module)
            if not callable(value):
                written.append(f"    {name}")
            elif home != module:
                written.append(f"    {name}: as in {home}")
            elif not is_class(value):
                written.append(f"    {name}{signature(value)}")
            else:
                known = issubclass(value, Exception)  # takes a message, as all of them do
                written.append(f"    {name}{'' if known else signature(value)}")
                written += [f"        .{member}" for member in members(value, public)]
    return written[1:]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
