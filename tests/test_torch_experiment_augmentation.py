"""Augmentations of the deep experiments: known worst cases and moments."""

# ruff: noqa: E402

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from experiments.deep.augmentation import gaussian_noise, mixup, pgd


@pytest.fixture(autouse=True)
def one_seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


class TestMixup:
    def test_both_are_the_same_mixture(self):
        inputs, labels = torch.eye(6, dtype=torch.float64), torch.arange(6)
        for concentration in (1.0, 0.4):
            mixed, targets = mixup(inputs, labels, 6, concentration)
            assert torch.equal(mixed, targets)  # inputs were the targets
            assert torch.allclose(targets.sum(1), torch.ones(6, dtype=torch.float64))
            assert torch.allclose(targets.sum(0), torch.ones(6, dtype=torch.float64))

    @pytest.mark.parametrize("concentration", [1.0, 0.3])
    def test_nothing_is_copied_to_the_device(self, concentration, monkeypatch):
        """Or it could not be part of a CUDA graph."""

        def copied(*arguments, **options):
            raise AssertionError("a number of the host")

        labels = torch.arange(4) % 3
        monkeypatch.setattr(torch, "tensor", copied)
        monkeypatch.setattr(torch, "as_tensor", copied)
        mixed, _ = mixup(torch.zeros(4, 2), labels, 3, concentration)
        assert mixed.shape == (4, 2)

    @pytest.mark.parametrize("concentration", [1.0, 0.3])
    def test_shares_have_the_moments_of_the_beta_distribution(self, concentration):
        x, labels = torch.tensor([[0.0], [1.0]], dtype=torch.float64), torch.tensor([0, 1])
        shares = []
        while len(shares) < 1500:
            mixed, _ = mixup(x, labels, 2, concentration)
            if mixed[0] != 0.0:  # else the partner was the sample itself
                shares.append(mixed[1].item())
        variance = 1.0 / (4.0 * (2.0 * concentration + 1.0))
        assert np.mean(shares) == pytest.approx(0.5, abs=4 * np.sqrt(variance / 1500))
        assert np.var(shares) == pytest.approx(variance, rel=0.15)


def test_noise_has_its_scale_and_leaves_the_inputs():
    x = torch.full((20000,), 3.0)
    noisy = gaussian_noise(x, 0.5)
    assert torch.equal(x, torch.full((20000,), 3.0))
    assert noisy.mean().item() == pytest.approx(3.0, abs=0.02)
    assert noisy.std().item() == pytest.approx(0.5, rel=0.05)


class TestPGD:
    def test_a_linear_model_moves_to_the_known_worst_neighbour(self):
        """Of two classes the loss falls in (w1 - w0)x: the worst point of the cube is known."""
        layer = nn.Linear(3, 2, dtype=torch.float64)
        x, y = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 0, 1, 1, 0])
        gap = (layer.weight[1] - layer.weight[0]).detach()
        sides = (1.0 - 2.0 * y.double())[:, None]
        moved = pgd(layer, x, y, radius=0.3)
        torch.testing.assert_close(moved, x + 0.3 * sides * gap.sign(), rtol=1e-9, atol=1e-12)

    def test_loss_rises_inside_the_cube(self):
        network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
        x, y = torch.rand(40, 4), torch.arange(40) % 3
        moved = pgd(network, x, y, radius=0.2, steps=10)
        assert (moved - x).abs().max() <= 0.2 + 1e-6
        worse = functional.cross_entropy(network(moved), y)
        assert worse > functional.cross_entropy(network(x), y)

    def test_the_network_is_left_as_it_was(self):
        network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2))
        network[2].eval()
        before = {name: value.clone() for name, value in network.state_dict().items()}
        with torch.no_grad():
            pgd(network, torch.rand(5, 4), torch.tensor([0, 1, 0, 1, 0]), radius=0.1)
        assert [part.training for part in network] == [True, True, False, True]
        assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
        assert all(p.grad is None for p in network.parameters())
