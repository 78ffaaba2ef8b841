"""Commands that train a model from a table, and that use it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

import click

from .console import say, show_text, write_json
from .options import Command, check_ending, force_option, json_option, output_option

if TYPE_CHECKING:
    from .._typing import Intercept

#: Bytes of numbers that are read at once, unless a user asks for more.
_MOST_IN_MEMORY = 1 << 30
_INTERCEPTS: dict[str, Intercept] = {"free": True, "priced": "priced", "none": False}


def _choice(
    name: str, allowed: list[str], default: str | None = None, help: str | None = None
) -> Callable[[Any], Any]:
    """An option of a few values, by default the first."""
    kind, first = click.Choice(allowed), default or allowed[0]
    return click.option(name, type=kind, default=first, show_default=True, help=help)


def _target(given: str) -> float | str:
    """A loss as a number, or a word: the estimator says which is allowed."""
    try:
        return float(given)
    except ValueError:
        return given


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--label", required=True, metavar="COLUMN", help="Column of the classes to learn.")
@output_option("Model file to write (.skops).")
@_choice(
    "--method",
    ["satisficing", "dro", "erm"],
    help="Least fragile model of acceptable loss; least worst-case loss in a ball; least loss.",
)
@_choice(
    "--ambiguity", ["wasserstein", "kl"], help="What may shift: the features, or the mix of cases."
)
@_choice("--norm", ["1", "2", "inf"], "2", help="How shifts of the features are measured.")
@click.option("--label-cost", type=float, default=inf, help="Cost of a wrong label [infinite].")
@click.option(
    "--noise",
    multiple=True,
    metavar="COLUMN=SD",
    help="Measurement error of a numeric column that new data will have, in its units.",
)
@click.option(
    "--noise-floor",
    default=0.3,
    show_default=True,
    help="Share of its deviation that any column may drift by, with --noise.",
)
@_choice("--loss", ["cross_entropy", "hinge", "max_logistic", "smoothed_hinge"])
@click.option(
    "--target",
    type=_target,
    metavar="LOSS|out_of_fold",
    help="Acceptable mean loss; by default that of a tuned model on rows it was not fitted to.",
)
@click.option("--target-ratio", type=float, help="The same as a multiple of the lowest loss.")
@click.option(
    "--slack",
    type=float,
    help="The same as the share of what can be learned that may be given up.",
)
@click.option("--radius", type=float, help="How far data may shift, for dro [0.1].")
@click.option("--penalty", type=click.Choice(["l1", "l2"]), help="Penalty on the coefficients.")
@click.option("--alpha", default=1e-3, show_default=True, help="Its strength.")
@_choice(
    "--intercept",
    list(_INTERCEPTS),
    help="Free, or priced: a constant column that may shift and is penalised; or none.",
)
@click.option("--balanced", is_flag=True, help="Weigh the classes alike.")
@click.option("--feature", "features", multiple=True, metavar="COLUMN", help="Use these columns.")
@click.option("--exclude", multiple=True, metavar="COLUMN", help="Leave out these columns.")
@click.option("--weight", metavar="COLUMN", help="Column of the weights of the cases.")
@click.option(
    "--max-categories",
    type=click.IntRange(min=2),
    metavar="N",
    help="Most values of a text column that is taken for categories.",
)
@click.option("--impute", is_flag=True, help="Fill missing values: median, most frequent.")
@click.option("--drop-missing", is_flag=True, help="Leave out rows with missing values.")
@click.option(
    "--in-memory/--stream",
    "in_memory",
    default=None,
    help="Hold all rows, or read Parquet files again and again [hold up to 1 GiB].",
)
@force_option
@json_option
def train(
    file: str,
    label: str,
    output: str,
    norm: str,
    intercept: str,
    noise: tuple[str, ...],
    balanced: bool,
    features: tuple[str, ...],
    in_memory: bool | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a robust linear model from a table and save it as one pipeline.

    Text columns become one column for each value, numbers are standardised.

    \b
    fragility train data.csv --label sick --ambiguity wasserstein --output model.skops
    fragility train data.csv --label sick --noise blood_pressure=5 --output model.skops
    fragility train 'visits/*.parquet' --label sick --slack 0.1 --output model.skops
    """  # noqa: D301
    from ..pipelines import save_model, train_out_of_memory, train_pipeline
    from ..report.data import json_text
    from ..tables import check_output, open_table

    deviations = _deviations(noise) if noise else None
    check_ending(output, ".skops")
    check_output(output, [file], force=force)
    settings: dict[str, Any] = {
        "norm": inf if norm == "inf" else int(norm),
        "fit_intercept": _INTERCEPTS[intercept],
        "noise": deviations,
        "features": list(features) or None,
        "class_weight": "balanced" if balanced else None,
        **options,
    }
    table = open_table(file)
    if _is_held(table, in_memory):
        made = train_pipeline(table.read(), label, **settings)
    else:
        made = train_out_of_memory(file, label, say=say, **settings)
    save_model(made.pipeline, output)
    if as_json:
        write_json(json_text(made.summary.to_dict()))
    show_text(repr(made.summary), stderr=as_json)
    say(f"Wrote {output}.")


def _is_held(table: Any, in_memory: bool | None) -> bool:
    """Whether to hold all rows of a table."""
    if table.kind != "Parquet":
        if in_memory is False:
            raise table.error("--stream reads Parquet files, a folder or a pattern of them.")
        return True
    cells = table.n_rows * len(table.column_names)
    return 8 * cells <= _MOST_IN_MEMORY if in_memory is None else in_memory


def _deviations(given: tuple[str, ...]) -> dict[str, float]:
    """Deviations by column; a name may have an equals sign in it."""
    found: dict[str, float] = {}
    for text in given:
        name, sign, number = text.rpartition("=")
        try:
            deviation = float(number)
        except ValueError:
            sign = ""
        if not (sign and name):
            raise click.BadParameter(
                f"{text!r} is not a column and a number such as 'blood_pressure=5'.",
                param_hint="--noise",
            )
        if name in found:
            raise click.BadParameter(f"Column {name!r} is named twice.", param_hint="--noise")
        found[name] = deviation
    return found


@click.command(cls=Command)
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@output_option("File to write: .csv, .csv.gz, .parquet or .arrow.")
@click.option(
    "--threshold", type=float, help="Add a column: whether the model may decide alone above this."
)
@force_option
def predict(model: str, file: str, output: str, threshold: float | None, force: bool) -> None:
    """Add the predictions of a saved model to a table.

    \b
    fragility predict model.skops new.csv --output predictions.csv
    """  # noqa: D301
    from ..pipelines import load_model, predict_frame
    from ..tables import check_output, open_table, with_columns, write_table

    check_output(output, [model, file], force=force)
    pipeline = load_model(model)
    table = open_table(file).read()
    made = predict_frame(pipeline, table, threshold=threshold)
    write_table(with_columns(table, dict(zip(made.column_names, made, strict=True))), output)
    say(f"Wrote {len(made):,} predictions to {output}.")
