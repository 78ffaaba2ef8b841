"""The command that shows what all this is about, on data that come along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .console import say, show_lines, show_models, show_text
from .options import Command, check_ending, force_option

if TYPE_CHECKING:
    from ..report import Report

_STORY = """\
569 tumours, ten measurements each; data that come with scikit-learn. A clinic uses naive Bayes and
could use logistic regression, both judged on tumours they have not seen. A tumour that is missed
costs €40,000, a false alarm €4,000, a look by a doctor €1,000. May one of them decide alone?
"""


@click.command(cls=Command)
@click.option(
    "--output",
    type=click.Path(),
    default="fragility-demo.html",
    show_default=True,
    help="Report to write, .html.",
)
@force_option
def demo(output: str, force: bool) -> None:
    """Two models on embedded data: when may which of them decide alone? Writes the report."""
    from ..report.answer_text import answer_table
    from ..report.verdict_text import verdict_lines
    from ..tables import check_output, write_file

    check_ending(output, ".html")
    check_output(output, force=force)
    say(_STORY)
    made = demo_report()
    show_lines(verdict_lines(made))
    show_text("")
    show_models(*answer_table(made))
    write_file(output, made.to_html())
    say(f"\nWrote {output}: open it in a browser.")


def demo_report() -> Report:
    """What the demo shows."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    from ..report import Report

    X, y = load_breast_cancer(return_X_y=True)
    X, malignant = X[:, :10], y == 0  # the means: the other twenty columns are made of them
    models = {"naive Bayes": GaussianNB(), "logistic": LogisticRegression()}
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    with threadpool_limits(1):  # the data are small: threads would wait for each other
        predictions = {
            name: cross_val_predict(
                make_pipeline(StandardScaler(), model),
                X,
                malignant,
                cv=folds,
                method="predict_proba",
            )[:, 1]
            for name, model in models.items()
        }
    truth = ["malignant" if sick else "benign" for sick in malignant]
    return Report.from_predictions(
        truth,
        predictions,
        pos_label="malignant",
        costs={"error_cost": [[0.0, 4000.0], [40_000.0, 0.0]], "review_cost": 1000.0},
        cases=[f"tumour {place}" for place in range(len(truth))],
        context={"title": "Tumours", "against": "naive Bayes", "currency": "€"},
    )
