"""What only a GPU can show. Without one all of it is skipped."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fragility.torch import FragilityRegularizer, fragility_index  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # Said once when waiting is made an error; raised, it would leave that mode on for all others.
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
]
CUDA = "cuda:0"


def drawn(n_classes, n=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % n_classes
    logits = torch.randn(n, n_classes, generator=generator)
    logits[torch.arange(n), labels] += 1.5
    return logits.to(CUDA), labels.to(CUDA)


def wrong_labels(labels, wrong):
    bad = labels.clone()
    bad[[3, 7]] = wrong
    return bad


@pytest.mark.parametrize("wrong", [-1, -100, 0, 255])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unknown_labels_are_refused_and_the_device_lives_on(n_classes, wrong):
    wrong = wrong or n_classes
    logits, labels = drawn(n_classes)
    bad = wrong_labels(labels, wrong)
    with pytest.raises(ValueError, match=f"y_true must go from 0 to {n_classes - 1}"):
        fragility_index(logits.softmax(1), bad)
    torch.cuda.synchronize()
    assert fragility_index(logits.softmax(1), labels).isfinite()


@pytest.mark.parametrize("n_classes", [1, 2, 8, 300])  # one logit, one pair, few, many in blocks
def test_recorded_penalty_is_that_of_the_layer(n_classes):
    """Replayed after the layer has changed: nothing of the bound is left from the recording."""
    layer = torch.nn.Linear(64, n_classes, device=CUDA)
    regularizer = FragilityRegularizer(layer)

    def step():
        layer.weight.grad = None
        penalty = regularizer()
        penalty.backward()
        return penalty.detach()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(25):  # and beyond the calls in which the regulariser looks at its layer
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()
    with torch.no_grad():
        layer.weight.copy_(3.0 * layer.weight.roll(1, 1) ** 3)
    graph.replay()
    torch.cuda.synchronize()
    host = layer.weight.detach().cpu().requires_grad_()
    expected = FragilityRegularizer(host)()
    expected.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(layer.weight.grad.cpu(), host.grad, rtol=1e-4, atol=1e-7)


def test_second_derivatives():
    logits, labels = drawn(3)
    leaf = logits.clone().requires_grad_()
    index = fragility_index(leaf.softmax(1), labels)
    (gradient,) = torch.autograd.grad(index, leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="has no second derivative"):
        gradient.sum().backward()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_differ_in_their_last_bits(n_classes):
    unit, labels = 2.0**-53, torch.tensor([1, 0, 1, 1, 0, 1], device=CUDA)
    probs = 0.5 + unit * torch.tensor([4.0, 1, 4, 4, 4, 1], dtype=torch.float64, device=CUDA)
    if n_classes == 2:
        found = fragility_index(probs, labels)
    else:
        columns = torch.stack([torch.full_like(probs, 0.25), probs, 0.75 - probs], 1)
        with pytest.warns(UserWarning, match="No samples"):
            found = fragility_index(columns, labels, average=None)[1, 0]
    assert found.item() / unit == pytest.approx(2.730717679880512, rel=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_mean_error_of_the_target_is_infinite(n_classes):
    rng = np.random.default_rng(5)
    scores = 0.7 + rng.uniform(0.0, 0.3, 70_001)
    probs = np.concatenate([rng.permutation(scores) for _ in range(n_classes)])
    labels = torch.arange(n_classes, device=CUDA).repeat_interleave(len(scores))
    probs = torch.as_tensor(probs, device=CUDA)
    if n_classes == 3:
        probs = probs[:, None].expand(-1, 3)
    assert fragility_index(probs, labels).item() == np.inf


@pytest.mark.parametrize("validate_args", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics(n_classes, validate_args):
    pytest.importorskip("torchmetrics")
    from fragility.torch import MulticlassFragilityIndex

    logits, labels = drawn(n_classes)
    probs = logits.softmax(1)
    metric = MulticlassFragilityIndex(n_classes, validate_args=validate_args).to(CUDA)
    if not validate_args:  # a training step waits for nothing
        torch.cuda.set_sync_debug_mode("error")
    try:
        value = metric(probs, labels)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    host = MulticlassFragilityIndex(n_classes)
    host.update(probs.cpu(), labels.cpu())
    assert value.item() == pytest.approx(host.compute().item(), rel=1e-12)
    assert metric.compute().item() == pytest.approx(value.item(), rel=1e-12)
    assert value.device == probs.device
    host.persistent(True)
    metric.load_state_dict(host.state_dict())  # which lies on the host
    assert metric.probs[0].device == probs.device
    bad = wrong_labels(labels, n_classes)
    with pytest.raises(ValueError, match="y_true"):
        metric(probs, bad).item()
    torch.cuda.synchronize()
