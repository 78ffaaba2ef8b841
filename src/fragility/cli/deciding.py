"""The command that applies a policy to new cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .console import say, show_lines
from .options import Command, force_option, output_option

if TYPE_CHECKING:
    from .._typing import Floats
    from ..deferral import Policy
    from ..tables import Table


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option(
    "--policy",
    "policy_file",
    required=True,
    type=click.Path(),
    metavar="JSON",
    help="Policy that `fragility cost --policy` wrote.",
)
@output_option("File to write: .csv, .csv.gz, .parquet or .arrow.")
@click.option(
    "--reviews",
    type=click.IntRange(min=1),
    metavar="N",
    help="Order the N reviews that are expected to save most: column `review_order`.",
)
@force_option
def decide(file: str, policy_file: str, output: str, reviews: int | None, force: bool) -> None:
    """Decide new cases by a policy: what the model decides alone, what a human reviews, and why.

    Adds the columns decision (a class, or review), suggestion, reason, and expected_saving of a
    review. The file needs the columns of scores that the policy was made with, but no labels; of
    answers those of the confidence and of declined cases, which are passed on.

    \b
    fragility decide new.csv --policy policy.json --output decided.csv --reviews 100
    """  # noqa: D301
    import numpy as np

    from ..deferral.policy_files import load_policy
    from ..tables import check_output, open_table, with_columns, write_table

    policy = load_policy(policy_file)
    if not policy.columns:
        raise ValueError(
            f"The policy {policy_file} does not say which columns hold the scores: make it with "
            "`fragility cost ... --policy`."
        )
    if "review" in map(str, policy.labels):
        raise ValueError(
            f"The policy {policy_file} has a class named 'review': nobody could tell it from a "
            "case for review. Rename the class."
        )
    check_output(output, [file, policy_file], force=force)
    table = open_table(file)
    made = policy.decide(_scores(table, policy))
    names = np.array([str(label) for label in made.label.tolist()], dtype=object)
    if policy.answers:
        names[:] = "answer"
    columns = {
        "decision": np.where(made.automate, names, "review").tolist(),
        "suggestion": names.tolist(),
        "reason": made.reason.tolist(),
        "expected_saving": made.saving.tolist(),
    }
    for row in np.flatnonzero(np.isnan(made.score)).tolist():  # no answer, nothing to weigh
        columns["suggestion"][row] = columns["expected_saving"][row] = None
    waiting = len(made) - int(np.count_nonzero(made.automate))
    if reviews is not None:
        order: list[int | None] = [None] * len(made)
        for rank, row in enumerate(made.review_queue(reviews).tolist(), start=1):
            order[row] = rank
        columns["review_order"] = order
    write_table(with_columns(table.read(), columns), output)
    done = "answered" if policy.answers else "decided"
    alone = len(made) - waiting
    lines = [f"{alone:,} of {len(made):,} cases {done} alone, {waiting:,} for review."]
    if reviews is not None and waiting > reviews:
        lines.append(
            f"{waiting - reviews:,} cases for review are beyond the {reviews:,} in the queue: they "
            "wait, nobody has decided them."
        )
    show_lines(lines, stderr=True)
    say(f"Wrote {output}.")


def _scores(table: Table, policy: Policy) -> Floats:
    """Scores that the policy looks at; of answers NaN where there is none."""
    from ..tables import read_confidences, read_probabilities

    if not policy.answers:
        return read_probabilities(table, policy.columns)
    confidence, *declined = policy.columns
    return read_confidences(table, confidence, declined[0] if declined else None)
