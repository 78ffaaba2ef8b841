"""Drawn data have the distribution that their description names."""

import itertools

import numpy as np
import pytest

from fragility.datasets import flip_labels, make_calibrated_logistic, make_gaussian_clusters


class TestClusters:
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_moments(self, n_classes):
        radius, stretch = 2.0, 1.25
        X, y = make_gaussian_clusters(
            200_000, n_classes, radius=radius, stretch=stretch, random_state=0
        )
        for c in range(n_classes):
            angle = np.pi / 4 + 2 * np.pi * c / n_classes
            cloud = X[y == c]
            centre = radius * np.array([np.cos(angle), np.sin(angle)])
            assert cloud.mean(axis=0) == pytest.approx(centre, abs=0.02)
            long_axis = np.array([np.cos(c * np.pi / 4), np.sin(c * np.pi / 4)])
            covariance = np.cov(cloud.T)
            values, vectors = np.linalg.eigh(covariance)
            assert values == pytest.approx([stretch**-2, stretch**2], rel=0.02)
            assert abs(vectors[:, 1] @ long_axis) == pytest.approx(1.0, abs=1e-3)

    def test_balance(self):
        _, y = make_gaussian_clusters(50, 4, random_state=3)
        assert sorted(np.bincount(y)) == [12, 12, 13, 13]
        assert not np.array_equal(y, np.arange(50) % 4)

    def test_quadratic_columns(self):
        plain, y = make_gaussian_clusters(30, 2, random_state=7)
        X, same = make_gaussian_clusters(30, 2, quadratic=True, random_state=7)
        a, b = plain.T
        assert np.array_equal(X, np.array([a, b, a**2, b**2, a * b]).T)
        assert np.array_equal(y, same)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"n_samples": 0}, "n_samples must be a whole number of 1"),
            ({"n_classes": 1}, "n_classes must be a whole number of 2"),
            ({"stretch": 0}, "stretch must be positive; got 0"),
            ({"radius": -1.0}, "radius must be zero or more; got -1.0"),
            ({"random_state": "x"}, "random_state must be a whole number"),
        ],
    )
    def test_bad_input(self, given, message):
        with pytest.raises(ValueError, match=message):
            make_gaussian_clusters(**given)


class TestLogistic:
    def test_the_labels_have_the_probabilities(self):
        coef = [1, -2, 0.5]
        X, y, p = make_calibrated_logistic(
            100_000, 3, theta=4.0, width=1.5, coef=coef, random_state=1
        )
        assert p == pytest.approx(1 / (1 + np.exp(-4.0 * (X @ coef))), abs=1e-12)
        assert (X.min(), X.max()) == pytest.approx((-0.75, 0.75), abs=1e-3)
        assert X.mean(axis=0) == pytest.approx([0.0] * 3, abs=0.006)
        assert X.std(axis=0) == pytest.approx([1.5 / 12**0.5] * 3, abs=0.005)
        for low in np.arange(0.0, 1.0, 0.1):
            bin_ = (p >= low) & (p < low + 0.1)
            spread = np.sqrt(p[bin_] @ (1 - p[bin_])) / bin_.sum()
            assert y[bin_].mean() == pytest.approx(p[bin_].mean(), abs=4 * spread)

    def test_weights_are_drawn(self):
        first, _, p = make_calibrated_logistic(500, 5, random_state=0)
        second, _, q = make_calibrated_logistic(500, 5, random_state=1)
        logits = np.log(p / (1 - p)) / 5.0, np.log(q / (1 - q)) / 5.0
        found = [
            np.linalg.lstsq(X, logit, rcond=None)[0]
            for X, logit in zip((first, second), logits, strict=True)
        ]
        assert found[0] == pytest.approx(np.random.default_rng(0).standard_normal(5), abs=1e-6)
        assert found[1] == pytest.approx(np.random.default_rng(1).standard_normal(5), abs=1e-6)

    def test_bad_coefficients(self):
        with pytest.raises(
            ValueError, match=r"coef must hold n_features=3 finite numbers; got .*2"
        ):
            make_calibrated_logistic(10, 3, coef=[1.0, 2.0])


class TestFlips:
    def test_rate_and_kind(self):
        y = np.repeat(np.array(["a", "b", "c"]), 20_000)
        flipped = flip_labels(y, 0.3, 0)
        for label in "abc":
            for other in "abc":
                share = np.mean(flipped[y == label] == other)
                assert share == pytest.approx(0.7 if label == other else 0.15, abs=0.012)

    def test_larger_rates_keep_the_flips_of_smaller_ones(self):
        y = np.random.default_rng(0).integers(0, 4, 500)
        noisy = [flip_labels(y, rate, 11) for rate in (0.0, 0.1, 0.2, 1.0)]
        assert np.array_equal(noisy[0], y)
        assert (noisy[3] != y).all()
        for less, more in itertools.pairwise(noisy):
            was = less != y
            assert np.array_equal(less[was], more[was])
        assert 0 < (noisy[1] != y).sum() < (noisy[2] != y).sum()

    def test_the_generator_moves_on_alike_at_every_rate(self):
        first, second = np.random.default_rng(5), np.random.default_rng(5)
        flip_labels([0, 1, 1], 0.0, first)
        flip_labels([0, 1, 1], 0.9, second)
        assert first.random() == second.random()

    def test_classes_that_do_not_occur(self):
        flipped = flip_labels(np.zeros(300, dtype=int), 1.0, 0, classes=[0, 1, 2])
        assert set(flipped.tolist()) == {1, 2}

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"two classes or more; got 1\. Name all classes"):
            flip_labels([1, 1], 0.1)
        with pytest.raises(ValueError, match=r"not in classes: 3"):
            flip_labels([1, 3], 0.1, classes=[1, 2])
        with pytest.raises(ValueError, match=r"rate must lie from 0 to 1, such as 0\.9; got 2"):
            flip_labels([0, 1], 2)
        with pytest.raises(ValueError, match=r"one dimension; got the shape \(1, 2\)"):
            flip_labels([[0, 1]], 0.1)
