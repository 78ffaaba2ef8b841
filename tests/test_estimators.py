"""The estimators among scikit-learn's: its own checks, and what people do with estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fragility import KL, ERMClassifier, SatisficingClassifier, Wasserstein

inf = float("inf")


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [
        SatisficingClassifier(),
        SatisficingClassifier(ambiguity=Wasserstein(norm=1)),
        SatisficingClassifier(ambiguity=Wasserstein(norm=inf), penalty="l2"),
        SatisficingClassifier(ambiguity=KL()),
        SatisficingClassifier(ambiguity=KL(), penalty="l2"),
        SatisficingClassifier("smoothed_hinge"),
        SatisficingClassifier("smoothed_hinge", "kl", penalty="l2"),
        ERMClassifier(),
        ERMClassifier(penalty=None),
        ERMClassifier("smoothed_hinge"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
