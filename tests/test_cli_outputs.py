"""No output destroys an input, or a file of another kind."""

from __future__ import annotations

import os

import pytest

from fragility.tables import TableError, check_output

from .command import fragility, patients, refused, write_csv

ASKED = ("--label", "sick", "--score", "fair")


@pytest.fixture
def csv(tmp_path):
    return write_csv(tmp_path / "d.csv", patients(60))


def same_file(ended, path):
    refused(ended, f"{path} is the same file as the input", "Name another output")


@pytest.fixture
def policy(csv, tmp_path):
    made = tmp_path / "policy.json"
    assert fragility("cost", csv, *ASKED, "--error-cost", "5", "--policy", made).code == 0
    return made


@pytest.mark.parametrize("kind", ["symbolic", "hard", "relative", "of a link"])
def test_no_report_is_written_over_its_input_by_any_link(csv, tmp_path, kind):
    before = csv.read_bytes()
    link = tmp_path / "page.html"
    if kind == "symbolic":
        link.symlink_to(csv)
    elif kind == "hard":
        os.link(csv, link)
    elif kind == "relative":
        link.symlink_to("d.csv")
    else:
        (tmp_path / "other").symlink_to(csv)
        link.symlink_to(tmp_path / "other")
    for more in ((), ("--force",)):
        same_file(fragility("report", csv, *ASKED, "--output", link, *more), link)
    assert csv.read_bytes() == before


def test_the_input_may_be_the_link(csv, policy, tmp_path):
    table = tmp_path / "real.csv"
    csv.rename(table)
    csv.symlink_to(table)
    same_file(fragility("decide", csv, "--policy", policy, "--output", table), table)


def test_decisions_replace_neither_the_table_nor_the_policy(csv, policy, tmp_path):
    decide = ("decide", csv, "--policy", policy, "--output")
    before, made = csv.read_bytes(), policy.read_bytes()
    same_file(fragility(*decide, csv), csv)
    link = tmp_path / "out.csv"
    link.symlink_to(policy)
    same_file(fragility(*decide, link, "--force"), link)
    link.unlink()
    assert fragility(*decide, link).code == 0
    assert fragility(*decide, link).code == 0  # a table by a table
    assert (csv.read_bytes(), policy.read_bytes()) == (before, made)


def test_a_file_of_another_kind_is_replaced_by_force_only(csv, tmp_path):
    notes = tmp_path / "README.md"
    notes.write_text("# My notes\n")
    report = ("report", csv, *ASKED, "--output", notes)
    refused(fragility(*report), "README.md exists and is not a report in Markdown", "--force")
    assert notes.read_text() == "# My notes\n"
    assert fragility(*report, "--force").code == 0
    assert fragility(*report).code == 0  # now it is a report
    page = tmp_path / "fragility-demo.html"
    page.write_text("<!DOCTYPE html><title>Mine</title>")
    refused(fragility("demo", cwd=tmp_path), "fragility-demo.html exists and is not a page")


@pytest.mark.parametrize(
    ("name", "own", "other"),
    [
        ("a.html", b'<!DOCTYPE html>\n<meta name="generator" content="fragility 1">', b"<html>"),
        (
            "a.html",
            b'<!DOCTYPE html>\n<meta name="generator" content="fragility 1">',
            b"<!DOCTYPE html>",
        ),
        ("a.md", b"# Fragility report\n", b"# Notes"),
        ("a.JSON", b'{"format": 1, "fragility_version": "1"}', b'{"name": "package"}'),
        ("a.csv", b"a,b\n1,2\n", b"PK\3\4\0\0"),
        ("a.tsv", b"a\tb\n1\t2\n", b"<html>"),
        ("a.csv", b"a,b\n1,2\n", b"[1, 2]"),
        ("a.json", b'{"format": 1, "fragility_version": "1"}', b'{"format": 1}'),
        ("a.csv.gz", b"\x1f\x8b\x08", b"a,b"),
        ("a.parquet", b"PAR1...", b"a,b"),
        ("a.arrow", b"ARROW1\0\0", b"a,b"),
        ("a.feather", b"ARROW1\0\0", b"FEA1"),
    ],
)
def test_kinds_are_told_by_content(tmp_path, name, own, other):
    path = tmp_path / name
    for content in (None, b"", own):  # new, empty, of its kind
        if content is not None:
            path.write_bytes(content)
        check_output(path)
    path.write_bytes(other)
    with pytest.raises(TableError, match="exists and is not"):
        check_output(path)
    check_output(path, force=True)
    with pytest.raises(TableError, match="the same file as the input"):
        check_output(path, [tmp_path / "absent.csv", path], force=True)


def test_devices_and_missing_inputs_are_nothing_to_lose():
    check_output(os.devnull, [os.devnull, "absent.csv", "a\0b"])


def test_what_reports_write_is_known_as_such(tmp_path):
    from fragility import Report

    report = Report.from_predictions([0, 1, 0, 1], [0.2, 0.7, 0.6, 0.9], calibrate=False)
    for ending, text in (
        ("html", report.to_html()),
        ("md", report.to_markdown()),
        ("json", report.to_json()),
    ):
        (tmp_path / f"r.{ending}").write_text(text, encoding="utf-8")
        check_output(tmp_path / f"r.{ending}")
