import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import fragility  # noqa: E402
from fragility.torch import fragility_index  # noqa: E402

from .reference.pairs import exact_index  # noqa: E402


def predictions(seed, n, n_classes, spread=1.0, signal=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    labels[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    logits = spread * rng.normal(size=(n, n_classes))
    logits[np.arange(n), labels] += signal
    probs = np.exp(logits - logits.max(1, keepdims=True))
    return probs / probs.sum(1, keepdims=True), labels


def ours(probs, labels, weights=None, **options):
    weights = None if weights is None else torch.as_tensor(weights)
    result = fragility_index(
        torch.as_tensor(probs), torch.as_tensor(labels), sample_weight=weights, **options
    )
    return result.numpy()


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_equals_numpy(n_classes, multi_class):
    rng = np.random.default_rng(n_classes)
    infinite = zero = 0
    for seed in range(24):
        spread, signal = 10 ** rng.uniform(-3, 1), rng.choice([0.0, 0.1, 1.0, 5.0])
        n = int(rng.integers(2 * n_classes, 300))
        probs, labels = predictions(seed, n, n_classes, spread, signal)
        weights = rng.integers(0, 3, labels.size) if seed % 2 else None
        if weights is not None:
            weights[:n_classes] = 1
        options = {"target": [0.0, 0.1, -0.05][seed % 3], "multi_class": multi_class}
        for average in ("macro", None):
            theirs = fragility.fragility_index(
                labels, probs, sample_weight=weights, average=average, **options
            )
            result = ours(probs, labels, weights, average=average, **options)
            np.testing.assert_allclose(result, theirs, rtol=1e-12)
        infinite += np.isinf(theirs).sum()
        zero += (theirs == 0.0).sum()
    assert infinite > 10
    assert zero > 2


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=5),
    st.lists(st.integers(0, 20), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.25, -0.1]),
)
def test_equals_the_definition_in_fifty_digits(negatives, positives, target):
    """Scores on a grid: ties, index 0 and infinity, one sample in a class."""
    negatives, positives = np.array(negatives) / 20, np.array(positives) / 20
    probs = np.concatenate([negatives, positives])
    labels = np.repeat([0, 1], [negatives.size, positives.size])
    slack = target - (negatives.mean() - positives.mean())
    if 0 < abs(slack) < 1e-12:
        return  # the mean error is the target but for rounding
    expected = fragility.fragility_index(labels, probs, target=target)
    result = ours(probs, labels, target=target)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    if 0 < expected < np.inf:
        literal = exact_index(negatives, positives, target)
        np.testing.assert_allclose(result, literal, rtol=1e-12)


@pytest.mark.parametrize("slack", [1e-3, 1e-6, 1e-9])
def test_large_index(slack):
    """The mean error all but meets the target: terms cancel, FI/range up to 1e8."""
    rng = np.random.default_rng(0)
    negatives = rng.uniform(0, 1, 8)
    positives = rng.permutation(negatives)
    positives[0] += 8 * slack
    positives = np.clip(positives, 0, 1)
    probs, labels = np.r_[negatives, positives], np.repeat([0, 1], 8)
    literal = exact_index(negatives, positives)
    np.testing.assert_allclose(ours(probs, labels), literal, rtol=5e-18 / slack + 1e-13)


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-8])
def test_small_index(gap):
    rng = np.random.default_rng(1)
    negatives, positives = rng.uniform(0, 0.5, 12), rng.uniform(0.5, 1, 12)
    negatives[0], positives[0] = 0.5 + gap, 0.5
    probs, labels = np.r_[negatives, positives], np.repeat([0, 1], 12)
    literal = exact_index(negatives, positives)
    np.testing.assert_allclose(ours(probs, labels), literal, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_differ_in_their_last_bits(n_classes):
    """Exact in floating point, so that the mean error is known far below their magnitude."""
    unit = 2.0**-53
    labels = np.array([1, 0, 1, 1, 0, 1])
    steps = np.array([4.0, 1.0, 4.0, 4.0, 4.0, 1.0])
    probs = 0.5 + unit * steps
    literal = exact_index(steps[labels == 0], steps[labels == 1])
    assert literal == pytest.approx(2.730717679880512, rel=1e-14)
    if n_classes == 3:
        probs = np.stack([np.full(6, 0.25), probs, 0.75 - probs], 1)
        with pytest.warns(fragility.AbsentClassWarning):
            found = ours(probs, labels, average=None)[1, 0]
    else:
        found = ours(probs, labels)
    assert found / unit == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("centre", [0.0, 0.7])
def test_a_mean_error_of_the_target_is_infinite(n_classes, centre):
    """The same scores in every class, in another order: rounding decides nothing."""
    rng = np.random.default_rng(5)
    for n in (3, 1000, 70_001):
        scores = centre + rng.uniform(0.0, 0.3, n)
        probs = np.concatenate([rng.permutation(scores) for _ in range(n_classes)])
        labels = np.repeat(np.arange(n_classes), n)
        if n_classes == 3:
            probs = np.stack([probs] * 3, 1)
        assert ours(probs, labels) == np.inf


def test_more_classes_than_a_byte_holds():
    probs, labels = predictions(12, 1500, 300, spread=2.0, signal=3.0)
    theirs = fragility.fragility_index(labels, probs, multi_class="ovr", average=None)
    result = ours(probs, labels, multi_class="ovr", average=None)
    np.testing.assert_allclose(result, theirs, rtol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_classes_of_very_different_size(multi_class):
    probs, _ = predictions(13, 6000, 3)
    labels = np.zeros(6000, dtype=int)
    labels[[7, 4000, 5999]], labels[12] = 1, 2
    theirs = fragility.fragility_index(labels, probs, multi_class=multi_class, average=None)
    result = ours(probs, labels, multi_class=multi_class, average=None)
    np.testing.assert_allclose(result, theirs, rtol=1e-12)


def test_many_samples_take_a_pilot():
    probs, labels = predictions(5, 120_000, 3, spread=2.0)
    theirs = fragility.fragility_index(labels, probs)
    np.testing.assert_allclose(ours(probs, labels), theirs, rtol=1e-12)


def test_a_pilot_that_misses_the_risk():
    """The one dangerous sample is not among those that the first look takes."""
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1, 2], 40_000)
    probs = rng.uniform(0.0, 0.2, (labels.size, 3))
    probs[np.arange(labels.size), labels] += 0.6
    probs[12_345] = [0.02, 0.95, 0.03]
    probs /= probs.sum(1, keepdims=True)
    theirs = fragility.fragility_index(labels, probs)
    np.testing.assert_allclose(ours(probs, labels), theirs, rtol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_samples_of_very_different_weight(n_classes, multi_class):
    """Weights 0 and from 1e-6 to 1e6, steep worst cases: values, and gradients without NaN."""
    rng = np.random.default_rng(n_classes)
    steep = 0
    for seed in range(120):
        n = int(rng.integers(2 * n_classes, 14))
        spread, signal = 10 ** rng.uniform(-2, 1.5), rng.choice([0.0, 1.0, 3.0])
        probs, labels = predictions(seed, n, n_classes, spread, signal)
        weights = rng.integers(0, 2, n) * 10.0 ** rng.integers(-6, 6, n)
        weights[:n_classes] = np.maximum(weights[:n_classes], 1e-3)
        given = torch.tensor(probs, requires_grad=True)
        value = fragility_index(
            given,
            torch.as_tensor(labels),
            sample_weight=torch.as_tensor(weights),
            multi_class=multi_class,
        )
        value.backward()
        theirs = fragility.fragility_index(
            labels, probs, sample_weight=weights, multi_class=multi_class
        )
        np.testing.assert_allclose(value.item(), theirs, rtol=1e-12)
        assert given.grad.isfinite().all()
        assert not given.grad[torch.as_tensor(weights) == 0].any()
        steep += 0 < theirs < 1e-2
    assert steep > 5


@pytest.mark.parametrize(("light", "gap"), [(1e-12, 2e-15), (1e-8, 1e-13), (1e-10, 1e-13)])
def test_almost_all_weight_on_the_largest_score(light, gap):
    """The root is next to the end of its bracket, which must be exact then."""
    probs, labels = np.array([0.5, 0.0, 0.5 - gap]), np.array([0, 0, 1])
    weights = np.array([1.0, light, 1.0])
    theirs = fragility.fragility_index(labels, probs, sample_weight=weights)
    np.testing.assert_allclose(ours(probs, labels, weights), theirs, rtol=1e-12)
    table = np.column_stack([1.0 - probs, probs, np.zeros(3)])
    table, labels = np.vstack([table, [0.0, 0.0, 1.0]]), np.append(labels, 2)
    weights = np.append(weights, 1.0)
    options = {"sample_weight": weights, "average": None}
    theirs = fragility.fragility_index(labels, table, **options)
    np.testing.assert_allclose(ours(table, labels, weights, average=None), theirs, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_classes_far_apart(n_classes):
    probs, labels = predictions(3, 30, n_classes)
    weights = 10.0 ** np.array([-300, 300, 0])[labels] * np.linspace(1, 2, 30)
    theirs = fragility.fragility_index(labels, probs, sample_weight=weights)
    np.testing.assert_allclose(ours(probs, labels, weights), theirs, rtol=1e-12)


def test_weights_too_far_apart_within_a_group():
    probs, labels = predictions(3, 30, 3)
    weights = 10.0 ** np.array([-300, 300, 0])[labels]
    with pytest.raises(ValueError, match="floating point cannot hold"):
        ours(probs, labels, weights, multi_class="ovr")


def test_tiny_scores():
    probs, labels = predictions(4, 30, 3)
    for scale in (1e-150, 1e-200):
        theirs = fragility.fragility_index(labels, probs) * scale
        result = ours(probs * scale, labels)
        np.testing.assert_allclose(result, theirs, rtol=1e-10)


def test_labels_changed_before_backward_are_noticed():
    probs = torch.tensor([0.6, 0.9, 0.2, 0.7], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([1, 1, 0, 0])
    value = fragility_index(probs, labels)
    labels[0] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_shapes_and_dtypes():
    probs, labels = predictions(6, 80, 2)
    one = torch.as_tensor(probs[:, 1])
    values = [
        fragility_index(p, y)
        for p in (one, one[:, None], torch.as_tensor(probs))
        for y in (torch.as_tensor(labels), torch.as_tensor(labels).bool())
    ]
    assert len({value.item() for value in values}) == 1
    single = one.float()
    value = fragility_index(single, torch.as_tensor(labels))
    assert value.dtype == torch.float64
    theirs = fragility.fragility_index(labels, single.double().numpy())
    np.testing.assert_allclose(value.item(), theirs, rtol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradcheck(n_classes, multi_class, weighted):
    probs, labels = predictions(7, 14, max(n_classes, 2), signal=0.5 * max(n_classes, 2))
    probs = torch.as_tensor(probs[:, 1] if n_classes == 1 else probs).requires_grad_()
    labels = torch.as_tensor(labels)
    weights = None
    if weighted:
        weights = torch.rand(14, generator=torch.Generator().manual_seed(0))
        weights[-2:] = 0.0

    def index(p):
        return fragility_index(
            p, labels, multi_class=multi_class, target=0.02, sample_weight=weights
        )

    assert 0 < index(probs) < torch.inf
    assert torch.autograd.gradcheck(index, (probs,), eps=1e-7, atol=1e-6, rtol=1e-5)


def test_gradient_of_each_pair():
    probs, labels = predictions(8, 18, 3, signal=1.5)
    probs, labels = torch.as_tensor(probs).requires_grad_(), torch.as_tensor(labels)
    off = ~torch.eye(3, dtype=torch.bool)

    def pairs(p):
        return fragility_index(p, labels, average=None)[off]

    assert torch.autograd.gradcheck(pairs, (probs,), eps=1e-7, atol=1e-6, rtol=1e-5)


def test_gradient_is_the_worst_case_over_the_shift():
    probs, labels = predictions(9, 200, 2)
    measured = fragility.measure_fragility(labels, probs[:, 1])
    leaf = torch.as_tensor(probs[:, 1]).requires_grad_()
    fragility_index(leaf, torch.as_tensor(labels)).backward()
    expected = np.where(labels == 0, 1, -1) * measured.worst_case_weights / measured.shift
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-9, atol=1e-15)
    single = torch.as_tensor(probs[:, 1]).float().requires_grad_()
    fragility_index(single, torch.as_tensor(labels)).backward()
    assert single.grad.dtype == torch.float32
    np.testing.assert_allclose(single.grad.numpy(), expected, rtol=1e-3, atol=1e-6)


def test_gradient_is_zero_where_the_index_is_zero_or_infinite():
    labels = torch.tensor([0, 0, 1, 1])
    for values in ([0.1, 0.2, 0.8, 0.9], [0.8, 0.9, 0.1, 0.2], [0.5] * 4):
        leaf = torch.tensor(values, requires_grad=True)
        fragility_index(leaf, labels).backward()
        assert not leaf.grad.any()


def test_gradient_of_an_infinite_mean_is_that_of_the_finite_pairs():
    probs, labels = predictions(10, 60, 3, signal=2.0)
    probs[labels == 2] = [0.98, 0.01, 0.01]  # taken for class 0, more surely than class 0 itself
    leaf, labels = torch.as_tensor(probs).requires_grad_(), torch.as_tensor(labels)
    value = fragility_index(leaf, labels)
    assert value == torch.inf
    (gradient,) = torch.autograd.grad(value, leaf)
    assert gradient.isfinite().all()
    pairs = fragility_index(leaf, labels, average=None)
    finite = pairs[torch.isfinite(pairs)].sum() / 6
    (expected,) = torch.autograd.grad(finite, leaf)
    assert expected.any()
    torch.testing.assert_close(gradient, expected)


def test_absent_classes_are_named_and_left_out():
    probs, labels = predictions(11, 60, 4)
    kept = labels != 2
    probs, labels = probs[kept], labels[kept]
    with pytest.warns(fragility.AbsentClassWarning, match="2"):
        pairs = ours(probs, labels, average=None)
    assert np.isnan(pairs[2]).all()
    assert np.isnan(pairs[:, 2]).all()
    leaf = torch.as_tensor(probs).requires_grad_()
    for multi_class in ("ovo", "ovr"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fragility.AbsentClassWarning)
            theirs = fragility.fragility_index(
                labels, probs, labels=range(4), multi_class=multi_class
            )
            value = fragility_index(leaf, torch.as_tensor(labels), multi_class=multi_class)
        np.testing.assert_allclose(value.item(), theirs, rtol=1e-12)
        (gradient,) = torch.autograd.grad(value, leaf)
        assert gradient.isfinite().all()
        assert gradient[:, 0].any()
        assert not gradient[:, 2].any()


PROBS, LABELS = torch.tensor([0.2, 0.7, 0.6]), torch.tensor([0, 0, 1])


@pytest.mark.parametrize(
    ("probs", "labels", "options", "message"),
    [
        ([0.2, 0.7, 0.6], LABELS, {}, "probs must be a tensor of floating point.*got list"),
        (LABELS, LABELS, {}, "probs must be a tensor of floating point.*got torch.int64"),
        (10 * PROBS, LABELS, {}, "from 0 to 1, but goes from 2 to 7. Put logits through softmax"),
        (PROBS * torch.nan, LABELS, {}, "holds NaN"),
        (PROBS.reshape(3, 1, 1), LABELS, {}, r"got \(3, 1, 1\)"),
        (PROBS[:0], LABELS[:0], {}, "probs is empty"),
        (PROBS, LABELS.double(), {}, "y_true must be a tensor of integers.*got torch.float64"),
        (PROBS, LABELS[:2], {}, r"the shape \(3,\); got \(2,\)"),
        (PROBS, LABELS + 1, {}, "y_true must go from 0 to 1.*got classes from 1 to 2"),
        (PROBS, LABELS * 0, {}, "Only one class has samples"),
        (PROBS, LABELS, {"target": "low"}, "target must be a number; got 'low'"),
        (PROBS, LABELS, {"target": 10**400}, "target must be a number that floating point holds"),
        (PROBS, LABELS, {"sample_weight": PROBS * 1j}, "real numbers; got torch.complex64"),
        (PROBS, LABELS, {"multi_class": "all"}, "multi_class must be one of"),
        (PROBS, LABELS, {"average": "micro"}, "average must be one of"),
        (PROBS, LABELS, {"sample_weight": PROBS[:2]}, r"shape \(3,\); got Tensor of shape \(2,\)"),
        (PROBS, LABELS, {"sample_weight": PROBS - 0.5}, "not negative; got numbers from -0.3"),
        (PROBS, LABELS, {"sample_weight": PROBS * 0}, "No class has samples"),
    ],
)
def test_bad_input(probs, labels, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fragility_index(probs, labels, **options)
