"""The command that searches the columns of a file for slices with too many confident mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .console import say, show_lines, show_table, write_json
from .options import Command, confident_option, json_option

if TYPE_CHECKING:
    from ..slices import Slice
    from ..tables import Table


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--label", required=True, metavar="COLUMN", help="Column of the true classes.")
@click.option(
    "--score",
    required=True,
    metavar="[NAME=]COLUMNS",
    help="The column of the probability of the positive class, or NAME=a,b,c with one column for "
    "each class.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="COLUMN",
    help="A column to search; repeat it for more [all other columns].",
)
@click.option(
    "--classes", metavar="A,B,C", help="The classes, in the order of the columns of a score."
)
@click.option("--positive", metavar="CLASS", help="The positive class of two [the last].")
@click.option("--weight", metavar="COLUMN", help="Column of the weights of the cases.")
@click.option(
    "--drop-missing",
    is_flag=True,
    help="Leave out rows without a label, score or weight. In searched columns a missing value is "
    "a value of its own.",
)
@click.option(
    "--against",
    type=click.Choice(["both", "class", "score"]),
    default="both",
    show_default=True,
    help="Compare a slice with its share of each class, with what its scores lead one to expect, "
    "or with both.",
)
@click.option(
    "--level", default=0.05, show_default=True, help="Largest adjusted p-value of a slice."
)
@click.option(
    "--min-cases", default=30, show_default=True, help="Fewest cases of a slice in each half."
)
@click.option(
    "--random-state", default=0, show_default=True, help="Seed of the halves and permutations."
)
@confident_option
@json_option
def slices(
    file: str,
    label: str,
    score: str,
    columns: tuple[str, ...],
    classes: str | None,
    positive: str | None,
    weight: str | None,
    drop_missing: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find simple conditions that hold more than their share of the worst-case weight.

    Chosen on one half of the rows, tested on the other. All of the file is read into memory.

    \b
    fragility slices predictions.csv --label sick --score p
    fragility slices predictions.csv --label sick --score p --column age --column sex
    """  # noqa: D301
    from ..report.data import json_text
    from ..slices import find_slices
    from ..tables import PredictionFile, open_table, parse_models

    table = open_table(file)
    models = parse_models([score], table.column_names)
    (name,) = models
    read = PredictionFile(
        table,
        label=label,
        models=models,
        classes=None if classes is None else [part.strip() for part in classes.split(",")],
        positive=positive,
        weight=weight,
        drop_missing=drop_missing,
    )
    searched = _searched(table, columns, read.columns.all)
    rows = read.read()
    frame = table.read(searched)
    if rows.rows is not None:
        frame = frame.take(rows.rows - 1)
    labels = read.classes
    found = find_slices(
        frame,
        [labels[code] for code in rows.codes.tolist()],
        rows.scores[name],
        labels=labels,
        pos_label=read.positive,
        sample_weight=rows.weights,
        **options,
    )
    if as_json:
        content = {
            "model": name,
            "n": rows.n_rows,
            "searched": searched,
            "slices": [part.to_dict() for part in found],
        }
        write_json(json_text(content))
    _show(found, as_json)
    if drop_missing and read.n_dropped:
        say(f"{read.n_dropped:,} rows without a label, score or weight were left out.")


def _searched(table: Table, columns: tuple[str, ...], used: list[str]) -> list[str]:
    """Columns to search: those that were named, or all that are nothing else."""
    from .._labels import listed
    from ..tables import require_columns

    require_columns(table, columns)
    found = list(dict.fromkeys(columns)) or [c for c in table.column_names if c not in used]
    both = [column for column in found if column in used]
    if both:
        raise table.error(
            f"column {listed(both)} holds labels, scores or weights, which are not searched; name "
            "other columns with --column."
        )
    if not found:
        raise table.error("it has no columns to search besides labels, scores and weights.")
    return found


def _show(found: list[Slice], as_json: bool) -> None:
    from ..report import words

    if not found:
        show_lines(
            ["No slice passes the test: none of the conditions is shown to hold more."],
            stderr=as_json,
        )
        return
    head = ["slice", "cases", "share", "of the weight", "expected", "lift", "p"]
    rows = [
        [
            words.seen(part.condition),
            words.count(part.n),
            words.percent(part.share),
            words.percent(part.weight_share),
            words.percent(part.expected_share),
            f"{part.lift:.2f}",
            f"{part.p_value:.2g}",
        ]
        for part in found
    ]
    show_table(head, rows, stderr=as_json)
    lines = [words.seen(str(part)) for part in found]
    show_lines(lines, stderr=as_json)
