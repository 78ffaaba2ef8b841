"""Options that commands share, and what they say about a file of predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..measured import MIN_CELL
from ..scores import HOLD

if TYPE_CHECKING:
    from ..deferral import Costs

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command that refuses an option given twice, of which one would be lost."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(given).items():
                if times > 1 and isinstance(option, click.Option) and _has_one_value(option):
                    raise ValueError(
                        f"{option.opts[0]} is given {times} times, but takes one value."
                    )
        return super().parse_args(ctx, args)


def _has_one_value(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def together(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Several options as one, in this order."""
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


def confidence_level_option(what: str) -> Callable[[Function], Function]:
    """The level of intervals; what is wrong with it is said by the name of the option."""

    def checked(_context: click.Context, _option: click.Parameter, level: float) -> float:
        from .._parameters import check_confidence

        return check_confidence(level, "--confidence-level")

    return click.option(
        "--confidence-level",
        "confidence",
        default=0.95,
        show_default=True,
        callback=checked,
        help=what,
    )


#: FILE and the options that say what is in it.
prediction_options = together(
    click.argument("file", type=click.Path()),
    click.option("--label", metavar="COLUMN", help="Column of the true classes."),
    click.option(
        "--score",
        "scores",
        multiple=True,
        metavar="[NAME=]COLUMNS",
        help="A model: the column of its probability of the positive class, or NAME=a,b,c with one "
        "column for each class. Repeat it for more models.",
    ),
    click.option(
        "--classes", metavar="A,B,C", help="The classes, in the order of the columns of a score."
    ),
    click.option(
        "--positive",
        metavar="CLASS",
        help="The positive class of two [the last, or the later of ordered categories].",
    ),
    click.option(
        "--correct",
        multiple=True,
        metavar="[NAME=]COLUMN",
        help="Instead of --label and --score: column that says whether the answer of a model was "
        "right (true or false, 1 or 0, C or I). Repeat it for more models, unless they share it.",
    ),
    click.option(
        "--confidence",
        "confidences",
        multiple=True,
        metavar="[NAME=]COLUMN",
        help="Its confidence in that answer, from 0 to 1.",
    ),
    click.option(
        "--declined",
        multiple=True,
        metavar="[NAME=]COLUMN",
        help="Column that says where it gave no answer.",
    ),
    click.option("--weight", metavar="COLUMN", help="Column of the weights of the cases."),
    click.option(
        "--cluster",
        metavar="COLUMN",
        help="Column of what cases have in common, such as a patient: intervals count these.",
    ),
    click.option("--drop-missing", is_flag=True, help="Leave out rows with missing values."),
    click.option(
        "--hold",
        type=click.IntRange(min=0),
        default=HOLD,
        show_default=True,
        metavar="N",
        help="Scores held in memory; a file of more is measured from exact sums.",
    ),
    click.option(
        "--in-memory/--stream",
        default=False,
        help="Hold all scores, or no more than --hold says [the latter].",
    ),
    click.option("--no-calibration", is_flag=True, help="Leave out the calibrated figures."),
    confidence_level_option("Of the intervals."),
    click.option(
        "--mute",
        multiple=True,
        metavar="CODE",
        help="Leave out a finding, such as FRA012; repeat it for more. A note counts them.",
    ),
)
confident_option = click.option(
    "--confident",
    default=0.9,
    show_default=True,
    metavar="LEVEL",
    help="Predictions above this confidence are confident ones.",
)
#: What counts as confident, and which base rate calibration and thresholds are told for.
evidence_options = together(
    confident_option,
    click.option(
        "--prevalence",
        type=float,
        metavar="SHARE",
        help="Share of the positive class to restate calibration, predictive values and net "
        "benefit for [that of the file].",
    ),
)
#: What errors and reviews cost.
cost_options = together(
    click.option(
        "--error-cost",
        metavar="COST",
        help="Cost of an error: a number, or a matrix row by row, true × predicted class: "
        "'0,1;10,0'.",
    ),
    click.option(
        "--miss-cost",
        type=float,
        metavar="COST",
        help="Instead of the matrix: cost of a positive that is decided negative; with "
        "--false-alarm-cost.",
    ),
    click.option(
        "--false-alarm-cost",
        type=float,
        metavar="COST",
        help="Cost of a negative that is decided positive.",
    ),
    click.option(
        "--error-cost-column", metavar="COLUMN", help="Column of the cost of an error, by case."
    ),
    click.option("--review-cost", default=1.0, show_default=True, help="Cost of a review."),
    click.option("--capacity", type=float, help="Largest share of cases humans can review."),
    click.option(
        "--reviewer-error",
        metavar="SHARE",
        help="Share of the reviews that are wrong, one number or by class: 'no=0.01,yes=0.1' [0].",
    ),
    click.option(
        "--reviewer-error-column",
        metavar="COLUMN",
        help="Column of how probably a review is wrong, by case.",
    ),
    click.option(
        "--human",
        metavar="COLUMN",
        help="Column of what humans decided: they, the model and the policy are compared.",
    ),
)

against_option = click.option(
    "--against",
    metavar="[NAME=]COLUMNS",
    help="The model in use today, as --score has it (of answers its NAME): where the cases cannot "
    "tell models apart, it stays.",
)
#: What the numbers mean to people.
context_options = together(
    against_option,
    click.option("--title", default="", help="Of the report."),
    click.option("--currency", default="", metavar="CODE", help="Of the costs: EUR, €."),
    click.option(
        "--volume",
        metavar="N/TIME",
        help="Cases that come in some time, 50000/month: adds what they cost.",
    ),
)

#: How a policy is chosen, and what it must keep.
policy_options = together(
    click.option(
        "--max-error-share",
        type=float,
        metavar="SHARE",
        help="Most errors of the model, as a share of all cases.",
    ),
    click.option(
        "--max-error-rate",
        type=float,
        metavar="SHARE",
        help="Most errors, as a share of the cases it decides alone.",
    ),
    click.option(
        "--max-misses",
        type=float,
        metavar="SHARE",
        help="Most positives decided negative, as a share of the positives.",
    ),
    click.option(
        "--max-false-alarms",
        type=float,
        metavar="SHARE",
        help="Most negatives decided positive, as a share of the negatives.",
    ),
    click.option(
        "--guarantee",
        type=float,
        metavar="LEVEL",
        help="Probability with which these limits hold in the population [0.95].",
    ),
    click.option(
        "--rule",
        type=click.Choice(["auto", "tuned", "expected_cost", "confidence"]),
        default="auto",
        show_default=True,
        help="Costs that choose: of these cases, expected by calibrated probabilities, or both.",
    ),
    click.option(
        "--criterion",
        type=click.Choice(["cost", "fragility"]),
        default="cost",
        show_default=True,
        help="The cheapest policy, or the least fragile of nearly the same cost.",
    ),
    click.option(
        "--slack",
        default=0.1,
        show_default=True,
        help="How much more that may cost, of what full review costs more.",
    ),
)


def output_option(words: str) -> Callable[[Function], Function]:
    """The file to write."""
    return click.option("--output", required=True, type=click.Path(), help=words)


group_option = together(
    click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="COLUMN[:CUTS]",
        help="Column of groups, for all figures by group; numbers in ranges: age:40,60. Repeat it "
        "for more columns.",
    ),
    click.option("--no-cross", is_flag=True, help="Do not cross several columns of groups."),
    click.option(
        "--min-cell",
        type=click.IntRange(min=0),
        metavar="N",
        help=f"Groups with fewer cases of any class are shown, but not compared [{MIN_CELL}].",
    ),
)
#: Which cases are listed, and how they are named.
case_options = together(
    click.option(
        "--worst",
        type=click.IntRange(min=0),
        metavar="N",
        help="Cases to list: the worst of each model, those that all models get confidently wrong, "
        "and new ones; 0 for none [10 in a report, for several models, or with --case].",
    ),
    click.option("--case", "case_column", metavar="COLUMN", help="Column that names the cases."),
    click.option(
        "--previous",
        type=click.Path(),
        metavar="FILE",
        help="Earlier predictions with the same columns: lists cases that are newly confidently "
        "wrong. Takes --case.",
    ),
)
force_option = click.option(
    "--force", is_flag=True, help="Replace an existing file of another kind; never an input."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Strict JSON on stdout.")


def asked_models(
    label: str | None = None,
    scores: Sequence[str] = (),
    correct: Sequence[str] = (),
    confidences: Sequence[str] = (),
    declined: Sequence[str] = (),
    classes: str | None = None,
    positive: str | None = None,
    **_others: Any,
) -> tuple[Sequence[str], bool]:
    """What was said of each model, and whether it gives answers that are right or wrong."""
    of_classes = {"--label": label, "--score": scores}
    of_answers = {"--correct": correct, "--confidence": confidences}
    is_answers = any((*of_answers.values(), declined))
    if is_answers and any(of_classes.values()):
        raise click.UsageError(
            "Give --label and --score for predictions of classes, or --correct and --confidence "
            "for answers that are right or wrong, not both."
        )
    if is_answers and not (classes is None and positive is None):
        raise click.UsageError("--classes and --positive are for --label and --score.")
    wanted = of_answers if is_answers else of_classes
    missing = [option for option, given in wanted.items() if not given]
    if missing:
        other = "" if is_answers else " Answers that are right or wrong have --correct instead."
        raise click.UsageError(
            f"Missing option '{missing[0]}': {' and '.join(wanted)} go together.{other}"
        )
    return confidences if is_answers else scores, is_answers


def check_ending(output: str, *endings: str, option: str = "--output") -> str:
    """Ending of the name of a file to write, which must be one of these."""
    found = next((ending for ending in endings if output.lower().endswith(ending)), None)
    if found is None:
        *others, last = endings
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise click.BadParameter(f"{output!r} must end in {allowed}.", param_hint=option)
    return found


def as_costs(
    error_cost: str | None,
    error_cost_column: str | None,
    review_cost: float,
    capacity: float | None,
    reviewer_error: str | None,
    reviewer_error_column: str | None,
    human: str | None,
    miss_cost: float | None = None,
    false_alarm_cost: float | None = None,
) -> Costs | None:
    """Costs as the options give them; columns are read with the predictions.

    Costs of misses and false alarms are a matrix with the negative class first.
    """
    from ..deferral import Costs

    by_kind = {"--miss-cost": miss_cost, "--false-alarm-cost": false_alarm_cost}
    missing = [option for option, given in by_kind.items() if given is None]
    if len(missing) == 1:
        raise click.UsageError(f"{' and '.join(by_kind)} go together: give {missing[0]}, too.")
    ways = {
        "--error-cost": error_cost,
        "--error-cost-column": error_cost_column,
        "--miss-cost": miss_cost,
    }
    given_ways = [option for option, given in ways.items() if given is not None]
    if len(given_ways) > 1:
        raise click.UsageError(f"Give {' or '.join(given_ways)}, not both.")
    reviewers = {
        "--reviewer-error": reviewer_error,
        "--reviewer-error-column": reviewer_error_column,
        "--human": human,
    }
    named = [option for option, given in reviewers.items() if given is not None]
    if len(named) > 1:
        raise click.UsageError(f"Give {' or '.join(named)}, not both: each says how reviewers err.")
    if not given_ways:
        if capacity is not None or named or review_cost != 1.0:
            raise click.UsageError(
                "Costs of reviews say nothing without the cost of an error: give --error-cost, or "
                "--miss-cost and --false-alarm-cost, too."
            )
        return None
    if error_cost_column is not None and (reviewer_error_column or human):
        raise click.UsageError(
            f"{named[0]} and --error-cost-column are both by case; give --error-cost, or "
            "--reviewer-error."
        )
    given: Any = None if error_cost is None else _matrix_or_number(error_cost)
    if miss_cost is not None:
        given = [[0.0, false_alarm_cost], [miss_cost, 0.0]]
    rates = 0.0 if reviewer_error is None else _share_or_by_class(reviewer_error)
    return Costs(given, review_cost, capacity, rates)


def _share_or_by_class(text: str) -> float | dict[str, float]:
    """One share, or shares by the names of the classes."""
    try:
        if "=" not in text:
            return float(text)
        pairs = [part.rpartition("=")[::2] for part in text.split(",")]
        found = {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a share such as 0.02 nor a share for each class such as "
            "'no=0.01,yes=0.1'.",
            param_hint="--reviewer-error",
        ) from None
    if len(found) < len(pairs):
        raise click.BadParameter(f"{text!r} names a class twice.", param_hint="--reviewer-error")
    return found


def _matrix_or_number(text: str) -> Any:
    try:
        rows = [[float(cell) for cell in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a number nor a matrix such as '0,1;10,0' (true × predicted).",
            param_hint="--error-cost",
        ) from None
    if len({len(row) for row in rows}) > 1:
        raise click.BadParameter(
            f"{text!r} has rows of different lengths; give one row for each true class.",
            param_hint="--error-cost",
        )
    return rows[0][0] if rows == [[rows[0][0]]] else rows
