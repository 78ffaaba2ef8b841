"""Weights of classes that mean nothing are refused by name, wherever they can be given."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from fragility import (
    DROClassifier,
    ERMClassifier,
    SatisficingClassifier,
    SatisficingClassifierCV,
    certify,
    fragility_path,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)


def fitted_elsewhere(class_weight):
    model = ERMClassifier().fit(X, y)
    return certify(model.set_params(class_weight=class_weight), X, y, target=0.9)


WAYS = {
    "ERM": lambda w: ERMClassifier(class_weight=w).fit(X, y),
    "satisficing": lambda w: SatisficingClassifier(class_weight=w, slack=0.1).fit(X, y),
    "DRO": lambda w: DROClassifier(class_weight=w).fit(X, y),
    "CV": lambda w: SatisficingClassifierCV(class_weight=w, cv=2).fit(X, y),
    "path": lambda w: fragility_path(X, y, class_weight=w),
    "certify": fitted_elsewhere,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1.0, 1: -2.5}, r"class_weight of class 1 must be zero or more; got -2\.5"),
        ({0: nan, 1: 1.0}, r"class_weight of class 0 must be finite; got nan"),
        ({0: 1.0, 1: inf}, r"class_weight of class 1 must be finite; got inf"),
        ({0: -inf, 1: 1.0}, r"class_weight of class 0 must be finite; got -inf"),
        ({0: "a", 1: 1.0}, r"class_weight of class 0 must be a number; got 'a'"),
        ({0: None}, r"class_weight of class 0 must be a number; got None"),
        ({0: 0, 1: 0.0}, r"class_weight is zero for every class \(0: 0, 1: 0\.0\)"),
        ([1.0, -1.0], r"class_weight must be a dictionary .*; got \[1\.0, -1\.0\]"),
        (-1.0, r"class_weight must be a dictionary .*; got -1\.0"),
        ("Balanced", r"class_weight must be a dictionary .*; got 'Balanced'"),
    ],
)
def test_refused_by_name(way, class_weight, message):
    with pytest.raises(ValueError, match=message):
        WAYS[way](class_weight)


@pytest.mark.parametrize("way", [name for name in WAYS if name != "certify"])
def test_a_class_without_weight_cannot_be_learned(way):
    with pytest.raises(ValueError, match=r"these classes have none: 1.*class_weight"):
        WAYS[way]({0: 1.0, 1: 0.0})


def test_products_of_weights_out_of_range():
    with pytest.raises(ValueError, match="class_weight times sample_weight"):
        ERMClassifier(class_weight={0: 1e200, 1: 1.0}).fit(X, y, sample_weight=np.full(40, 1e200))


def test_only_ratios_of_weights_matter():
    expected = ERMClassifier(class_weight={0: 3.0, 1: 1.0}).fit(X, y)
    for scale in (1e-150, 1e-300, 1e150, 3e307):
        found = ERMClassifier(class_weight={0: 3.0 * scale, 1: scale}).fit(X, y)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
