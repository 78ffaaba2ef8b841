"""Options from a file, `fragility.toml`: what the command line does not give.

A section for each command, and `[all]` for every command that has such an option. A value is taken
as if it had been typed, so that the checks of the command line hold for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from .._names import did_you_mean, shown
from .console import say

#: Read if it is in the working directory, unless --config names another file.
NAME = "fragility.toml"
#: Section for all commands.
ALL = "all"
#: A file of options is far below this many bytes.
_LARGEST = 2**20
#: Options that a file cannot give.
_NEVER = ("config", "help", "version")


def with_config(command: click.Command) -> click.Command:
    """The command, with the option --config."""
    option = click.Option(
        ["--config"],
        type=click.Path(),
        metavar="TOML",
        is_eager=True,  # before the options that it gives
        expose_value=False,
        callback=_take_options,
        help=f"File of options [{NAME}, if it is in the working directory].",
    )
    command.params.append(option)
    return command


def _take_options(context: click.Context, _option: click.Parameter, given: str | None) -> None:
    """Make what the file says the defaults of the command."""
    parent = context.parent
    if context.resilient_parsing or parent is None:
        return
    if given is None and not os.path.lexists(NAME):
        return
    path = NAME if given is None else given
    content = _read(path)
    group = parent.command
    assert isinstance(group, click.Group)
    commands = {name: group.get_command(parent, name) for name in group.list_commands(parent)}
    known = {name: command for name, command in commands.items() if command is not None}
    own = _checked(path, content, known, str(context.command.name))
    context.default_map = {name: value for name, (_, value) in own.items()}
    if own:
        keys = ", ".join(key for key, _ in own.values())
        say(f"Options from {path}, where the command line gives none: {keys}.")
    elif given is not None:
        say(f"{path} has no options for `fragility {context.info_name}`.")


def _read(path: str) -> Mapping[str, Any]:
    import tomllib  # only where there is such a file

    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"The file of options {path} cannot be read: {reason}.") from None
    try:
        if len(data) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST // 2**20} MiB")
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # also what is wrong with the TOML, and where
        reason = str(error).rstrip(".")
    raise ValueError(f"{path} is not a file of options in TOML: {reason}.")


#: By name of a parameter: the key in the file, and the value.
_Values = dict[str, tuple[str, Any]]


def _checked(
    path: str, content: Mapping[str, Any], commands: Mapping[str, click.Command], running: str
) -> _Values:
    """Values for the command that runs; sections of other commands are checked, too."""
    known = (ALL, *commands)
    for section, values in content.items():
        if section not in known:
            what = "section" if isinstance(values, dict) else "key outside of a section"
            raise ValueError(
                f"{path} has the unknown {what} {shown(section)}; sections are [{ALL}] and the "
                f"commands, such as [gate].{did_you_mean([section], known)}"
            )
        if not isinstance(values, dict):
            raise ValueError(
                f"{path}: {section} must be a section, [{section}]; got {shown(values)}."
            )
    keys = {name: _keys(command) for name, command in commands.items()}
    # Options of one name differ by command: whether such a value fits is seen when one runs.
    anywhere = {key for own in keys.values() for key in own}
    found = _section(path, ALL, content.get(ALL, {}), commands[running], anywhere)
    for name in commands:
        values = content.get(name, {})
        own = _section(path, name, values, commands[name], set(keys[name]))
        if name == running:
            found |= own
    return found


def _section(
    path: str, section: str, values: Mapping[str, Any], command: click.Command, allowed: set[str]
) -> _Values:
    """What a section says to a command; keys that only others have are left out."""
    found: _Values = {}
    keys = _keys(command)
    for key, value in values.items():
        if key not in allowed:
            raise ValueError(
                f"{path}: [{section}] has the unknown key {shown(key)}; keys are long options "
                f"without the dashes, such as label.{did_you_mean([key], sorted(allowed))}"
            )
        if key not in keys:
            continue
        parameter, inverted = keys[key]
        name = str(parameter.name)
        if name in found:
            raise ValueError(
                f"{path}: [{section}] gives {found[name][0]} and {key}, which exclude each other; "
                "keep one."
            )
        taken = _value(f"{path}: {key} in [{section}]", parameter, value, command)
        found[name] = (key, not taken if inverted else taken)
    return found


def _keys(command: click.Command) -> dict[str, tuple[click.Parameter, bool]]:
    """By key: the parameter, and whether the key stands for its opposite."""
    found = {}
    for parameter in command.params:
        for names, inverted in ((parameter.opts, False), (parameter.secondary_opts, True)):
            for name in names:
                if isinstance(parameter, click.Argument) or name.startswith("--"):
                    found[name.removeprefix("--")] = (parameter, inverted)
    return {key: of for key, of in found.items() if key not in _NEVER}


def _value(what: str, parameter: click.Parameter, value: Any, command: click.Command) -> Any:
    """The value as the command line would give it."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"{what} must be true or false; got {shown(value)}.")
        return value
    several = isinstance(parameter, click.Option) and parameter.multiple
    is_list = isinstance(value, list) and (several or len(value) == 1)
    values = value if is_list else [value]
    if not all(isinstance(one, (str, int, float)) and not isinstance(one, bool) for one in values):
        allowed = "text, a number, or a list of these" if several else "text or a number"
        raise ValueError(f"{what} must be {allowed}; got {shown(value)}.")
    texts = [str(one) for one in values]
    taken = texts if several else texts[0]
    try:
        parameter.type_cast_value(click.Context(command), taken)
    except click.BadParameter as error:
        raise ValueError(f"{what} is wrong: {error.message}") from None
    return taken
