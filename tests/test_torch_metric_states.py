"""States that are merged, saved and shared; values of single batches."""

import copy
import pickle
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from torchmetrics import MetricCollection  # noqa: E402

from fragility import AbsentClassWarning  # noqa: E402
from fragility.torch import (  # noqa: E402
    BinaryFragilityIndex,
    MulticlassFragilityIndex,
    metrics,
)

from .test_torch_metrics import drawn, metric_of  # noqa: E402


def kinds():
    """Metrics that differ in what a state depends on."""
    return [
        BinaryFragilityIndex(),
        MulticlassFragilityIndex(3),
        MulticlassFragilityIndex(4, multi_class="ovr"),
    ]


def filled(metric):
    probs, labels = drawn(metric.n_classes, n=60)
    metric.update(probs, labels)
    return metric


def state_of(metric):
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else list(value)
        for name, value in metric.metric_state.items()
    }


def same(first, second):
    return all(
        torch.equal(value, second[name])
        if isinstance(value, torch.Tensor)
        else [batch.tolist() for batch in value] == [batch.tolist() for batch in second[name]]
        for name, value in first.items()
    )


@pytest.mark.parametrize("place", range(3))
def test_unlike_metrics_refuse_to_merge(place):
    metric = filled(kinds()[place])
    before = state_of(metric)
    for other_place, other in enumerate(map(filled, kinds())):
        if other_place == place:
            continue
        other.persistent(True)
        for state in (other, other.metric_state):
            if isinstance(state, (type(metric), dict)):
                with pytest.raises(ValueError, match=r"This metric has n_cl.*with the same n_cl"):
                    metric.merge_state(state)
        with pytest.raises(ValueError, match=r"This metric has n_cl.* and the saved one has"):
            metric.load_state_dict(other.state_dict())
        assert same(before, metric.metric_state)


def test_what_a_refused_merge_says():
    words = re.escape(
        "This metric has n_classes=3, and the other one has n_classes=4: their samples cannot be "
        "put together. Make both with the same n_classes."
    )
    with pytest.raises(ValueError, match=words):
        kinds()[1].merge_state(kinds()[2])
    state = filled(kinds()[0]).metric_state
    with pytest.raises(ValueError, match=r"not the state of a metric with n_cl.*: it lacks probs"):
        kinds()[0].merge_state({name: state[name] for name in state if name != "probs"})
    with pytest.raises(ValueError, match=r"refused of the other one must be .* and torch\.int64"):
        kinds()[0].merge_state(state | {"refused": state["refused"].double()})


@pytest.mark.parametrize("place", range(3))
def test_merged_metrics_have_the_samples_of_both(place):
    first, second, both = kinds()[place], kinds()[place], kinds()[place]
    probs, labels = drawn(first.n_classes)
    first.update(probs[:150], labels[:150])
    second.update(probs[150:], labels[150:])
    both.update(probs, labels)
    empty = kinds()[place]
    first.compute()  # a value that is old news after the merge
    first.merge_state(second)
    assert first.compute().item() == pytest.approx(both.compute().item(), rel=1e-12)
    empty.merge_state(first.metric_state)
    empty.merge_state(kinds()[place])
    assert empty.compute() == first.compute()  # and says not that it was never updated
    assert second.update_count == 1


def test_a_state_of_all_processes_can_be_loaded_and_goes_on():
    """Within `synced` the batches of all processes are one tensor."""
    probs, labels = drawn(3)
    joined = {"refused": torch.zeros(2, dtype=torch.int64)}
    joined |= {"probs": probs[:100], "y_true": labels[:100]}
    loaded, whole = MulticlassFragilityIndex(3), MulticlassFragilityIndex(3)
    loaded.load_state_dict(joined)
    loaded.update(probs[100:], labels[100:])
    whole.update(probs, labels)
    assert loaded.compute() == whole.compute()


def test_loaded_states_are_copies():
    saved = filled(kinds()[1])
    saved.persistent(True)
    states = saved.state_dict()
    before = copy.deepcopy(states)
    loaded = kinds()[1]
    loaded.compute_with_cache = True
    loaded.load_state_dict(states)
    value = loaded.compute()
    filled(loaded)
    assert same(before, states)
    loaded.load_state_dict(states)
    assert loaded.compute() == value


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_batch_value_is_computed_when_it_is_looked_at(n_classes, monkeypatch):
    probs, labels = drawn(n_classes)
    metric = metric_of(n_classes, target=0.1)
    computed, function = [], metrics.fragility_index

    def counting(*args, **kwargs):
        computed.append(function(*args, **kwargs))
        return computed[-1]

    monkeypatch.setattr(metrics, "fragility_index", counting)
    values = []
    for part in (slice(0, 100), slice(100, 400)):
        given, theirs = probs[part].clone(), labels[part].clone()
        values.append(metric(given, theirs))
        given.zero_()  # what comes after is no part of it
        theirs.zero_()
    assert not computed
    assert isinstance(values[0], torch.Tensor)
    for value, part in zip(values, (slice(0, 100), slice(100, 400)), strict=True):
        alone = metric_of(n_classes, target=0.1)
        alone.update(probs[part], labels[part])
        assert value.item() == alone.compute().item()
    assert len(computed) == 4
    assert (values[0] + values[1]).dtype == torch.float64
    assert len(computed) == 4  # once each
    whole = metric_of(n_classes, target=0.1)
    whole.update(probs, labels)
    assert metric.compute() == whole.compute()
    assert metric.update_count == 2


def test_batch_values_are_tensors_for_everyone():
    probs, labels = drawn(2)

    def value():
        return BinaryFragilityIndex()(probs, labels)

    alone = BinaryFragilityIndex()
    alone.update(probs, labels)
    expected = alone.compute().item()
    assert float(value()) == expected
    assert f"{value():.6f}" == f"{expected:.6f}"
    assert repr(value()) == repr(torch.tensor(expected, dtype=torch.float64))
    assert np.asarray(value()) == expected
    assert value().shape == ()
    assert torch.stack([value(), value()]).tolist() == [expected, expected]
    assert value() < 1.0
    assert value().isfinite()
    for copied in (copy.deepcopy(value()), pickle.loads(pickle.dumps(value())), value().clone()):
        assert type(copied) is torch.Tensor
        assert copied.item() == expected
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    with torch.inference_mode():
        seen = value()
        assert seen.item() == expected
    (weight * seen).backward()
    assert weight.grad.item() == expected
    with torch._C.DisableTorchFunctionSubclass():  # as code of C++ sees it
        assert (value() + 0.0).item() == expected


def test_batch_values_keep_their_warnings_and_errors():
    probs, labels = drawn(3)
    metric = MulticlassFragilityIndex(3, validate_args=False)
    value = metric(probs[labels == 0], labels[labels == 0])
    with pytest.warns(AbsentClassWarning, match="1 of 3"):
        assert value.isnan()
    bad = metric(probs, labels + 5)
    with pytest.raises(ValueError, match="had y_true outside 0 to 2"):
        bad.item()
    with pytest.raises(ValueError, match="y_true must be from 0 to 2"):
        MulticlassFragilityIndex(3)(probs, labels + 5)
    pickled = MulticlassFragilityIndex(3)
    pickled(probs, labels)
    assert pickle.loads(pickle.dumps(pickled)).compute() == pickled.compute()
    assert copy.deepcopy(pickled)._forward_cache == pickled._forward_cache


class Doubled(BinaryFragilityIndex):
    """A metric of someone's own."""

    def compute(self):
        return 2.0 * super().compute()


def test_batch_values_of_a_changed_metric():
    probs, labels = drawn(2)
    assert Doubled()(probs, labels) == 2.0 * BinaryFragilityIndex()(probs, labels)


def test_a_collection_counts_every_sample_once():
    """Metrics of a compute group hold the same tensors, and are called one after the other."""
    probs, labels = drawn(3)
    names = {"low": 0.0, "high": 0.1}
    collection = MetricCollection(
        {name: MulticlassFragilityIndex(3, target=t) for name, t in names.items()}
    )
    collection.update(probs[:100], labels[:100])
    assert len(collection.compute_groups) == 1
    values = collection(probs[100:200], labels[100:200])
    collection.update(probs[200:300], labels[200:300])
    collection(probs[300:], labels[300:])
    found = collection.compute()
    for name, target in names.items():
        alone = MulticlassFragilityIndex(3, target=target)
        assert values[name] == alone(probs[100:200], labels[100:200])
        alone.reset()
        alone.update(probs, labels)
        assert found[name] == alone.compute()


def test_reset_in_inference_mode():
    probs, labels = drawn(3)
    metric = MulticlassFragilityIndex(3)
    with torch.inference_mode():
        metric.reset()
        value = metric(probs, labels)
    metric.reset()
    with torch.inference_mode():
        metric.reset()
    metric.update(probs, labels)
    assert metric.compute() == value


@pytest.mark.parametrize(
    ("probs", "labels", "words"),
    [
        ([torch.full((2, 3), 1 / 3)], [torch.tensor([0.0, 1.0])], "whole numbers from 0 to 2"),
        ([torch.full((2, 3), 1 / 3)], [torch.tensor([0, 7])], "whole numbers from 0 to 2"),
        ([torch.full((2, 3), 1 / 3)], [torch.tensor([0, 1, 2])], "shape"),
        ([torch.full((2, 3), 1 / 3), torch.full((2,), 0.5)], [torch.tensor([0, 1])] * 2, "shape"),
        ([torch.full((2, 3), 1 / 3)], [], "1 batches of probs and 0 of y_true"),
    ],
)
def test_samples_that_do_not_fit_are_refused_when_they_come(probs, labels, words):
    metric = MulticlassFragilityIndex(3)
    state = {"refused": torch.zeros(2, dtype=torch.int64), "probs": probs, "y_true": labels}
    with pytest.raises(ValueError, match=words):
        metric.merge_state(state)
    assert metric.probs == []
