"""The commands that sketch predictions, merge sketches and compare those of two times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import FAILED, PASSED
from .console import progress_bar, say, show_lines, show_models, show_text, write_json
from .options import Command, check_ending, confidence_level_option, force_option, json_option

if TYPE_CHECKING:
    from ..figures.sketch import SketchFragility
    from ..figures.sketch_comparison import SketchComparison
    from ..scores.sketch import FragilitySketch

_output = click.option(
    "-o", "--output", required=True, type=click.Path(), metavar="FILE", help="Sketch: .fsk."
)


@click.command(cls=Command)
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@_output
@click.option("--label", required=True, metavar="COLUMN", help="Column of the true classes.")
@click.option(
    "--score",
    required=True,
    metavar="[NAME=]COLUMNS",
    help="Column of the probability of the positive class, or one column for each of --classes.",
)
@click.option("--classes", metavar="A,B,C", help="All classes, in this order [those of the files].")
@click.option(
    "--positive",
    metavar="CLASS",
    help="The positive class of two [the last, or the later of ordered categories].",
)
@click.option("--weight", metavar="COLUMN", help="Column of the weights of the cases.")
@click.option("--drop-missing", is_flag=True, help="Leave out rows with missing values.")
@click.option(
    "--bins",
    "n_bins",
    type=int,
    default=4096,
    show_default=True,
    help="Bins of the scores, a power of two; sketches of equal bins merge.",
)
@force_option
def sketch(
    files: tuple[str, ...], output: str, force: bool, classes: str | None, **asked: Any
) -> None:
    """Sketch predictions: a small file that knows the index of any number of cases.

    Parts of the data are sketched one by one, on any machine, and merged. A part may lack a class
    if others or --classes have it.

    \b
    fragility sketch part-*.parquet -o day.fsk --label sick --score p
    fragility merge monday.fsk tuesday.fsk -o week.fsk
    fragility drift week.fsk day.fsk
    """  # noqa: D301
    from ..tables import check_output
    from ..tables.opening import check_once
    from ..tables.sketch_files import sketch_of_files

    check_ending(output, ".fsk")
    check_once(files)
    check_output(output, files, force=force)
    named = None if classes is None else [name.strip() for name in classes.split(",")]
    with progress_bar("Sketching", None) as progress:
        made, n_dropped = sketch_of_files(files, classes=named, progress=progress, **asked)
    if n_dropped:
        say(f"Note: {n_dropped:,} rows have missing values and are left out.")
    _write(output, made)


@click.command(cls=Command)
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@_output
@force_option
def merge(files: tuple[str, ...], output: str, force: bool) -> None:
    """Merge sketches: the same file as one sketch of all their cases.

    \b
    fragility merge monday.fsk tuesday.fsk -o week.fsk
    """  # noqa: D301
    from ..tables import TableError, check_output
    from ..tables.opening import check_once
    from ..tables.sketch_files import read_sketch

    check_ending(output, ".fsk")
    check_once(files)
    check_output(output, files, force=force)
    merged = read_sketch(files[0])
    for path in files[1:]:
        part = read_sketch(path)
        try:
            merged.merge(part)
        except ValueError as error:
            raise TableError(f"{path} does not merge with {files[0]}: {error}") from error
    _write(output, merged)


@click.command(cls=Command)
@click.argument("before", type=click.Path())
@click.argument("now", type=click.Path())
@confidence_level_option("Of the intervals; one minus the level of the test.")
@json_option
def drift(before: str, now: str, confidence: float, as_json: bool) -> int:
    """Compare the sketches of two times; exit 1 if the index has changed by more than chance.

    For cases of two classes that the sketches do not have in common. Where an index is 0 or
    infinite there is no test, and intervals that do not overlap count as a change. Exit 0 if no
    change is shown, 2 for bad input. Look at one sketch a day, and one day in twenty shows a change
    where there is none.

    \b
    fragility drift week.fsk day.fsk
    """  # noqa: D301
    from ..figures.sketch_comparison import compare_sketches
    from ..report.data import json_text
    from ..tables import TableError
    from ..tables.opening import check_once
    from ..tables.sketch_files import read_sketch

    check_once([before, now])
    old, new = read_sketch(before), read_sketch(now)
    try:
        found = compare_sketches(new, old, confidence=confidence)
    except ValueError as error:
        raise TableError(f"{now} and {before} cannot be compared: {error}") from error
    if as_json:
        write_json(json_text(_content(found, before, now)))
    columns = [_column(part, confidence) for part in (found.of_b, found.of_a)]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    show_models(("", Path(before).name, Path(now).name), rows, stderr=as_json)
    show_text("", stderr=as_json)
    show_lines(_sentences(found, Path(before).name, Path(now).name), stderr=as_json)
    return FAILED if found.differs else PASSED


def _write(output: str, made: FragilitySketch) -> None:
    from ..tables import write_file

    write_file(output, made.to_bytes())
    held = [] if made.labels is None else zip(made.labels.tolist(), made.support, strict=True)
    counts = ", ".join(f"{label}: {int(n):,}" for label, n in held)
    say(f"Wrote {output}: {int(made.support.sum()):,} cases ({counts or 'no classes yet'}).")


def _column(part: SketchFragility, confidence: float) -> dict[str, str]:
    """What a sketch tells, by name."""
    assert part.auc is not None
    low, high = part.interval(confidence)
    least, most = part.auc.bounds or (part.auc.value, part.auc.value)
    return {
        "Fragility Index": f"{part.value:.5g}",
        f"{100.0 * confidence:g} % interval": f"{low:.4g} to {high:.4g}",
        "ratio": f"{part.ratio:.5g}",
        "AUC": f"{part.auc.value:.5g}" if least == most else f"{least:.5g} to {most:.5g}",
        "Brier score": f"{part.brier:.5g}",
        **{
            f"cases of {c}": f"{int(n):,}"
            for c, n in zip(part.labels.tolist(), part.support, strict=True)
        },
    }


def _sentences(found: SketchComparison, before: str, now: str) -> list[str]:
    said = [found.told(now, before)]
    ratio = found.ratio
    if ratio.p_value == ratio.p_value:
        low, high = ratio.interval
        alike = ratio.p_value >= 1.0 - found.confidence
        said.append(
            f"The ratio, which does not depend on the scale of the scores, is {ratio.quotient:.4g} "
            f"times as large ({100.0 * found.confidence:g} % interval {low:.4g} to {high:.4g}, p = "
            f"{ratio.p_value:.2g}): {'chance alone can explain that' if alike else 'it changed'}."
        )
    if found.differs:
        said.append(
            "The index follows the spread of the scores, too: see ratio, AUC and Brier score "
            "before you blame the model."
        )
    return said


def _content(found: SketchComparison, before: str, now: str) -> dict[str, Any]:
    tests = {
        name: {
            "difference": part.difference,
            "standard_error": part.standard_error,
            "quotient": part.quotient,
            "interval": list(part.interval),
            "p_value": part.p_value,
        }
        for name, part in (("fragility_index", found), ("ratio", found.ratio))
    }
    parts = {
        name: {
            "file": path,
            "fragility_index": part.value,
            "interval": list(part.interval(found.confidence)),
            "standard_error": part.standard_error,
            "bounds": [part.lower, part.upper],
            "ratio": part.ratio,
            "auc": None if part.auc is None else list(part.auc.bounds or [part.auc.value] * 2),
            "brier": part.brier,
            "support": dict(
                zip(map(str, part.labels.tolist()), part.support.tolist(), strict=True)
            ),
        }
        for name, path, part in (("before", before, found.of_b), ("now", now, found.of_a))
    }
    return {"changed": found.differs, "confidence": found.confidence, **parts, "tests": tests}
