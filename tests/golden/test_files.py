"""Broken and strange files are answered as they were when these answers were recorded."""

from __future__ import annotations

import pytest

from . import banks
from .compare import differences, relative_above_one
from .files import answer_of_file, files

ANSWERS = banks.read("files")
FILES = {file[0]: file for file in files()}


@pytest.mark.outside
@pytest.mark.parametrize("name", ANSWERS)
def test_answer_is_as_recorded(name, tmp_path):
    answer = banks.recordable(answer_of_file(tmp_path, FILES[name]))
    assert differences(ANSWERS[name], answer, relative_above_one(1e-6)) == []


def test_no_file_is_left_out():
    assert {*ANSWERS} == {*FILES}


def test_unusual_forms_of_one_table_give_one_report():
    """Neither a byte order mark nor a separator, a compression or a format changes a figure."""
    forms = ["byte_order_mark.csv", "semicolons.csv", "tabs.tsv", "windows_ends.csv"]
    forms += ["blank_lines.csv", "packed.csv.gz", "rows.jsonl", "list.json", "columns.parquet"]
    for form in [*forms, "columns.arrow"]:
        assert differences(ANSWERS["plain.csv"], ANSWERS[form], relative_above_one(1e-9)) == [], (
            form
        )
