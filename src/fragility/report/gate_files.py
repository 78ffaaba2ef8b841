"""Results of a gate for machines: JUnit XML, and annotations of GitHub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from .. import __version__

if TYPE_CHECKING:
    from .gates import Check

#: What the test suite, and the title of an annotation, are called.
TITLE = "fragility gate"
#: Characters that XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(checks: Sequence[Check], file: str, not_held: Sequence[str] = ()) -> str:
    """A test suite with a test case for each check: its class is the model, its name the figure.

    What was not held is a test case that was skipped. Characters that XML cannot hold are left out
    of names.
    """
    failed = sum(not check.passed for check in checks)
    counts = f'tests="{len(checks) + len(not_held)}" failures="{failed}" errors="0"'
    properties = {"file": file, "fragility_version": __version__}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'  <testsuite name="{TITLE}" {counts} skipped="{len(not_held)}" time="0">',
        "    <properties>",
        *(f"      <property name={_xml(n)} value={_xml(v)}/>" for n, v in properties.items()),
        "    </properties>",
    ]
    for check in checks:
        lines += _test_case(check)
    for number, sentence in enumerate(not_held, start=1):
        lines += [
            f'    <testcase classname="not held" name={_xml(f"{number}: {sentence}")} time="0">',
            f"      <skipped message={_xml(sentence)}/>",
            "    </testcase>",
        ]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _test_case(check: Check) -> list[str]:
    begin = f'    <testcase classname={_xml(check.model)} name={_xml(_name(check))} time="0"'
    if check.passed:
        return [f"{begin}/>"]
    why = f"message={_xml(check.reason)}"
    return [f"{begin}>", f"      <failure {why} type={_xml(check.figure)}/>", "    </testcase>"]


def _name(check: Check) -> str:
    """The figure, what it is held to, and the group if there is one."""
    group = getattr(check, "group", None)
    return f"{check.title} ({check.source})" + ("" if group is None else f", {group}")


def _xml(text: object) -> str:
    """A value of an attribute, in quotes."""
    escapes = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}  # a reader would make blanks of them
    return quoteattr(_NOT_XML.sub("", str(text)), escapes)


def github_annotations(checks: Sequence[Check]) -> list[str]:
    """A workflow command of GitHub for each check that failed, which it shows as an error."""
    return [
        f"::error title={_property(TITLE)}::{_message(check.reason)}"
        for check in checks
        if not check.passed
    ]


def _message(text: str) -> str:
    """Escaped as GitHub's toolkit does: a line break would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
