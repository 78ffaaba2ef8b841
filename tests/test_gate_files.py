"""JUnit XML and annotations of the gate: read back by strangers' parsers, on the real command."""

from __future__ import annotations

import re
from types import SimpleNamespace
from unittest import mock
from xml.dom import minidom

import pytest

from fragility import __version__
from fragility.report.gate_files import github_annotations, junit_xml

from . import command
from .command import fragility, patients, refused, write_csv

ASKED = ("--label", "sick", "--score", "fair", "--score", "bold")
LIMITS = ("--max-fi", "0.2", "--min-auc", "0.6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("gate_files")
    write_csv(made / "p.csv", patients(300))
    return made


def attributes(node):
    return dict(node.attributes.items())


def check_schema(text):
    """The common schema of JUnit: elements, their order, attributes and counts."""
    suites = minidom.parseString(text.encode()).documentElement
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors", "disabled"},
        "testsuite": {
            *("name", "tests", "failures", "errors", "time", "skipped", "disabled", "timestamp"),
            *("hostname", "id", "package"),
        },
        "properties": set(),
        "property": {"name", "value"},
        "testcase": {"name", "classname", "time", "assertions", "status"},
        "failure": {"message", "type"},
    }
    inside = {
        "testsuites": ["testsuite"],
        "testsuite": ["properties", "testcase"],
        "properties": ["property"],
        "testcase": ["failure"],
        "property": [],
        "failure": [],
    }

    def elements(node):
        return [child for child in node.childNodes if child.nodeType == child.ELEMENT_NODE]

    def walk(node):
        assert set(attributes(node)) <= allowed[node.tagName]
        order = [inside[node.tagName].index(child.tagName) for child in elements(node)]
        assert order == sorted(order)
        for child in elements(node):
            walk(child)

    assert suites.tagName == "testsuites"
    walk(suites)
    (suite,) = elements(suites)
    cases = suite.getElementsByTagName("testcase")
    for node in (suites, suite):
        assert int(node.getAttribute("tests")) == len(cases)
        assert int(node.getAttribute("failures")) == len(suite.getElementsByTagName("failure"))
        assert node.getAttribute("errors") == "0"
    return suite, cases


def test_junit_of_the_command(folder):
    ended = fragility("gate", "p.csv", *ASKED, *LIMITS, "--junit", "gate.xml", cwd=folder)
    assert ended.code == 1
    assert "Wrote gate.xml." in ended.err
    suite, cases = check_schema((folder / "gate.xml").read_text(encoding="utf-8"))
    assert suite.getAttribute("name") == "fragility gate"
    found = {
        node.getAttribute("name"): node.getAttribute("value")
        for node in suite.getElementsByTagName("property")
    }
    assert found == {"file": "p.csv", "fragility_version": __version__}
    told = {
        (case.getAttribute("classname"), case.getAttribute("name")): [
            node.getAttribute("message") for node in case.getElementsByTagName("failure")
        ]
        for case in cases
    }
    failed = re.findall(r"^Gate failed: (.*)$", ended.err, re.MULTILINE)
    assert failed
    assert told == {
        ("fair", "Fragility Index (limit)"): [],
        ("fair", "AUC (limit)"): [],
        ("bold", "Fragility Index (limit)"): failed,
        ("bold", "AUC (limit)"): [],
    }
    # It may be written again, over another one of its kind.
    assert (
        fragility("gate", "p.csv", *ASKED, "--max-fi", 9, "--junit", "gate.xml", cwd=folder).code
        == 0
    )
    _, cases = check_schema((folder / "gate.xml").read_text(encoding="utf-8"))
    assert len(cases) == 2


def checked(model, reason="", **more):
    given = {"title": "AUC", "figure": "auc", "source": "limit", **more}
    return SimpleNamespace(model=model, passed=not reason, reason=reason, **given)


def test_any_characters_are_escaped_or_left_out():
    name = "a<b>&\"'\0\x1b\x85\ud800\uffff\U0001f600\n\tz]]>"
    checks = [checked(name, f"100 % of {name}", group="sex=f"), checked("b", group=None)]
    suite, (first, second) = check_schema(junit_xml(checks, name))
    kept = "a<b>&\"'\x85\U0001f600\n\tz]]>"
    assert first.getAttribute("classname") == kept
    assert first.getAttribute("name") == "AUC (limit), sex=f"
    assert second.getAttribute("name") == "AUC (limit)"
    (failure,) = first.getElementsByTagName("failure")
    assert failure.getAttribute("message") == f"100 % of {kept}"
    assert suite.getElementsByTagName("property")[0].getAttribute("value") == kept


def read_by_github(line):
    """As the runner does: properties up to the second ::, escapes undone, % last."""
    name, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
    pairs = dict(part.split("=", 1) for part in properties.split(","))

    def undone(text, *more):
        for code, sign in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
            text = text.replace(code, sign)
        return text

    undo = (("%3A", ":"), ("%2C", ","))
    return name, {key: undone(value, *undo) for key, value in pairs.items()}, undone(message)


def test_annotations_are_read_back():
    reason = "95 % of a:b, c\r\n::error::forged"
    passed, failed = checked("a"), checked("b", reason)
    (line,) = github_annotations([passed, failed])
    assert "\n" not in line
    assert "\r" not in line
    assert read_by_github(line) == ("error", {"title": "fragility gate"}, reason)


def test_annotations_of_the_command(folder):
    def lines(text):
        return [line for line in text.splitlines() if line.startswith("::")]

    asked = ("gate", "p.csv", *ASKED, *LIMITS)
    ended = fragility(*asked, cwd=folder)
    (reason,) = re.findall(r"^Gate failed: (.*)$", ended.err, re.MULTILINE)
    assert lines(ended.out + ended.err) == []
    ended = fragility(*asked, "--annotations", cwd=folder)
    (line,) = lines(ended.out)
    assert read_by_github(line)[2] == reason
    ended = fragility(*asked, "--annotations", "--json", cwd=folder)  # which stays JSON
    assert (len(lines(ended.out)), len(lines(ended.err))) == (0, 1)
    with mock.patch.dict(command.ENVIRONMENT, GITHUB_ACTIONS="true"):
        assert len(lines(command._here(list(asked), folder).out)) == 1
        assert lines(command._here([*asked, "--no-annotations"], folder).out) == []


def test_files_that_must_not_be_written(folder):
    asked = ("gate", "p.csv", *ASKED, *LIMITS)
    for wrong, words in ((("--junit", "p.csv"), "must end in .xml"), (("--force",), "for --junit")):
        ended = fragility(*asked, *wrong, cwd=folder)
        assert ended.code == 2
        assert words in ended.err
    (folder / "own.xml").write_text("<?xml version='1.0'?><project/>")
    refused(fragility(*asked, "--junit", "own.xml", cwd=folder), "not test results of a gate")
    assert fragility(*asked, "--junit", "own.xml", "--force", cwd=folder).code == 1
    refused(fragility(*asked, "--junit", "no/own.xml", cwd=folder), "no folder 'no'")
