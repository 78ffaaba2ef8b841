"""Options from fragility.toml: what they do, what wins, and what is refused."""

from __future__ import annotations

import json

import pytest

from .command import fragility, patients, refused, write_csv

ASKED = ("--label", "sick", "--score", "fair")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("config")
    write_csv(made / "p.csv", patients(80))
    return made


def run(folder, toml, *arguments, name="fragility.toml"):
    """Run the command where there is such a file; it is removed then."""
    path = folder / name
    path.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    try:
        return fragility(*arguments, cwd=folder)
    finally:
        path.unlink()


def test_a_file_stands_for_the_command_line(folder):
    given = fragility(
        "gate", "p.csv", *ASKED, "--score", "bold", "--max-fi", "0.2", "--error-cost", "0,1;10,0",
        "--stream", "--json", "--max-cost", "2", "--upper-limit", cwd=folder,
    )  # fmt: skip
    toml = """
[all]
label = "sick"
score = ["fair", "bold"]
error-cost = "0,1;10,0"
[gate]
file = "p.csv"
max-fi = 0.2
max-cost = 2
upper-limit = true
stream = true
json = true
[report]
output = "page.html"
"""
    found = run(folder, toml, "gate")
    assert found.out == given.out
    assert found.code == given.code == 1
    first, *rest = found.err.splitlines()
    assert first.startswith(
        "Options from fragility.toml, where the command line gives none: label,"
    )
    assert rest == given.err.splitlines()


def test_the_command_line_wins(folder):
    toml = '[gate]\nlabel = "sick"\nscore = ["fair"]\nmax-fi = 0.0001\nin-memory = true\n'
    assert run(folder, toml, "gate", "p.csv").code == 1
    found = run(folder, toml, "gate", "p.csv", "--max-fi", 9, "--score", "bold", "--json")
    assert found.code == 0
    content = json.loads(found.out)
    assert {check["limit"] for check in content["checks"]} == {9.0}
    assert [model["name"] for model in content["report"]["models"]] == ["bold"]


def test_a_section_of_a_command_wins_over_that_of_all(folder):
    toml = '[gate]\nmax-fi = 9\n[all]\nmax-fi = 0.0001\nlabel = "sick"\nscore = "fair"\n'
    assert run(folder, toml, "gate", "p.csv").code == 0


def test_one_named_file_is_read_instead(folder):
    toml = '[gate]\nlabel = "sick"\nscore = "fair"\nmax-fi = 9\n'
    found = run(folder, toml, "gate", "p.csv", "--config", "own.toml", name="own.toml")
    assert found.code == 0
    assert "Options from own.toml" in found.err
    (folder / "fragility.toml").write_text("damaged")
    try:
        found = run(folder, toml, "gate", "p.csv", "--config", "own.toml", name="own.toml")
    finally:
        (folder / "fragility.toml").unlink()
    assert found.code == 0


def test_a_file_without_options_for_a_command(folder):
    toml = '[gate]\nmax-fi = 9\n[all]\nlabel = "sick"\n'
    found = run(folder, toml, "demo", "--help")
    assert (found.code, found.err) == (0, "")
    found = run(folder, "", "evaluate", "p.csv", *ASKED, "--config", "own.toml", name="own.toml")
    assert found.code == 0
    assert "own.toml has no options for `fragility evaluate`." in found.err


def test_options_of_one_name_are_checked_where_they_are_used(folder):
    """`slices` takes one --score, `evaluate` several."""
    toml = '[all]\nlabel = "sick"\nscore = ["fair", "bold"]\n'
    assert run(folder, toml, "evaluate", "p.csv").code == 0
    ended = run(folder, toml, "slices", "p.csv")
    refused(ended, "fragility.toml", "score in [all]", "['fair', 'bold']")


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[gate\nx = 1", ["not a file of options in TOML", "line 1"]),
        (b"\xff\xfe[", ["not UTF-8"]),
        ("x = " + "[" * 5000, ["not a file of options in TOML"]),
        ("[gate]\nhold = " + "9" * 5000, ["not a file of options in TOML"]),
        ("#" * (2**20 + 1), ["more than 1 MiB"]),
        ("[gate]\nmax-fi = 1\nmax-fi = 2", ["not a file of options in TOML"]),
        ("[gat]\nmax-fi = 1", ["unknown section 'gat'", "Did you mean 'gate'"]),
        ('label = "sick"', ["unknown key outside of a section 'label'"]),
        ("gate = 3", ["must be a section, [gate]; got 3"]),
        ("[gate]\nmax_fi = 1", ["[gate] has the unknown key 'max_fi'", "'max-fi'"]),
        ("[gate]\nfull = true", ["unknown key 'full'"]),
        ("[all]\nnothing = 1", ["[all] has the unknown key 'nothing'"]),
        ('[gate]\nconfig = "x"', ["unknown key 'config'"]),
        ("[gate]\nhelp = true", ["unknown key 'help'"]),
        ('[gate]\nmax-fi = "much"', ["max-fi in [gate] is wrong", "'much'"]),
        ("[gate]\nmax-fi = true", ["must be text or a number; got True"]),
        ("[gate]\nmax-fi = [1, 2]", ["must be text or a number; got [1, 2]"]),
        ("[gate]\nmax-fi = {a = 1}", ["must be text or a number"]),
        ("[gate]\nmax-fi = 2026-01-01", ["must be text or a number"]),
        ("[gate]\nhold = 1.5", ["hold in [gate] is wrong", "1.5"]),
        ("[gate]\nhold = -1", ["hold in [gate] is wrong"]),
        ('[gate]\nupper-limit = "yes"', ["must be true or false; got 'yes'"]),
        ("[evaluate]\nscore = [true]", ["score in [evaluate]", "a list of these"]),
        ('[cost]\nrule = "best"', ["rule in [cost] is wrong", "'best'"]),
        ("[gate]\nstream = true\nin-memory = true", ["stream and in-memory", "keep one"]),
    ],
)
def test_hostile_files(folder, toml, words):
    """All of the file is checked, whichever command runs."""
    refused(run(folder, toml, "evaluate", "p.csv", *ASKED), "fragility.toml", *words)


def test_files_that_cannot_be_read(folder):
    for name, word in ((".", "directory"), ("absent.toml", "No such file")):
        ended = fragility("evaluate", "p.csv", *ASKED, "--config", name, cwd=folder)
        refused(ended, "The file of options", "cannot be read", word)
    (folder / "fragility.toml").symlink_to("absent")
    try:
        refused(fragility("evaluate", "p.csv", *ASKED, cwd=folder), "cannot be read")
    finally:
        (folder / "fragility.toml").unlink()
