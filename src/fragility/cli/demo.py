"""The command that shows what all this is about, on data that come along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .console import say, show_lines, show_models, show_table, write
from .options import check_ending, force_option

if TYPE_CHECKING:
    from ..report import Report

_STORY = """\
Malignant or benign? 569 tumours, ten measurements each; data that come with scikit-learn. Four
models, each judged by ten-fold cross-validation on tumours it has not seen:
  ordinary       linear, of the lowest loss (as logistic regression)
  robust (KL)    linear, the least fragile of acceptable loss when the mix of cases may shift
  robust (W)     the same when the measurements may shift (Wasserstein)
  boosted trees  as they come, to see what confidence without calibration costs
An error that nobody looks at costs 20, a look by a doctor 1.
"""


@click.command()
@click.option(
    "--output",
    type=click.Path(),
    default="fragility-demo.html",
    show_default=True,
    help="Report to write, .html.",
)
@force_option
def demo(output: str, force: bool) -> None:
    """Train ordinary and robust models on embedded data, compare them, write the report."""
    from ..report.text import about, comparison_rows, table
    from ..tables import check_output, write_file

    check_ending(output, ".html")
    check_output(output, force=force)
    say(_STORY)
    made = demo_report()
    write(about(made) + "\n")
    show_models(*table(made))
    write("")
    show_table(*comparison_rows(made))
    write("")
    show_lines([str(finding) for finding in made.findings])
    write_file(output, made.to_html())
    say(f"\nWrote {output}: open it in a browser.")


def demo_report() -> Report:
    """What the demo shows."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    from ..linear_model import ERMClassifier, SatisficingClassifier
    from ..report import Report

    X, y = load_breast_cancer(return_X_y=True)
    X, malignant = X[:, 10:20], y == 0  # the standard errors: a harder task than all thirty
    models = {
        "ordinary": ERMClassifier(),
        "robust (KL)": SatisficingClassifier(ambiguity="kl"),
        "robust (W)": SatisficingClassifier(),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
    }
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
        costs={"error_cost": 20.0, "review_cost": 1.0},
        cases=[f"tumour {place}" for place in range(len(truth))],
    )
