"""Samples of more rows than are held: the same as literal ones, exact where promised, mergeable."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fragility.cases.sample as sample_module
from fragility.cases.cases import Cases
from fragility.cases.sample import Sample
from fragility.grouping import in_ranges
from tests.reference import sampling


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def population(n, seed=0, *, n_models=2, n_classes=2, **options):
    """Columns of `update` for n rows, by name."""
    rng = np.random.default_rng(seed)
    models = ["a", "b", "c", "d", "e"][:n_models]
    if n_classes > 2:
        z = rng.normal(size=(n, n_classes)) * 2.0
        soft = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = (soft.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        noise = rng.random((n_models, n, n_classes)) + 0.01
        scores = {
            m: soft * e / (soft * e).sum(axis=1)[:, None]
            for m, e in zip(models, noise, strict=True)
        }
    else:
        z = rng.normal(-1.5, 2.0, n)
        y = (rng.random(n) < sigmoid(z)).astype(np.int64)
        scores = {
            m: sigmoid((1 + 0.2 * k) * (z + rng.normal(0, 0.5, n))) for k, m in enumerate(models)
        }
    if options.get("rounded"):
        scores = {m: np.round(p, 1) for m, p in scores.items()}
    if options.get("abstained"):
        for k, p in enumerate(scores.values()):
            p[rng.random(n) < 0.05 + 0.1 * k] = np.nan
    batch = {"y_true": y, "y_proba": scores}
    if options.get("answers"):
        batch["y_true"] = {m: rng.random(n) < np.nan_to_num(p, nan=0.5) for m, p in scores.items()}
    if options.get("weight"):
        batch["sample_weight"] = np.exp(2.0 * rng.normal(size=n))
    if options.get("amount"):
        batch["error_cost"] = np.exp(rng.normal(1.0, 2.0, n)) * (rng.random(n) < 0.9)
    if n_groups := options.get("n_groups"):
        batch["groups"] = {"site": rng.integers(0, n_groups, n), "sex": rng.choice(["f", "m"], n)}
    if n_sites := options.get("sites"):
        batch["groups"] = {"site": rng.integers(0, n_sites, n)}
    if options.get("cluster"):
        batch["cluster"] = rng.integers(0, n // 5, n)
    if options.get("reviews"):
        batch |= {"reviewer_error": rng.random(n), "human": rng.integers(0, n_classes, n)}
    return batch


KINDS = {
    "two models": {},
    "one model": {"n_models": 1},
    "three models": {"n_models": 3},
    "five models": {"n_models": 5},
    "weights": {"weight": True},
    "amounts": {"amount": True},
    "weights and amounts": {"weight": True, "amount": True},
    "groups": {"n_groups": 3},
    "one column of groups": {"n_models": 1, "sites": 2},
    "more groups than fit": {"n_groups": 80, "weight": True},
    "four classes": {"n_classes": 4},
    "eleven scores": {"rounded": True},
    "abstained": {"abstained": True},
    "four classes, abstained": {"n_classes": 4, "abstained": True, "n_groups": 2},
    "answers": {"answers": True},
    "answers, abstained": {"answers": True, "abstained": True, "n_models": 3},
    "clusters": {"cluster": True, "n_groups": 2},
    "reviews": {"reviews": True},
}


def take(batch, rows):
    """Some rows of a batch."""
    return {
        name: take(column, rows) if isinstance(column, dict) else column[rows]
        for name, column in batch.items()
    }


def labels_of(options):
    return range(options["n_classes"]) if "n_classes" in options else None


def filled(batch, n_parts=1, order=None, size=None, **settings):
    """One sample, or samples of parts that are merged in an order."""
    n = len(next(iter(batch["y_proba"].values())))
    parts = [
        Sample(**settings).update(**take(batch, rows))
        for rows in np.array_split(np.arange(n), n_parts)
    ]
    first, *others = [parts[i] for i in (range(n_parts) if order is None else order)]
    for other in others:
        first.merge(other)
    return first


def literal_rows(batch, numbers):
    """The rows as the reference wants them."""

    def plain(value):
        value = value.tolist()
        missing = value[0] != value[0] if isinstance(value, list) else value != value
        return None if missing else value

    y, rows = batch["y_true"], []
    for i, number in enumerate(numbers):
        row = {"number": number, "scores": {m: plain(p[i]) for m, p in batch["y_proba"].items()}}
        row["y"] = {m: bool(v[i]) for m, v in y.items()} if isinstance(y, dict) else int(y[i])
        for ours, theirs in (("sample_weight", "weight"), ("error_cost", "amount")):
            if ours in batch:
                row[theirs] = float(batch[ours][i])
        if "groups" in batch:
            row["groups"] = {c: v[i] for c, v in batch["groups"].items()}
        if "cluster" in batch:
            row["cluster"] = batch["cluster"][i]
        rows.append(row)
    return rows


class TestRows:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("n", "max_rows"), [(700, 64), (700, 401), (2100, 2000), (3000, 500)])
    @pytest.mark.parametrize("n_parts", [1, 5])
    def test_same_rows_and_counts_as_literal_selection(
        self, kind, n, max_rows, n_parts, monkeypatch
    ):
        options = KINDS[kind]
        batch = population(n, seed=max_rows, **options)
        numbers = np.random.default_rng(7).random(n)
        if "cluster" in batch:
            numbers = numbers[batch["cluster"]]
        batches = iter(np.array_split(numbers, n_parts))
        for name in ("row_numbers", "cluster_numbers"):
            monkeypatch.setattr(sample_module, name, lambda *_: next(batches))
        sample = filled(batch, n_parts, labels=labels_of(options), max_rows=max_rows)
        monkeypatch.undo()
        expected = sampling.draw(
            literal_rows(batch, numbers), max_rows, options.get("n_classes", 2)
        )
        cases = sample.cases()
        assert sorted(cases.row) == sorted(expected)
        assert (np.diff(cases.number) >= 0.0).all()
        np.testing.assert_array_equal(cases.number, numbers[cases.row])
        np.testing.assert_allclose(cases.count, [expected[i][1] for i in cases.row], rtol=1e-12)
        assert set(cases.strata) == set(next(iter(expected.values()))[2])
        for column, (count, _) in cases.strata.items():
            reference = [expected[i][2][column] for i in cases.row]
            np.testing.assert_allclose(count, reference, rtol=1e-12)

    def test_columns_are_those_of_the_rows(self):
        batch = population(900, n_groups=3, weight=True, amount=True, reviews=True)
        cases = Sample(max_rows=300).update(**batch).cases()
        expected = take(batch, cases.row)
        np.testing.assert_array_equal(cases.y, expected["y_true"])
        np.testing.assert_array_equal(cases.scores["b"], expected["y_proba"]["b"])
        np.testing.assert_array_equal(cases.weight, expected["sample_weight"])
        for name in ("error_cost", "reviewer_error", "human"):
            np.testing.assert_array_equal(getattr(cases, name), expected[name])
        names = np.array(cases.group_names["site"])[cases.groups["site"]]
        np.testing.assert_array_equal(names.astype(int), expected["groups"]["site"])

    def test_up_to_max_rows_all_are_there_in_their_order(self):
        batch = population(300, weight=True)
        cases = filled(batch, 3, max_rows=300).cases()
        assert cases.count is cases.cell is cases.number is cases.plain is None
        assert cases.strata == {}
        np.testing.assert_array_equal(cases.row, np.arange(300))
        np.testing.assert_array_equal(cases.scores["a"], batch["y_proba"]["a"])

    def test_none_holds_all_rows(self):
        sample = Sample(max_rows=None).update(**population(2000))
        assert sample.cases().n == sample.n_held == sample.n_rows == 2000

    @pytest.mark.parametrize("kind", KINDS)
    def test_plain_rows_are_those_of_lowest_number(self, kind):
        options = KINDS[kind]
        batch = population(3000, **options)
        cases = Sample(labels_of(options), max_rows=512).update(**batch).cases()
        n_plain = int(cases.plain.sum())
        assert cases.plain[:n_plain].all()
        if "cluster" in batch:  # the cluster of the row that no longer fits is left out whole
            assert 128 - 30 < n_plain <= 128
        else:
            assert n_plain == 128  # half of the room, which is half of max_rows

    @pytest.mark.parametrize("kind", [*KINDS, "a hundred classes"])
    def test_no_more_rows_than_max_rows(self, kind):
        options = KINDS.get(kind, {"n_classes": 100, "n_models": 3, "weight": True})
        batch = population(2000, **options)
        sample = Sample(labels_of(options), max_rows=128)
        for rows in np.array_split(np.arange(2000), 13):
            sample.update(**take(batch, rows))
            assert sample.n_held <= 128
        assert sample.n_rows == 2000

    def test_clusters_are_whole_or_absent(self):
        batch = population(3000, cluster=True)
        batch["cluster"] = np.array([f"patient {c}" for c in batch["cluster"]])
        cases = filled(batch, 5, max_rows=512).cases()
        names = batch["cluster"][cases.row]
        for name in np.unique(names):
            assert (names == name).sum() == (batch["cluster"] == name).sum()
        for code in np.unique(cases.cluster):
            assert len(set(names[cases.cluster == code])) == 1
        assert len(set(names)) == cases.cluster.max() + 1

    def test_rows_of_weight_zero_are_read_and_not_held(self):
        weight = np.array([1.0, 0.0, 2.0])
        sample = Sample().update([0, 1, 1], {"a": [0.1, 0.2, 0.3]}, sample_weight=weight)
        assert sample.n_rows == 3
        assert sample.cases().row.tolist() == [0, 2]

    def test_equal_single_rows_draw_different_numbers(self):
        sample = Sample(max_rows=64)
        for _ in range(200):
            sample.update([1], {"a": [0.7]})
        numbers = sample.cases().number
        assert np.unique(numbers).size == numbers.size

    def test_arrays_may_be_filled_again_after_an_update(self):
        y, p = np.array([0, 1, 1]), np.array([0.1, 0.8, 0.3])
        sample = Sample().update(y, {"a": p})
        y[:], p[:] = 0, 0.5
        cases = sample.cases()
        assert cases.y.tolist() == [0, 1, 1]
        assert cases.scores["a"].tolist() == [0.1, 0.8, 0.3]

    @pytest.mark.parametrize(
        ("n_models", "n_classes", "n_rows"),
        [(1, 2, 1 << 21), (2, 2, 1 << 20), (3, 2, 1 << 19), (2, 4, 1 << 18), (20, 10, 1 << 17)],
    )
    def test_default_size_holds_about_two_million_scores(self, n_models, n_classes, n_rows):
        p = np.full((2, n_classes), 1.0 / n_classes)
        sample = Sample(range(n_classes)).update([0, 1], {f"m{k}": p for k in range(n_models)})
        assert sample.capacity == n_rows


class TestMerge:
    @pytest.mark.parametrize("kind", KINDS)
    def test_any_order_gives_the_same_rows_and_counts(self, kind):
        options = KINDS[kind]
        batch = population(3000, **options)
        settings = {"labels": labels_of(options), "max_rows": 400}
        first = filled(batch, 8, **settings).cases()
        by_row = np.lexsort(
            (*first.scores.values(),) if "n_classes" not in options else (first.number,)
        )
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(8)
            again = filled(batch, 8, order, **settings).cases()
            np.testing.assert_array_equal(first.number, again.number)
            rows = np.lexsort(
                (*again.scores.values(),) if "n_classes" not in options else (again.number,)
            )
            for name, p in first.scores.items():
                np.testing.assert_array_equal(p[by_row], again.scores[name][rows])
            np.testing.assert_allclose(first.count[by_row], again.count[rows], rtol=1e-12)
            for column, codes in first.groups.items():
                np.testing.assert_array_equal(codes[by_row], again.groups[column][rows])
                assert first.group_names[column] == again.group_names[column]

    def test_merging_in_two_steps_gives_the_same_rows(self):
        batch = population(4000, weight=True, n_groups=3)
        parts = [take(batch, rows) for rows in np.array_split(np.arange(4000), 4)]
        a, b, c, d = (Sample(max_rows=300).update(**part) for part in parts)
        together = a.merge(b).merge(c.merge(d)).cases()
        expected = filled(batch, 4, max_rows=300).cases()
        np.testing.assert_array_equal(together.number, expected.number)
        np.testing.assert_allclose(together.count, expected.count, rtol=1e-12)
        np.testing.assert_array_equal(together.row, expected.row)

    def test_rows_of_the_other_sample_are_shifted(self):
        one = Sample().update([0, 1], {"a": [0.1, 0.8]})
        other = Sample().update([1, 1, 0], {"a": [0.7, 0.4, 0.2]})
        assert one.merge(other).cases().row.tolist() == [0, 1, 2, 3, 4]
        assert one.n_rows == 5
        assert other.cases().row.tolist() == [0, 1, 2]

    def test_an_empty_sample_changes_nothing_and_takes_all(self):
        batch = population(50, n_groups=2)
        sample = Sample().update(**batch).merge(Sample())
        taken = Sample().merge(sample)
        assert sample.n_rows == taken.n_rows == 50
        np.testing.assert_array_equal(taken.cases().scores["a"], batch["y_proba"]["a"])

    def test_groups_are_known_by_name(self):
        one = Sample().update([0, 1], {"a": [0.1, 0.8]}, groups={"site": [10, 9]})
        one.update([1, 0], {"a": [0.6, 0.3]}, groups={"site": [2, 10]})
        other = Sample().update([1], {"a": [0.7]}, groups={"site": ["2"]})
        cases = one.merge(other).cases()
        assert cases.group_names == {"site": ("2", "9", "10")}
        assert cases.groups["site"].tolist() == [2, 1, 0, 2, 0]
        np.testing.assert_array_equal(one.totals("site", "2").errors["a"], [0, 0])
        np.testing.assert_array_equal(one.totals("site", "2").answered["a"], [2, 2])

    def test_ranges_keep_their_order(self):
        ages = in_ranges([70, 30], [40, 60])
        sample = Sample().update([0, 1], {"a": [0.1, 0.8]}, groups={"age": ages})
        cases = sample.cases()
        assert cases.group_names["age"] == ("under 40", "40 to under 60", "60 and over")
        assert cases.groups["age"].tolist() == [2, 0]

    def test_a_class_may_come_late(self):
        sample = Sample(["no", "maybe", "yes"])
        sample.update(["no", "no"], {"a": [[0.5, 0.3, 0.2], [0.8, 0.1, 0.1]]})
        sample.update(["yes", "maybe"], {"a": [[0.5, 0.3, 0.2], [0.8, 0.1, 0.1]]})
        cases = sample.cases()
        assert cases.labels == ("no", "maybe", "yes")
        assert cases.y.tolist() == [0, 0, 2, 1]
        late = Sample().update([False], {"a": [0.2]}).update([1.0], {"a": [[0.4, 0.6]]})
        assert late.cases().y.tolist() == [0, 1]
        assert late.cases().scores["a"].tolist() == [0.2, 0.6]


class TestTotals:
    @pytest.mark.parametrize(
        "kind", [k for k in KINDS if k not in ("five models", "one column of groups")]
    )
    @pytest.mark.parametrize("max_rows", [128, 5000])
    def test_exact_sums_whatever_is_held(self, kind, max_rows):
        options = KINDS[kind]
        batch = population(
            2000, n_groups=3, **{k: v for k, v in options.items() if k != "n_groups"}
        )
        sample = filled(batch, 3, labels=labels_of(options), max_rows=max_rows, confident_above=0.8)
        weight = batch.get("sample_weight", np.ones(2000))
        for column, group in ((None, None), ("site", "1"), ("sex", "f")):
            inside = np.ones(2000, bool)
            if column:
                inside = batch["groups"][column].astype(str) == group
            totals = sample.totals(column, group)

            def sums(rows, inside=inside):
                rows = rows & inside
                return [rows.sum(), weight[rows].sum()]

            for name, p in batch["y_proba"].items():
                y, answered = batch["y_true"], ~np.isnan(p if p.ndim == 1 else p[:, 0])
                if isinstance(y, dict):
                    wrong, confidence = ~y[name], p
                elif p.ndim == 2:
                    wrong, confidence = np.nan_to_num(p).argmax(axis=1) != y, p.max(axis=1)
                else:
                    wrong, confidence = (p > 0.5) != (y == 1), np.maximum(p, 1 - p)
                wrong = wrong & answered
                np.testing.assert_allclose(totals.answered[name], sums(answered), rtol=1e-12)
                np.testing.assert_allclose(totals.errors[name], sums(wrong), rtol=1e-12)
                confident = sums(wrong & (confidence > 0.8))
                np.testing.assert_allclose(totals.confident_errors[name], confident, rtol=1e-12)
            y = np.zeros(2000) if isinstance(batch["y_true"], dict) else batch["y_true"]
            by_class = [sums(y == k) for k in range(len(totals.classes))]
            np.testing.assert_allclose(totals.classes, by_class, rtol=1e-12)

    @pytest.mark.parametrize("kind", ["two models", "weights", "four classes", "groups"])
    def test_masses_of_classes_errors_and_groups_are_exact(self, kind):
        options = KINDS[kind]
        batch = population(20000, **options)
        cases = filled(batch, 4, labels=labels_of(options), max_rows=4096).cases()
        weight = batch.get("sample_weight", np.ones(20000))
        np.testing.assert_allclose(
            np.bincount(cases.y, cases.mass), np.bincount(batch["y_true"], weight), rtol=1e-12
        )
        if kind != "four classes":
            wrong = (batch["y_proba"]["b"] > 0.5) != batch["y_true"]
            held = (cases.scores["b"] > 0.5) != cases.y
            np.testing.assert_allclose(cases.mass @ held, weight @ wrong, rtol=1e-12)
        assert set(cases.strata) == set(cases.groups)
        for column, names in cases.group_names.items():
            for code, name in enumerate(names):
                group = cases.group(column, code)
                rows = batch["groups"][column].astype(str) == name
                np.testing.assert_allclose(group.mass.sum(), rows.sum(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two models", "weights", "groups", "three models", "clusters"])
def test_means_are_unbiased_and_their_errors_honest(kind):
    """A mean that is smooth in the scores, one that jumps, and a difference of two models."""
    batch = population(6000, seed=3, **KINDS[kind])
    everything = Sample(max_rows=None).update(**batch).cases()

    def means(cases):
        losses = {}
        for name in ("a", "b"):
            p, y = cases.scores[name], cases.y
            losses[name] = -np.log(np.where(y == 1, p, 1.0 - p))
            yield losses[name]
            yield np.where(p < 0.03, 20.0 * y, np.where(p >= 0.75, 4.0 * (1 - y), 1.0))
        yield losses["a"] - losses["b"]

    def estimates(cases):
        for values in means(cases):
            value = cases.mass @ values / cases.mass.sum()
            influence = (values - value) / cases.mass.sum()
            yield value, cases.spread(influence).error

    truth = np.array(list(estimates(everything)))
    draws = np.array(
        [
            list(estimates(filled(batch, 2, max_rows=1024, random_state=seed).cases()))
            for seed in range(1000, 1200)
        ]
    )
    errors = (draws[:, :, 0] - truth[:, 0]) / truth[:, 1]
    simulation_error = errors.std(axis=0, ddof=1) / np.sqrt(200)
    # Two rows of a cell whose weights differ by a factor of four are a biased ratio.
    bias = 0.05 if kind == "weights" else 0.0
    assert (np.abs(errors.mean(axis=0)) <= 3.0 * simulation_error + bias).all()
    # The data are a sample themselves: both errors add up.
    reported = ((draws[:, :, 1] / truth[:, 1]) ** 2).mean(axis=0)
    ratio = reported / (1.0 + errors.var(axis=0, ddof=1))
    assert ((ratio > 0.7) & (ratio < 1.4)).all(), ratio


P = {"a": [0.1, 0.9], "b": [0.2, 0.6]}


class TestRefusals:
    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            ({"y_proba": {"a": [0.1, 0.9]}}, "The batch has the models 'a', but .* 'a', 'b'"),
            ({"y_proba": {"a": [0.1, 0.9], "c": [0.2, 0.6]}}, "models 'a', 'c', but"),
            ({"sample_weight": [1.0, 2.0]}, "'sample_weight'.*give all rows the same columns"),
            ({"groups": {"sex": ["f", "m"]}}, "'groups sex'"),
            ({"groups": {}}, "groups is empty"),
            ({"cluster": [1, 2]}, "'cluster'"),
            ({"error_cost": [1.0, 2.0]}, "'error_cost'"),
            ({"human": [0, 1]}, "'human'"),
            ({"human": [0, 2], "groups": {"site": [1, 2]}}, "human must hold one of the classes"),
            ({"reviewer_error": [0.5, 1.5]}, "reviewer_error holds a number above 1"),
            ({"error_cost": [1.0, -2.0]}, "error_cost must hold finite numbers"),
            ({"y_true": [0, 2]}, "y_true has classes that labels does not name: 2"),
            ({"y_true": ["no", "yes"]}, "y_true has classes that labels does not name"),
            ({"y_true": {"a": [True, False], "b": [True, True]}}, "'answers'"),
            ({"y_proba": {"a": [0.1, 1.2], "b": [0.2, 0.6]}}, "Model 'a': .* 1.2"),
            ({"y_proba": {"a": [0.1], "b": [0.2, 0.6]}}, "Model 'a'"),
            ({"y_proba": {"a": np.full((2, 3), 1 / 3), "b": [0.2, 0.6]}}, "3 columns"),
        ],
    )
    def test_batches_that_do_not_fit(self, batch, message):
        groups = {"site": ["x", "y"]}
        sample = Sample().update([0, 1], P, groups=groups)
        whole = {"y_true": [0, 1], "y_proba": P, "groups": groups} | batch
        with pytest.raises(ValueError, match=message):
            sample.update(**whole)
        assert sample.n_rows == sample.cases().n == 2
        assert sample.cases().group_names == {"site": ("x", "y")}

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"labels": [1, 0]}, "labels"),
            ({"models": ["b", "a"]}, "models"),
            ({"random_state": 1}, "random_state=1"),
            ({"max_rows": 100}, "max_rows=100"),
            ({"confident_above": 0.8}, "confident_above=0.8"),
        ],
    )
    def test_samples_of_other_settings(self, settings, message):
        one, other = Sample().update([0, 1], P), Sample(**settings).update([0, 1], P)
        with pytest.raises(ValueError, match=message):
            one.merge(other)
        assert one.n_rows == 2

    def test_samples_of_other_columns(self):
        one = Sample().update([0, 1], P)
        other = Sample().update([0, 1], P, sample_weight=[1, 2])
        with pytest.raises(ValueError, match="The other sample has 'sample_weight', but"):
            one.merge(other)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"labels": range(1001)}, "1,001 classes; at most 1,000"),
            ({"labels": [1]}, "at least two"),
            ({"max_rows": 63}, "64 or more"),
            ({"max_rows": "all"}, '"auto"'),
            ({"random_state": None}, "random_state must be a whole number"),
            ({"confident_above": 2}, "confident_above"),
            ({"models": [1]}, "named by text"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(ValueError, match=message):
            Sample(**settings)

    def test_labels_of_answers_and_empty_samples(self):
        with pytest.raises(ValueError, match="leave labels out"):
            Sample([0, 1]).update({"a": [True]}, {"a": [0.5]})
        with pytest.raises(ValueError, match="has no rows"):
            Sample().update([], {"a": []}).cases()

    def test_clusters_larger_than_the_sample(self):
        sample = Sample(max_rows=64)
        sample.update(np.zeros(300, int), {"a": np.full(300, 0.5)}, cluster=np.arange(300) % 2)
        with pytest.raises(ValueError, match="No cluster fits"):
            sample.cases()


class TestFiles:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("max_rows", [128, 5000])
    def test_round_trip(self, kind, max_rows, tmp_path):
        options = KINDS[kind]
        batch = population(1000, **options)
        settings = {"labels": labels_of(options), "max_rows": max_rows}
        sample = Sample(**settings).update(**take(batch, slice(0, 600)))
        sample.save(tmp_path / "sample.npz")
        loaded = Sample.load(tmp_path / "sample.npz")
        rest = Sample(**settings).update(**take(batch, slice(600, None)))
        expected, cases = sample.merge(rest).cases(), loaded.merge(rest).cases()
        assert loaded.n_rows == 1000
        assert cases.group_names == expected.group_names
        assert cases.labels == expected.labels
        for name in Cases.__dataclass_fields__:
            _assert_equal(getattr(cases, name), getattr(expected, name))
        _assert_equal(vars(loaded.totals()), vars(sample.totals()))

    def test_text_labels_and_ranges(self, tmp_path):
        sample = Sample(["no", "yes"], models=["a"])
        ages = in_ranges([70, 30], [40, 60])
        sample.update(["no", "yes"], {"a": [0.1, 0.8]}, groups={"age": ages})
        sample.save(tmp_path / "sample.npz")
        cases = Sample.load(tmp_path / "sample.npz").cases()
        assert cases.labels == ("no", "yes")
        assert cases.group_names["age"] == ("under 40", "40 to under 60", "60 and over")

    @pytest.fixture
    def content(self, tmp_path):
        """Header and arrays of a file, and a function that writes others and reads them."""
        batch = population(500, weight=True, n_groups=2)
        path = tmp_path / "sample.npz"
        Sample(max_rows=128).update(**batch).save(path)
        with np.load(path) as archive:
            arrays = dict(archive)
        header = json.loads(arrays.pop("header").tobytes())

        def read(header, arrays, write=np.savez):
            text = np.frombuffer(json.dumps(header).encode(), np.uint8)
            write(path, header=text, **arrays)
            return Sample.load(path)

        assert read(header, arrays).n_rows == 500
        return header, arrays, read

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("kind", "policy"),
            ("format", 2),
            ("n_rows", 3),
            ("n_rows", None),
            ("max_rows", 1000),
            ("labels", [0, 1, 2]),
            ("models", ["a"]),
            ("columns", []),
            ("groups", {"site": ["0"], "sex": ["f", "m"]}),
            ("groups", {"site": ["0", "0"], "sex": ["f", "m"]}),
        ],
    )
    def test_forged_headers(self, content, name, value):
        header, arrays, read = content
        with pytest.raises(ValueError, match="is not a fragility sample that this version saved"):
            read(header | {name: value}, arrays)

    @pytest.mark.parametrize(
        ("name", "row", "value"),
        [
            ("y", 0, 2),
            ("y", 0, -1),
            ("scores 1", 3, 1.5),
            ("weight", 2, 0.0),
            ("weight", 2, -1.0),
            ("groups 0", 1, 5),
            ("groups 0", 1, -1),
            ("number", 0, -0.5),
            ("number", 5, 1.0),
            ("number", 5, np.nan),
            ("cell", 0, 1 << 40),
            ("cell", 0, -1),
            ("row", 0, 500),
            ("row", 0, -1),
            ("keys of 1", 0, 1 << 40),
            ("n_rows of 0", 0, 100.0),
            ("n_rows of 1", 0, 1e9),
            ("weight of 1", 0, np.inf),
            ("limit of 0", 0, np.nan),
            ("limit of 0", 0, -1.0),
        ],
    )
    def test_forged_arrays(self, content, name, row, value):
        header, arrays, read = content
        arrays[name] = arrays[name].copy()
        arrays[name][row] = value
        with pytest.raises(ValueError, match="is not a fragility sample that this version saved"):
            read(header, arrays)

    @pytest.mark.parametrize("name", ["y", "scores 0", "weight", "groups 1", "cell", "limit of 2"])
    def test_missing_surplus_and_misshapen_arrays(self, content, name):
        header, arrays, read = content
        others = [
            {k: v for k, v in arrays.items() if k != name},
            arrays | {name: arrays[name][:-1]},
            arrays | {name: arrays[name][:, None]},
            arrays | {name: arrays[name].astype(np.float32)},
            arrays | {name: arrays[name].astype(object)},
            arrays | {"more": np.zeros(3)},
        ]
        for changed in others:
            with pytest.raises(ValueError, match="is not a fragility sample"):
                read(header, changed)

    def test_compressed_files_are_refused(self, content):
        header, arrays, read = content
        with pytest.raises(ValueError, match="it holds compressed arrays"):
            read(header, arrays, np.savez_compressed)

    def test_damaged_bytes_are_refused(self, tmp_path):
        path = tmp_path / "sample.npz"
        Sample(max_rows=64).update(**population(200)).save(path)
        whole = path.read_bytes()
        rng = np.random.default_rng(0)
        damaged = [b"", b"PK", whole[: len(whole) // 2], whole[:-1], whole[100:]]
        for place in rng.integers(0, len(whole), 60):
            damaged.append(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        refused = 0
        for content in damaged:
            path.write_bytes(content)
            try:
                loaded = Sample.load(path)
            except ValueError:
                refused += 1
            else:  # a byte that means nothing, such as one of a date in the archive
                assert loaded.n_rows == 200
        assert refused > 50


def _assert_equal(value, expected):
    if isinstance(expected, dict):
        assert list(value) == list(expected)
        for name, column in expected.items():
            _assert_equal(value[name], column)
    elif isinstance(expected, tuple) and isinstance(expected[0], np.ndarray):
        for column, other in zip(value, expected, strict=True):
            _assert_equal(column, other)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(value, expected)
    else:
        assert value == expected
