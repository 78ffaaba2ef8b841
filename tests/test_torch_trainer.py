"""Training of deep networks: what is exact is exact, and a kill changes no bit."""

# ruff: noqa: E402

import os
import signal
import subprocess
import sys
import textwrap
from math import inf

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from experiments.deep.recipe import Objective, Recipe
from experiments.deep.resnet import ResNet18
from experiments.deep.steps import EagerSteps, batch_sizes
from experiments.deep.trainer import Data, Settings, Trained, train
from fragility import fragility_index


@pytest.fixture(autouse=True)
def one_seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


class TestResNet:
    def test_as_many_parameters_as_the_published_network(self):
        count = sum(p.numel() for p in ResNet18(1000).parameters())
        assert count == 11_689_512  # torchvision's
        names = set(ResNet18(2).state_dict())
        assert {"conv1.weight", "layer2.0.downsample.1.running_var", "fc.bias"} <= names

    @pytest.mark.parametrize(("stem", "side"), [("7x7", 1), ("3x3", 4)])
    def test_last_map(self, stem, side):
        network, seen = ResNet18(3, stem).eval(), []
        network.layer4.register_forward_hook(lambda *call: seen.append(call[2].shape))
        with torch.no_grad():
            assert network(torch.rand(2, 3, 28, 28)).shape == (2, 3)
        assert seen == [(2, 512, side, side)]

    def test_bad_stem(self):
        with pytest.raises(ValueError, match="stem must be one of"):
            ResNet18(2, "5x5")


# --- the trainer ---------------------------------------------------------------------------------


#: Everything at once, so that nothing of it is lost in a checkpoint.
RECIPE = Recipe(
    regularizer=0.1, direct=0.3, warmup=1, ramp=3,
    mixup=1.0, noise=0.1, label_smoothing=0.1, pgd=0.05,
    moved=1.0, average=2.0, tightening=4, tempered=True,
)  # fmt: skip
SETTINGS = Settings(epochs=9, batch_size=16, learning_rate=0.3, plateau_patience=1)


def tiny_data(n=70, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    x = rng.normal(size=(n, 1, 8, 8)) + y[:, None, None, None]
    x, y = torch.from_numpy(x).float(), torch.from_numpy(y)
    return Data(x[: n // 2 + 8], y[: n // 2 + 8], x[n // 2 + 8 :], y[n // 2 + 8 :])


def tiny_network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(36, 3),
    )  # fmt: skip


def build(recipe=RECIPE, network=tiny_network):
    built = network()
    *_, last = (part for part in built.modules() if isinstance(part, nn.Linear))
    return recipe.objective(built, last, n_classes=3, epoch_steps=3)


class KilledError(Exception):
    pass


class FailsLater(nn.Module):
    """A network that is killed in the middle of an epoch."""

    def __init__(self, calls):
        super().__init__()
        self.left, self.inner = calls, tiny_network()

    def forward(self, x):
        self.left -= 1
        if self.left < 0:
            raise KilledError
        return self.inner(x)


def same(first, second):
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


def assert_same_training(one: Trained, other: Trained):
    assert one.history == other.history
    assert same(one.objective.state_dict(), other.objective.state_dict())
    for pick in ("ce", "ce+fi"):
        assert one.best[pick]["epoch"] == other.best[pick]["epoch"]
        assert same(one.best[pick]["weights"], other.best[pick]["weights"])


class TestResume:
    @pytest.mark.parametrize("bfloat16", [False, True])
    def test_after_each_epoch(self, tmp_path, bfloat16):
        settings = Settings(**{**SETTINGS.__dict__, "bfloat16": bfloat16})
        whole = train(build, tiny_data(), settings, seed=3)
        rates = [epoch.learning_rate for epoch in whole.history]
        assert rates[3] > rates[8]  # the schedule must be resumed, too
        for last in (2,) if bfloat16 else (1, 2, 3, 9):

            def stop(epoch, last=last):
                if epoch.number == last:
                    raise KilledError

            path = tmp_path / f"{last}.pt"
            with pytest.raises(KilledError):
                train(build, tiny_data(), settings, seed=3, checkpoint=path, on_epoch=stop)
            torch.rand(7)  # what happens between must not matter
            resumed = train(build, tiny_data(), settings, seed=3, checkpoint=path)
            assert_same_training(whole, resumed)
            assert list(tmp_path.glob(".*")) == []

    def test_in_the_middle_of_an_epoch(self, tmp_path):
        def objective(calls):
            return lambda: build(network=lambda: FailsLater(calls))

        whole = train(objective(10**9), tiny_data(), SETTINGS)
        for calls in (40, 60, 130):
            path = tmp_path / f"{calls}.pt"
            with pytest.raises(KilledError):
                train(objective(calls), tiny_data(), SETTINGS, checkpoint=path)
            resumed = train(objective(10**9), tiny_data(), SETTINGS, checkpoint=path)
            assert_same_training(whole, resumed)

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
    def test_after_a_real_kill(self, tmp_path):
        path = tmp_path / "run.pt"
        code = f"""
            import os, signal, warnings
            from pathlib import Path
            from tests.test_torch_trainer import SETTINGS, build, tiny_data, train
            def kill(epoch):
                if epoch.number == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
            path = Path({str(path)!r})
            train(build, tiny_data(), SETTINGS, seed=5, checkpoint=path, on_epoch=kill)
        """
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=os.environ)
        assert ended.returncode == -signal.SIGKILL
        resumed = train(build, tiny_data(), SETTINGS, seed=5, checkpoint=path)
        assert_same_training(train(build, tiny_data(), SETTINGS, seed=5), resumed)

    def test_a_finished_run_is_only_read(self, tmp_path):
        path = tmp_path / "run.pt"
        first = train(build, tiny_data(), SETTINGS, checkpoint=path)
        written = path.read_bytes()
        again = train(build, tiny_data(), SETTINGS, checkpoint=path)
        assert_same_training(first, again)
        assert path.read_bytes() == written

    def test_more_epochs_go_on(self, tmp_path):
        path = tmp_path / "run.pt"
        train(build, tiny_data(), Settings(**{**SETTINGS.__dict__, "epochs": 3}), checkpoint=path)
        longer = train(build, tiny_data(), SETTINGS, checkpoint=path)
        assert_same_training(train(build, tiny_data(), SETTINGS), longer)

    def test_another_training_is_refused(self, tmp_path):
        path = tmp_path / "run.pt"
        train(build, tiny_data(), SETTINGS, checkpoint=path)
        with pytest.raises(ValueError, match="seed 0, now 1"):
            train(build, tiny_data(), SETTINGS, seed=1, checkpoint=path)
        with pytest.raises(ValueError, match=r"recipe.mixup 1.0, now 0.0"):
            train(lambda: build(Recipe()), tiny_data(), SETTINGS, checkpoint=path)
        with pytest.raises(ValueError, match="inputs"):
            train(build, tiny_data(n=76), SETTINGS, checkpoint=path)
        for content in (b"", b"not a checkpoint", path.read_bytes()[:1000]):
            path.write_bytes(content)
            with pytest.raises(ValueError, match="delete it to start over"):
                train(build, tiny_data(), SETTINGS, checkpoint=path)


class TestTraining:
    def test_seeds_decide_everything_and_leave_no_trace(self):
        torch.manual_seed(11)
        before = torch.get_rng_state()
        one = train(build, tiny_data(), SETTINGS, seed=1)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(12)
        assert_same_training(one, train(build, tiny_data(), SETTINGS, seed=1))
        other = train(build, tiny_data(), SETTINGS, seed=2)
        assert not same(one.objective.state_dict(), other.objective.state_dict())

    def test_plain_training_is_pytorch_s(self):
        """A literal loop: Adam, plateau schedule, the same order of samples."""
        data, settings = tiny_data(), Settings(epochs=4, batch_size=16, plateau_patience=0)
        plain = lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3))  # noqa: E731
        trained = train(lambda: Objective(plain(), 3, Recipe()), data, settings, seed=9)

        def seed(epoch):
            torch.manual_seed(int(np.random.SeedSequence([9, epoch]).generate_state(1)[0]))

        seed(0)
        network = plain()
        adam = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
        for epoch in range(1, 5):
            seed(epoch)
            order = torch.randperm(len(data.inputs))
            for start in range(0, len(order), 16):
                rows = order[start : start + 16]
                adam.zero_grad()
                functional.cross_entropy(network(data.inputs[rows]), data.labels[rows]).backward()
                adam.step()
            p = network(data.validation_inputs).detach().double().softmax(1)
            own = p[torch.arange(len(p)), data.validation_labels]
            found = trained.history[epoch - 1]
            assert found.cross_entropy == pytest.approx(-own.log().mean().item(), rel=1e-12)
            index = fragility_index(data.validation_labels.numpy(), p.numpy())
            assert found.fragility_index == pytest.approx(index, rel=1e-9)
        assert same(network.state_dict(), trained.objective.network.state_dict())

    def test_best_epoch_stop_and_plateau(self):
        """On labels without a pattern the validation loss soon rises."""
        data = tiny_data()
        noise = torch.randint(3, (len(data.labels),))
        data = data._replace(labels=noise)
        settings = Settings(
            epochs=60, batch_size=16, learning_rate=0.02, plateau_patience=2, stop_patience=6
        )
        trained = train(lambda: Objective(tiny_network(), 3, Recipe()), data, settings, seed=1)
        losses = [epoch.cross_entropy for epoch in trained.history]
        best = int(np.argmin(losses)) + 1
        assert len(losses) == best + 6 < 60
        assert trained.restore() == best
        logits = trained.logits(data.validation_inputs).double()
        again = functional.cross_entropy(logits, data.validation_labels).item()
        assert again == losses[best - 1]
        sums = [epoch.cross_entropy + epoch.fragility_index for epoch in trained.history]
        assert trained.restore("ce+fi") == int(np.argmin(sums)) + 1
        # The rate: tenfold smaller after three epochs without progress.
        rate, least, bad = 0.02, inf, 0
        for epoch in trained.history:
            assert epoch.learning_rate == pytest.approx(rate, rel=1e-9)
            if epoch.cross_entropy < least * (1 - 1e-4):
                least, bad = epoch.cross_entropy, 0
            else:
                bad += 1
            if bad > 2:
                rate, bad = rate * 0.1, 0
        assert rate < 0.02

    def test_a_loss_that_is_no_number_ends_the_training(self):
        data = tiny_data()
        settings = Settings(epochs=9, batch_size=16, learning_rate=1e30)
        trained = train(lambda: Objective(tiny_network(), 3, Recipe()), data, settings)
        assert len(trained.history) < 9
        assert not np.isfinite(trained.history[-1].cross_entropy)
        trained.best.clear()
        with pytest.raises(ValueError, match="smaller learning rate"):
            trained.restore()

    def test_batches(self):
        for n in range(1, 40):
            for size in (2, 3, 16):
                sizes = batch_sizes(n, size)
                assert sum(sizes) == n - (n > size and n % size == 1)
                assert set(sizes[:-1]) <= {size}

    def test_mean_loss_is_of_samples_not_of_batches(self):
        x, y = torch.rand(7, 2), torch.tensor([0, 1, 0, 1, 0, 1, 1])
        objective = Objective(nn.Linear(2, 2), 2, Recipe())
        still = torch.optim.SGD(objective.parameters(), lr=0.0)
        found = EagerSteps(objective, still, x, y, 4).epoch(torch.randperm(7)).item()
        expected = functional.cross_entropy(objective.network(x), y).item()
        assert found == pytest.approx(expected, rel=1e-6)

    def test_weight_decay_spares_what_is_added(self):
        groups = build().parameter_groups(0.1)
        assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
        assert [tuple(p.shape) for p in groups[1]["params"]] == [()]  # the scale

    def test_bad_input(self):
        data = tiny_data()
        with pytest.raises(ValueError, match="needs data on a CUDA device"):
            train(build, data, Settings(graphs=True))
        with pytest.raises(ValueError, match="as many labels as inputs"):
            train(build, data._replace(labels=data.labels[1:]), SETTINGS)

    def test_the_bar_tells_loss_and_index(self, capsys):
        train(build, tiny_data(), Settings(epochs=2, batch_size=16), progress=True)
        shown = capsys.readouterr().err
        assert "2/2" in shown
        assert "validation CE" in shown
        assert "FI" in shown
