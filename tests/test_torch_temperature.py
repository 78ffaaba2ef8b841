"""The temperature of a network: optimality, limits and types."""

# ruff: noqa: E402

from math import inf

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fragility.torch import fit_temperature


@pytest.fixture(autouse=True)
def one_seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


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
