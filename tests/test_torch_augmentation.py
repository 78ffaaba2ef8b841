"""What is done to batches and logits: known worst cases, moments and optimality."""

# ruff: noqa: E402

from math import inf

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from fragility.torch import fit_temperature, gaussian_noise, mixup, pgd


@pytest.fixture(autouse=True)
def one_seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


class TestMixup:
    def test_both_are_the_same_mixture(self):
        inputs, labels = torch.eye(6, dtype=torch.float64), torch.arange(6)
        for concentration in (1.0, 0.4):
            mixed, targets = mixup(inputs, labels, n_classes=6, concentration=concentration)
            assert torch.equal(mixed, targets)  # inputs were the targets
            assert torch.allclose(targets.sum(1), torch.ones(6, dtype=torch.float64))
            assert torch.allclose(targets.sum(0), torch.ones(6, dtype=torch.float64))

    def test_probabilities_mix_as_they_are(self):
        x = torch.rand(5, 2)
        mixed, targets = mixup(x, x[:, 0])
        assert torch.allclose(mixed[:, 0], targets)

    @pytest.mark.parametrize("concentration", [1.0, 0.3])
    def test_nothing_is_copied_to_the_device(self, concentration, monkeypatch):
        """Or it could not be part of a CUDA graph."""

        def copied(*arguments, **options):
            raise AssertionError("a number of the host")

        monkeypatch.setattr(torch, "tensor", copied)
        monkeypatch.setattr(torch, "as_tensor", copied)
        mixed, _ = mixup(torch.zeros(4, 2), torch.zeros(4, 3), concentration=concentration)
        assert mixed.shape == (4, 2)

    @pytest.mark.parametrize("concentration", [1.0, 0.3])
    def test_shares_have_the_moments_of_the_beta_distribution(self, concentration):
        x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        shares = []
        while len(shares) < 1500:
            mixed, _ = mixup(x, x[:, 0], concentration=concentration)
            if mixed[0] != 0.0:  # else the partner was the sample itself
                shares.append(mixed[1].item())
        variance = 1.0 / (4.0 * (2.0 * concentration + 1.0))
        assert np.mean(shares) == pytest.approx(0.5, abs=4 * np.sqrt(variance / 1500))
        assert np.var(shares) == pytest.approx(variance, rel=0.15)

    def test_bad_input(self):
        x, y = torch.rand(4, 2), torch.zeros(4, dtype=torch.long)
        with pytest.raises(ValueError, match="give n_classes="):
            mixup(x, y)
        with pytest.raises(ValueError, match="4 samples but targets has 3"):
            mixup(x, y[:3], n_classes=2)
        with pytest.raises(ValueError, match="floating-point"):
            mixup(x.to(torch.uint8), y, n_classes=2)
        for wrong in (-1, 3):
            with pytest.raises(ValueError, match="numbers from 0 to 2; got some from"):
                mixup(torch.rand(4, 2), torch.tensor([0, 1, 2, wrong]), n_classes=3)
        with pytest.raises(ValueError, match="concentration must be positive"):
            mixup(x, y, n_classes=2, concentration=0.0)


def test_noise_has_its_scale_and_leaves_the_inputs():
    x = torch.full((20000,), 3.0)
    noisy = gaussian_noise(x, 0.5)
    assert torch.equal(x, torch.full((20000,), 3.0))
    assert noisy.mean().item() == pytest.approx(3.0, abs=0.02)
    assert noisy.std().item() == pytest.approx(0.5, rel=0.05)
    with pytest.raises(ValueError, match="zero or more"):
        gaussian_noise(x, -1.0)


class TestPGD:
    @pytest.mark.parametrize("norm", [inf, 2])
    def test_a_linear_model_moves_to_the_known_worst_neighbour(self, norm):
        """Of two classes the loss falls in (w1 - w0)x: the worst point of the ball is known."""
        layer = nn.Linear(3, 2, dtype=torch.float64)
        x, y = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 0, 1, 1, 0])
        gap = (layer.weight[1] - layer.weight[0]).detach()
        sides = (1.0 - 2.0 * y.double())[:, None]
        step = gap.sign() if norm == inf else gap / gap.norm()
        moved = pgd(layer, x, y, radius=0.3, norm=norm)
        torch.testing.assert_close(moved, x + 0.3 * sides * step, rtol=1e-9, atol=1e-12)

    def test_loss_rises_inside_the_ball_and_the_bounds(self):
        network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
        x, y = torch.rand(40, 4), torch.arange(40) % 3
        for norm in (inf, 2):
            for random_start in (False, True):
                moved = pgd(
                    network, x, y, radius=0.2, steps=10, norm=norm, bounds=(0.0, 1.0),
                    random_start=random_start,
                )  # fmt: skip
                shift = (moved - x).norm(p=norm, dim=1)
                assert shift.max() <= 0.2 + 1e-6
                assert moved.min() >= 0.0
                assert moved.max() <= 1.0
                worse = functional.cross_entropy(network(moved), y)
                assert worse > functional.cross_entropy(network(x), y)

    def test_the_network_is_left_as_it_was(self):
        network = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2))
        network[2].eval()
        before = {name: value.clone() for name, value in network.state_dict().items()}
        with torch.no_grad():
            pgd(network, torch.rand(5, 4), torch.tensor([0, 1, 0, 1, 0]))
        assert [part.training for part in network] == [True, True, False, True]
        assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
        assert all(p.grad is None for p in network.parameters())

    def test_bad_input(self):
        layer, x, y = nn.Linear(2, 2), torch.rand(2, 2), torch.tensor([0, 1])
        for wrong, message in (
            ({"radius": 0.0}, "radius must be positive"),
            ({"steps": 0}, "steps must be a whole number"),
            ({"norm": 1}, "norm must be one of"),
            ({"bounds": (1.0, 0.0)}, "least, largest"),
            ({"bounds": (0, 10**400)}, "bounds must be a number that floating point holds"),
        ):
            with pytest.raises(ValueError, match=message):
                pgd(layer, x, y, **wrong)


class TestTemperature:
    @pytest.mark.parametrize("n_classes", [2, 3, 7])
    @pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
    def test_cross_entropy_is_least_there(self, n_classes, scale):
        rng = np.random.default_rng(n_classes)
        logits = scale * rng.normal(size=(200, n_classes))
        p = np.exp(logits / scale)
        p /= p.sum(1, keepdims=True)
        y = np.array([rng.choice(n_classes, p=row) for row in p])
        tensors = torch.from_numpy(logits), torch.from_numpy(y)

        def loss(t):
            return torch.nn.functional.cross_entropy(tensors[0] / t, tensors[1]).item()

        t = fit_temperature(*tensors)
        # A central difference of the slope in log T, far below that of any other temperature.
        slope = (loss(t * 1.0001) - loss(t / 1.0001)) / 2e-4
        assert abs(slope) < 1e-8
        assert loss(t) < min(loss(t * 1.01), loss(t / 1.01))

    @pytest.mark.parametrize(("n_classes", "n", "error"), [(10, 500, 0.045), (1000, 2000, 0.02)])
    def test_a_calibrated_network_has_temperature_one(self, n_classes, n, error):
        """Within three times its standard error, which is about `error`."""
        rng = torch.Generator().manual_seed(0)
        logits = 6.0 * torch.randn(n, n_classes, generator=rng)
        y = (logits - torch.empty(n, n_classes).exponential_(generator=rng).log()).argmax(1)
        assert abs(fit_temperature(logits, y) - 1.0) < 3.0 * error

    def test_scale_and_shift_of_the_logits(self):
        logits, y = torch.randn(100, 4, dtype=torch.float64), torch.randint(4, (100,))
        logits[torch.arange(100), y] += 1.0
        t = fit_temperature(logits, y)
        assert fit_temperature(3.0 * logits, y) == pytest.approx(3.0 * t, rel=1e-10)
        assert fit_temperature(logits + 100.0, y) == pytest.approx(t, rel=1e-10)

    def test_one_logit_is_two_columns(self):
        z, y = torch.randn(50), torch.randint(2, (50,))
        z = z + y
        columns = torch.stack([torch.zeros(50), z], 1)
        assert fit_temperature(z, y) == fit_temperature(columns, y)

    def test_limits(self):
        y = torch.tensor([0, 1, 2])
        assert fit_temperature(torch.ones(3, 3), y) == 1.0
        # Worse than none: equal probabilities, but for a thousandth that keeps the order.
        assert fit_temperature(-torch.eye(3), y) == pytest.approx(1e3, rel=1e-12)
        # Without a mistake: about as if three of four were right.
        t = fit_temperature(torch.eye(3), y)
        loss = torch.nn.functional.cross_entropy(torch.eye(3, dtype=torch.float64) / t, y)
        assert loss.item() == pytest.approx(1 / 4, rel=1e-12)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_small_types_are_computed_in_large_ones(self, dtype):
        rng = torch.Generator().manual_seed(0)
        logits = (3.0 * torch.randn(300, 5, generator=rng)).to(dtype)
        y = (logits.float() - torch.empty(300, 5).exponential_(generator=rng).log()).argmax(1)
        t = fit_temperature(logits.requires_grad_(), y)
        assert t == fit_temperature(logits.detach().double(), y)
        assert 0.8 < t < 1.2

    def test_bad_input(self):
        with pytest.raises(ValueError, match="from 0 to 1"):
            fit_temperature(torch.zeros(2, 2), torch.tensor([0, 2]))
        with pytest.raises(ValueError, match="shape"):
            fit_temperature(torch.zeros(2, 2), torch.tensor([0, 1, 1]))
        with pytest.raises(ValueError, match="finite"):
            fit_temperature(torch.tensor([[0.0, inf]]), torch.tensor([0]))
