"""Two processes that talk through gloo do what one does: regulariser, metrics, callback."""

import itertools
import warnings
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytest.importorskip("lightning.pytorch")

from fragility.torch import (  # noqa: E402
    BinaryFragilityIndex,
    FragilityCallback,
    FragilityRegularizer,
    MulticlassFragilityIndex,
)


def drawn(n_classes, n=400):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(n_classes, (n,), generator=generator)
    noise = torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    return noise + 2.0 * torch.eye(n_classes, dtype=torch.float64)[labels], labels


def part_of(rank, world):
    """Samples of a process; the parts are of different size."""
    if world == 1:
        return slice(None)
    return slice(0, 130) if rank == 0 else slice(130, None)


def trained_layer(rank, world):
    """A layer and its bound after some steps, the batch shared out in equal parts."""
    x, y = drawn(3, 16)
    layer = torch.nn.Linear(3, 3, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(9.0).sin().reshape(3, 3))
        layer.bias.zero_()
    model = torch.nn.parallel.DistributedDataParallel(layer) if world > 1 else layer
    regularizer = FragilityRegularizer(layer)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.001)
    for _ in range(4):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[rank::world]), y[rank::world])
        (loss + regularizer()).backward()
        optimiser.step()
    return [*layer.weight.detach().flatten().tolist(), regularizer.k.item()]


class Whole(torch.nn.Module):
    """A layer with its loss, all inside the wrapped model."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3, bias=False, dtype=torch.float64)
        self.regularizer = FragilityRegularizer(self.layer)
        with torch.no_grad():
            self.layer.weight.copy_(torch.arange(9.0).sin().reshape(3, 3))

    def forward(self, x, y):
        logits = self.layer(x)
        return torch.nn.functional.cross_entropy(logits, y) + self.regularizer()


def trained_within(rank, world):
    """The same with the regulariser inside the wrapped model."""
    x, y = drawn(3, 16)
    whole = Whole()
    model = torch.nn.parallel.DistributedDataParallel(whole) if world > 1 else whole
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(4):
        optimiser.zero_grad()
        model(x[rank::world], y[rank::world]).backward()
        optimiser.step()
    return [*whole.layer.weight.detach().flatten().tolist(), whole.regularizer.k.item()]


def measured(rank, world):
    """Values of both metrics, where both processes have samples, and where one has none."""
    found = []
    for metric, idle in itertools.product(
        (BinaryFragilityIndex(), MulticlassFragilityIndex(3)), (False, True)
    ):
        metric.reset()
        logits, labels = drawn(metric.n_classes)
        part = slice(None) if idle else part_of(rank, world)
        if not (idle and rank == 1):
            metric.update(logits[part].softmax(1), labels[part])
        before = metric.values()
        result = metric.measured()
        after = metric.values()  # its own samples again
        assert all(map(np.array_equal, before, after))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # compute before any update
            found.append((metric.compute().item(), result.value, result.ratio))
    return found


def logged(rank, world):
    """What the callback logs, for a trainer reduced to what it looks at."""
    logits, labels = drawn(3)
    part, found = part_of(rank, world), {}
    trainer = SimpleNamespace(
        sanity_checking=False, world_size=world, state=SimpleNamespace(fn="validate")
    )
    module = SimpleNamespace(
        device=torch.device("cpu"), log=lambda name, value, **_: found.update({name: value.item()})
    )
    callback = FragilityCallback(3)
    callback.on_validation_epoch_start(trainer, module)
    outputs = {"logits": logits[part], "y_true": labels[part]}
    callback.on_validation_batch_end(trainer, module, outputs, None, 0)
    callback.on_validation_epoch_end(trainer, module)
    return found


def unlike(rank, world):
    """What metrics of other classes in each process say; nobody waits for the other."""
    logits, labels = drawn(3 + rank)
    metric = MulticlassFragilityIndex(3 + rank)
    metric.update(logits.softmax(1), labels)
    before = metric.update_count, str(metric.metric_state)
    with pytest.raises(ValueError, match="cannot be put together") as refused:
        metric.compute()
    assert before == (metric.update_count, str(metric.metric_state))
    return str(refused.value)


FUNCTIONS = trained_layer, trained_within, measured, logged, unlike
WORK = {f.__name__: f for f in FUNCTIONS}


def work(rank, meeting):
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=120),  # for the other to have imported all it needs
    )
    try:
        return {name: function(rank, 2) for name, function in WORK.items()}
    finally:
        torch.distributed.destroy_process_group()


def other_process(_, meeting, answer):
    torch.set_num_threads(1)
    torch.save(work(1, meeting), answer)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What this process and another one found, for all tests."""
    folder = tmp_path_factory.mktemp("processes")
    meeting, answer = str(folder / "meeting"), str(folder / "answer")
    other = torch.multiprocessing.spawn(other_process, (meeting, answer), nprocs=1, join=False)
    own = work(0, meeting)
    other.join()
    return [own, torch.load(answer)]


@pytest.mark.parametrize("name", ["trained_layer", "trained_within"])
def test_training(name, answers):
    alone = WORK[name](0, 1)
    for answer in answers:
        assert answer[name] == pytest.approx(alone, rel=1e-12)


def test_metrics(answers):
    alone = measured(0, 1)
    for answer in answers:
        for found, whole in zip(answer["measured"], alone, strict=True):
            # Samples come in the order of the processes, which may change the last digits.
            assert found == pytest.approx(whole, rel=1e-12)


def test_unlike_metrics(answers):
    first, second = (answer["unlike"] for answer in answers)
    assert "has n_classes=3, and that of process 1 has n_classes=4" in first
    assert "has n_classes=4, and that of process 0 has n_classes=3" in second


def test_callback(answers):
    alone = logged(0, 1)
    assert len(alone) == 5
    for answer in answers:
        assert answer["logged"] == pytest.approx(alone, rel=1e-6)
