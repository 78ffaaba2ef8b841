"""Features at the ends of the floating-point range: a fit that is right, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fragility import (
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    certify,
    fragility_path,
)
from fragility.ambiguity import Wasserstein

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)

FITS = {
    "ERM": lambda X: ERMClassifier().fit(X, y),
    "ERM of hinge losses": lambda X: ERMClassifier("hinge").fit(X, y),
    "Wasserstein": lambda X: SatisficingClassifier(slack=0.1).fit(X, y),
    "KL": lambda X: SatisficingClassifier(ambiguity="kl", slack=0.1).fit(X, y),
    "hinge": lambda X: SatisficingClassifier("hinge", slack=0.1).fit(X, y),
    "labels": lambda X: SatisficingClassifier(
        ambiguity=Wasserstein(1, label_cost=1.0), slack=0.1
    ).fit(X, y),
    "l1": lambda X: SatisficingClassifier(penalty="l1", slack=0.1).fit(X, y),
    "DRO": lambda X: DROClassifier(radius=0.1).fit(X, y),
    "CV": lambda X: SatisficingClassifierCV(cv=2).fit(X, y),
    "path": lambda X: fragility_path(X, y, slacks=[0.1, 0.5]),
}


@pytest.mark.parametrize("fit", FITS)
def test_out_of_range(fit):
    for size in (1e-320, 1e-160, 1e160, 1e300):
        with pytest.raises(ValueError, match=r"largest absolute value of feature 0 is .*e[-+]\d+"):
            FITS[fit](X * size)
    one = X.copy()
    one[:, 1] *= 1e-160
    for samples in (one, sparse.csr_array(one)):
        with pytest.raises(ValueError, match=r"1 of 3 features .* feature 1 is"):
            FITS[fit](samples)


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_one_value_late_in_the_data_is_enough(size):
    rare = np.c_[np.tile(X, (4, 1)), np.zeros(240)]
    rare[200, 3] = size
    with pytest.raises(ValueError, match=r"1 of 4 features .* feature 3 is"):
        ERMClassifier().fit(rare, np.tile(y, 4))
    rare[200, 3] = 1.0
    assert ERMClassifier().fit(rare, np.tile(y, 4)).coef_.shape == (1, 4)


@pytest.mark.parametrize("size", [1e-74, 1e-30, 1e30, 1e74])
def test_within_range_the_unit_does_not_matter(size):
    for ambiguity, power in (("wasserstein", -1.0), ("kl", 0.0)):
        expected = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X, y)
        found = SatisficingClassifier(ambiguity=ambiguity, slack=0.1).fit(X * size, y)
        np.testing.assert_allclose(found.coef_ * size, expected.coef_, rtol=1e-6)
        assert found.fragility_ == pytest.approx(expected.fragility_ * size**power, rel=1e-8)


def test_a_feature_that_is_zero_is_no_problem():
    blank = np.c_[X, np.zeros(60)]
    assert SatisficingClassifier(slack=0.1).fit(blank, y).coef_[0, 3] == 0.0


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e290])
def test_certificates_of_other_models_in_any_unit(norm, size):
    model = LogisticRegression().fit(X, y)
    ambiguity = Wasserstein(norm)
    expected = certify(model, X, y, target=0.6, ambiguity=ambiguity)
    model.coef_ = model.coef_ / size
    found = certify(model, X * size, y, target=0.6, ambiguity=ambiguity)
    assert found.fragility * size == pytest.approx(expected.fragility, rel=1e-12)
    assert found.attained_loss == pytest.approx(expected.attained_loss, rel=1e-12)
