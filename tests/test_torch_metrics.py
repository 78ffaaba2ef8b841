"""The torchmetrics classes against the index of the library."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from fragility import AbsentClassWarning, fragility_index, measure_fragility  # noqa: E402
from fragility.torch import BinaryFragilityIndex, MulticlassFragilityIndex  # noqa: E402

from .reference import pairs  # noqa: E402


def drawn(n_classes, n=400, seed=0, dtype=torch.float64):
    """Probabilities, some of them tied or saturated, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes)) + 2.0 * np.eye(n_classes)[labels]
    probs = torch.softmax(torch.from_numpy(logits), 1)
    probs[:20] = torch.round(probs[:20] * 8192) / 8192
    probs[20:25] = torch.eye(n_classes, dtype=torch.float64)[labels[20:25]]
    return probs.to(dtype), torch.from_numpy(labels)


def metric_of(n_classes, **settings):
    if n_classes == 2:
        return BinaryFragilityIndex(**settings)
    return MulticlassFragilityIndex(n_classes, **settings)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovo"), (4, "ovo"), (4, "ovr")])
def test_measured_is_the_result_of_the_samples(n_classes, multi_class, dtype):
    probs, labels = drawn(n_classes, dtype=dtype)
    metric = MulticlassFragilityIndex(n_classes, multi_class=multi_class)
    for part in (slice(0, 7), slice(7, 250), slice(250, 400), slice(0, 0)):
        metric.update(probs[part], labels[part])
    scores = probs.double().numpy()
    scores = scores[:, 1] if n_classes == 2 else scores
    expected = measure_fragility(labels.numpy(), scores, multi_class=multi_class)
    found = metric.measured()
    assert (found.value, found.ratio) == (expected.value, expected.ratio)
    assert metric.compute().item() == pytest.approx(expected.value, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("target", [0.0, 0.1])
def test_value(n_classes, target):
    probs, labels = drawn(n_classes)
    metric = metric_of(n_classes, target=target)
    for part in (slice(0, 150), slice(150, 400)):
        metric.update(probs[part], labels[part])
    scores = probs[:, 1].numpy() if n_classes == 2 else probs.numpy()
    literal = fragility_index(labels.numpy(), scores, target=target)
    found = metric.compute()
    assert found.shape == ()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(literal, rel=1e-12)


def test_values_worked_out_by_hand():
    metric = BinaryFragilityIndex()
    metric.update(torch.tensor([0.6, 0.9, 0.1, 0.8]).double(), torch.tensor([1, 1, 0, 0]))
    assert metric.compute().item() == pytest.approx(0.16328215, abs=1e-8)


def test_one_column_or_two():
    probs, labels = drawn(2)
    forms = [(BinaryFragilityIndex(), probs[:, 1]), (BinaryFragilityIndex(), probs)]
    forms.append((MulticlassFragilityIndex(2), probs))
    for metric, scores in forms:
        metric.update(scores, labels.bool() if metric is forms[0][0] else labels)
    first, *others = [metric.values() for metric, _ in forms]
    assert all(np.array_equal(a, b) for other in others for a, b in zip(first, other, strict=True))


def test_batch_values_reset_and_saving():
    probs, labels = drawn(3)
    metric = MulticlassFragilityIndex(3)
    batch = metric(probs[:100], labels[:100])  # of the batch alone
    metric(probs[100:], labels[100:])
    alone = MulticlassFragilityIndex(3)
    alone.update(probs[:100], labels[:100])
    assert batch.item() == alone.compute().item()
    whole = metric.compute().item()
    assert whole == pytest.approx(fragility_index(labels.numpy(), probs.numpy()), rel=1e-12)
    assert pickle.loads(pickle.dumps(metric)).compute().item() == whole
    metric.persistent(True)
    loaded = MulticlassFragilityIndex(3)
    loaded.persistent(True)
    loaded.load_state_dict(metric.state_dict())
    assert loaded.compute().item() == whole
    metric.half()
    metric.to(torch.bfloat16)
    metric.set_dtype(torch.float16)
    metric._computed = None
    assert metric.compute().item() == whole
    metric.reset()
    metric.update(probs[:100], labels[:100])
    assert metric.compute().item() == batch.item()


def test_edges():
    separated, equal = torch.tensor([0.1, 0.9]), torch.tensor([0.5, 0.5])
    for probs, value in ((separated, 0.0), (equal, 0.0), (separated.flip(0), float("inf"))):
        metric = BinaryFragilityIndex()
        metric.update(probs, torch.tensor([0, 1]))
        assert metric.compute().item() == value


def test_absent_classes():
    probs, labels = drawn(3)
    kept = labels != 1
    metric = MulticlassFragilityIndex(3)
    metric.update(probs[labels == 0], labels[labels == 0])
    with pytest.warns(AbsentClassWarning, match="1 of 3 have samples: it is NaN"):
        assert metric.compute().isnan()
    metric.reset()
    metric.update(probs[kept], labels[kept])
    errors = [
        pairs.pair_matrix(probs[labels == j, i], probs[labels == i, i]) for i, j in ((0, 2), (2, 0))
    ]
    literal = np.mean([pairs.bisected_index(e, 0.0) for e in errors])
    with pytest.warns(AbsentClassWarning, match="No samples"):
        assert metric.compute().item() == pytest.approx(literal, rel=1e-9)


def test_bad_batches():
    labels = torch.tensor([0, 1])
    two, three = BinaryFragilityIndex(), MulticlassFragilityIndex(3)
    logits = torch.tensor([-1.5, 3.0])
    with pytest.raises(ValueError, match=r"2 samples do not.*from -1.5 to 3.*torch.sigmoid"):
        two.update(logits, labels)
    with pytest.raises(ValueError, match=r"logits, give torch.softmax\(logits, dim=1\)"):
        three.update(3.0 * torch.eye(3)[:2], labels)
    with pytest.raises(ValueError, match="probs holds 1 NaN"):
        two.update(torch.tensor([0.5, float("nan")]), labels)
    with pytest.raises(ValueError, match=r"y_true must be from 0 to 1; the classes of 1 samples"):
        two.update(torch.tensor([0.5, 0.5]), torch.tensor([0, 2]))
    with pytest.raises(ValueError, match=r"shape \(n, 3\); got \(2,\)"):
        three.update(torch.tensor([0.5, 0.5]), labels)
    with pytest.raises(ValueError, match=r"shape \(3,\); got \(2,\)"):
        two.update(torch.ones(3), labels)
    with pytest.raises(TypeError, match=r"y_true .* integers.*; got torch\.float32"):
        two.update(torch.tensor([0.5, 0.5]), labels.float())
    with pytest.raises(TypeError, match=r"probs must hold .*; got torch\.int64"):
        two.update(labels, labels)
    two.update(torch.tensor([0.7, 0.4]), labels)
    assert two.values()[1].tolist() == [0, 1]  # refused batches left nothing behind


def test_unchecked_batches_are_refused_later():
    metric = BinaryFragilityIndex(validate_args=False)
    metric.update(torch.tensor([0.5, 3.0, 0.2]), torch.tensor([0, 1, 7]))
    with pytest.raises(ValueError, match=r"1 samples had probs outside.* and 1 had y_true outside"):
        metric.compute()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_labels_of_narrow_types(dtype):
    """The number of classes may be beyond what they hold."""
    generator = torch.Generator().manual_seed(0)
    probs = torch.rand(90, 300, generator=generator).softmax(1)
    labels = torch.arange(90)
    metric = MulticlassFragilityIndex(300, multi_class="ovr")
    metric.update(probs, labels.to(dtype))
    assert metric.values()[1].tolist() == labels.tolist()


@pytest.mark.parametrize("wrong", [float("nan"), 3.0])
def test_every_column_is_checked(wrong):
    probs, labels = drawn(2)
    probs[0, 0] = wrong
    metric = BinaryFragilityIndex()
    with pytest.raises(ValueError, match=r"NaN|from 0 to 1"):
        metric.update(probs, labels)
    metric.validate_args = False
    metric.update(probs, labels)
    with pytest.raises(ValueError, match="1 samples had probs outside"):
        metric.compute()


def test_bad_settings():
    with pytest.raises(ValueError, match="n_classes must be a whole number of 2 or more; got 1"):
        MulticlassFragilityIndex(1)
