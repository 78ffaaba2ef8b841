"""A table of predictions as Python's own csv module and float() read it."""

from __future__ import annotations

import csv
import io
import itertools
import re

MISSING = {"", "NA", "NaN", "nan", "null", "NULL", "N/A"}


def records(text, delimiter=","):
    """Rows as dictionaries; names without the spaces around them."""
    header, *rows = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if r]
    names = [name.strip() for name in header]
    return [dict(zip(names, row, strict=True)) for row in rows]


def predictions(text, label, scores, delimiter=",", drop=False):
    """Classes of all labels; codes, scores and numbers of the rows that have all their values."""
    rows = list(enumerate(records(text, delimiter), start=1))
    found = {row[label] for _, row in rows if row[label] not in MISSING}
    whole = all(re.fullmatch(r"[+-]?\d+", value) for value in found)
    classes = sorted(found, key=int if whole else None)
    if drop:
        used = [label, *scores]
        rows = [(n, row) for n, row in rows if all(row[c].strip() not in MISSING for c in used)]
    return (
        classes,
        [classes.index(row[label]) for _, row in rows],
        {column: [float(row[column]) for _, row in rows] for column in scores},
        [n for n, _ in rows],
    )


def unclosed_quote(text):
    """Line in which a quote is opened that is never closed; None if there is none."""
    lines = [*io.StringIO(text, newline=""), "\n", "after the last line"]
    reader = csv.reader(lines)
    last, begins, ends = [], 1, 0
    for row in reader:
        last, begins, ends = row, ends + 1, reader.line_num
    if last == ["after the last line"]:
        return None
    return begins + sum(len(re.findall("\r\n|\r|\n", value)) for value in last[:-1])


def grouped(text, asked, cross=True, delimiter=","):
    """Group of each row by column, in words, and the names of the groups in their order.

    `asked` are pairs of a column and of cuts, None for a column of names.
    """
    rows = records(text, delimiter)
    found, names = {}, {}
    for column, cuts in asked:
        values = [row[column] for row in rows]
        if cuts is None:
            whole = all(re.fullmatch(r"[+-]?\d+", value) for value in values)
            found[column] = [str(int(value)) if whole else value for value in values]
            names[column] = sorted(set(found[column]), key=int if whole else None)
            continue
        ends = [f"under {cuts[0]}"]
        ends += [f"{low} to under {high}" for low, high in itertools.pairwise(cuts)]
        names[column] = [*ends, f"{cuts[-1]} and over"]
        found[column] = [names[column][sum(float(v) >= cut for cut in cuts)] for v in values]
    if cross and len(asked) > 1:
        columns = [column for column, _ in asked]
        crossed = list(zip(*(found[column] for column in columns), strict=True))
        order = sorted(set(crossed), key=lambda row: [
            names[column].index(part) for column, part in zip(columns, row, strict=True)
        ])  # fmt: skip
        name = " × ".join(columns)
        found[name] = [" × ".join(row) for row in crossed]
        names[name] = [" × ".join(row) for row in order]
    return found, names
