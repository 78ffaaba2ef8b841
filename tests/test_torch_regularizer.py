"""The last-layer regulariser against its formula, written out pair by pair."""

import copy
import os
import pickle
from math import inf

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fragility.torch import FragilityRegularizer  # noqa: E402
from fragility.torch import regularizer as module  # noqa: E402

from .reference import penalties  # noqa: E402

COMPILER = os.environ.get("FRAGILITY_COMPILER", "aot_eager")
SETTINGS = {"strength": 0.3, "sharpness": 20.0}


def drawn(n_classes, n_features, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    weight = 0.3 * torch.randn(n_classes, n_features, generator=generator, dtype=torch.float64)
    return weight.to(dtype).requires_grad_()


def in_blocks(monkeypatch, numbers):
    monkeypatch.setattr(module, "_FEW", 0)
    monkeypatch.setattr(module, "_BLOCK", numbers)


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("blocks", [False, True])
def test_value_and_slopes(norm, n_classes, blocks, monkeypatch):
    if blocks:
        in_blocks(monkeypatch, 2 * n_classes * (1 if norm == 2 else 3))
    weight = drawn(n_classes, 3)
    regularizer = FragilityRegularizer(weight, k_init=0.2, norm=norm, **SETTINGS)
    found = regularizer()
    found.backward()
    k = regularizer.k.item()
    literal = weight.detach().numpy()
    settings = SETTINGS | {"norm": norm}
    assert k == pytest.approx(0.2, rel=1e-12)
    assert found.item() == pytest.approx(penalties.penalty(literal, k, **settings), rel=1e-12)
    of_weight = penalties.slopes(lambda w: penalties.penalty(w, k, **settings), literal)
    np.testing.assert_allclose(weight.grad, of_weight, rtol=1e-6, atol=1e-8)
    assert abs(of_weight).max() > 0.01  # some pairs are farther apart than k
    of_k = penalties.slopes(lambda v: penalties.penalty(literal, v, fixed_k=k, **settings), k)
    through = torch.autograd.grad(regularizer.k, regularizer.unbounded_k)[0]
    assert (regularizer.unbounded_k.grad / through).item() == pytest.approx(float(of_k), rel=1e-6)
    assert 0.9 < through.item() < 1.0  # k moves as its parameter does


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("blocks", [False, True])
def test_equal_vectors_have_slope_zero(norm, blocks, monkeypatch):
    if blocks:
        in_blocks(monkeypatch, 8)
    weight = torch.ones(4, 3, requires_grad=True)
    regularizer = FragilityRegularizer(weight, norm=norm)
    penalty = regularizer()
    penalty.backward()
    assert penalty.item() == pytest.approx(0.1 * 0.05, rel=1e-6)
    assert torch.equal(weight.grad, torch.zeros(4, 3))


class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
    """Numbers in the largest tensor that any operation returned."""

    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.largest = max(self.largest, out.numel())
        return out


@pytest.mark.parametrize("norm", [1, 2])
def test_ten_thousand_classes_in_little_memory(norm):
    """With tensors that have a shape and no numbers: how large they are is all that counts."""
    weight = torch.empty(10_000, 8, device="meta", requires_grad=True)
    with Sizes() as sizes:
        module._blocked_excess(weight, torch.empty((), device="meta"), norm).backward()
    assert 10_000 * 8 < sizes.largest <= module._BLOCK < 10_000 * 10_000
    assert weight.grad.shape == weight.shape


def test_many_classes_in_little_memory(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1 << 19)
    weight = drawn(2000, 4, dtype=torch.float32)
    regularizer = FragilityRegularizer(weight)
    with Sizes() as sizes:
        regularizer().backward()
    assert 1 << 18 < sizes.largest <= 1 << 19
    # The vectors of a row against all others, in float64.
    exact = weight.detach().double()
    k = regularizer.k.item()
    distances = torch.cdist(exact[:1], exact)[0]
    excess = (distances - k).clamp_min(0)
    pulls = torch.where(distances > k, excess / distances.clamp_min(k), 0.0)
    row = 0.1 * 50.0 / k * (pulls[:, None] * (exact[0] - exact)).sum(0)
    np.testing.assert_allclose(weight.grad[0], row, rtol=1e-4)


def test_module_owns_k_alone():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4))
    model.regularizer = FragilityRegularizer(model[0])
    assert [name for name, _ in model.regularizer.named_parameters()] == ["unbounded_k"]
    assert list(model.regularizer.state_dict()) == ["unbounded_k"]
    assert list(model.regularizer.children()) == []
    assert len(list(model.parameters())) == 3
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight.mul_(2.0)
    assert twin.regularizer().item() > model.regularizer().item()
    before = model.regularizer().item()
    model[0].weight = torch.nn.Parameter(3.0 * model[0].weight.detach())
    assert model.regularizer().item() > before  # it follows a weight that is replaced


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


def train(model, regularizer, steps=45, optimiser=torch.optim.SGD, **settings):
    """Ordinary steps, with the penalty computed twice in each: once to be shown."""
    parameters = [*model.parameters(), *regularizer.parameters()]
    optimiser = optimiser([p for p in parameters if p.requires_grad], lr=1e-4, **settings)
    x, y = torch.randn(12, 3), torch.arange(12) % 3
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(x), y) + regularizer()
        with torch.no_grad():
            regularizer().item()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def test_a_replaced_layer_is_told():
    model = network()
    regularizer = FragilityRegularizer(model[-1])
    model[-1] = torch.nn.Linear(5, 4)
    with pytest.raises(RuntimeError, match=r"layer of this FragilityRegularizer is gone.*new one"):
        regularizer()
    regularizer = FragilityRegularizer(model[-1])
    model = copy.deepcopy(model)  # and the first one is gone
    with pytest.raises(RuntimeError, match="is gone"):
        regularizer()
    with pytest.raises(RuntimeError, match="is gone"):
        FragilityRegularizer(torch.nn.Linear(2, 3))()


@pytest.mark.parametrize("of", ["layer", "parameter", "tensor"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_both_together_belong_together(of, copied):
    model = network()
    source = {"layer": model[-1], "parameter": model[-1].weight, "tensor": model[-1].weight.data}
    regularizer = FragilityRegularizer(source[of])
    for both in ((model, regularizer), (regularizer, model)):
        pair = copied(both)
        theirs, twin = pair if isinstance(pair[1], torch.nn.Sequential) else pair[::-1]
        assert theirs().item() == regularizer().item()
        with torch.no_grad():
            twin[-1].weight.mul_(2.0)
        assert of == "tensor" or theirs().item() > regularizer().item()
    alone = copied(regularizer)
    if of != "tensor":
        with pytest.raises(RuntimeError, match="copied or loaded without it"):
            alone()
        with pytest.raises(RuntimeError, match="is gone"):
            copied(alone)()


@pytest.mark.parametrize("settings", [{}, {"optimiser": torch.optim.Adam, "fused": True}])
def test_training_a_copy_instead_is_told(settings):
    model = network()
    regularizer = FragilityRegularizer(model[-1])
    twin = copy.deepcopy(model)
    with pytest.warns(UserWarning, match="another layer seems to be.*make a new"):
        train(twin, regularizer, **settings)
    train(model, FragilityRegularizer(model[-1]), **settings)  # which is the way, and no warning


def test_a_head_replaced_and_kept_elsewhere_is_told():
    model = network()
    head = model[-1]
    regularizer = FragilityRegularizer(head)
    model[-1] = torch.nn.Linear(5, 3)
    with pytest.warns(UserWarning, match="no gradient but that of the penalty"):
        train(model, regularizer)


@pytest.mark.parametrize("of", ["layer", "parameter"])
@pytest.mark.parametrize("bound_is_trained", [True, False])
def test_a_head_that_only_the_penalty_trains_is_told(of, bound_is_trained):
    model = network()
    old = list(model.parameters())  # as an optimiser holds them that was made before
    regularizer = FragilityRegularizer(model[-1] if of == "layer" else model[-1].weight)
    kept = model[-1]
    model[-1] = torch.nn.Linear(5, 3)
    bound = list(regularizer.parameters()) if bound_is_trained else []
    optimiser = torch.optim.Adam([*old, *model[-1].parameters(), *bound])
    x, y = torch.randn(12, 3), torch.arange(12) % 3

    def trained():
        for _ in range(45):
            optimiser.zero_grad()
            (torch.nn.functional.cross_entropy(model(x), y) + regularizer()).backward()
            optimiser.step()

    with pytest.warns(UserWarning, match="no gradient but that of the penalty"):
        trained()
    assert kept.weight.grad is not None


def test_separate_backward_passes_are_no_mistake(tmp_path):
    model = network()
    regularizer = FragilityRegularizer(model[-1])
    x, y = torch.randn(12, 3), torch.arange(12) % 3
    for step in range(90):
        terms = [torch.nn.functional.cross_entropy(model(x), y), regularizer()]
        for term in terms if step < 45 else terms[::-1]:
            term.backward()
        if step % 20 == 19:  # a look is under way: it is not saved, and does not complain
            torch.save(model, tmp_path / "model.pt")
            pickle.loads(pickle.dumps((model, regularizer)))
            twins = copy.deepcopy((model, regularizer))
            twins[1]()


def test_what_is_no_mistake_is_not_told():
    model = network()
    regularizer = FragilityRegularizer(model[-1])
    twin = copy.deepcopy(model)  # such as an average of the weights, which is not trained
    train(model, regularizer)
    twin.load_state_dict(model.state_dict())
    model.load_state_dict(twin.state_dict())
    train(model, regularizer, 25)
    model[-1].weight = torch.nn.Parameter(model[-1].weight.detach().clone())
    train(model, regularizer, 25)
    for _ in range(50):  # many calls before a step, as in accumulation
        regularizer()
    model[-1].requires_grad_(False)  # said to stay as it is
    train(model, regularizer)
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3))
    train(normed, FragilityRegularizer(normed))


def test_a_compiled_one_follows_its_layer_or_raises():
    model = network()
    regularizer = FragilityRegularizer(model[-1])
    compiled = torch.compile(regularizer, backend=COMPILER, fullgraph=True)
    assert compiled().item() == pytest.approx(regularizer().item())
    model[-1].weight = torch.nn.Parameter(2.0 * model[-1].weight.detach())
    assert compiled().item() == pytest.approx(regularizer().item())
    model[-1] = torch.nn.Linear(5, 3)
    with pytest.raises(Exception, match="is gone"):
        compiled()


@pytest.mark.filterwarnings("ignore:.*no gradient but that of the penalty")
def test_k_stays_positive_and_comes_back():
    weight = torch.zeros(3, 2, requires_grad=True)
    regularizer = FragilityRegularizer(weight)
    optimiser = torch.optim.SGD(regularizer.parameters(), lr=100.0)
    for _ in range(50):
        optimiser.zero_grad()
        regularizer().backward()
        optimiser.step()
    assert 0.001 * (1 - 1e-6) <= regularizer.k.item() < 0.002
    optimiser = torch.optim.Adam([weight, *regularizer.parameters()], lr=0.01)
    for _ in range(5):
        optimiser.zero_grad()
        (regularizer() + 10.0 * (weight[0] - 1.0).square().sum()).backward()
        assert torch.isfinite(weight.grad).all()
        optimiser.step()


def test_learned_k_is_the_best_for_the_layer():
    weight = drawn(4, 6).detach()
    regularizer = FragilityRegularizer(weight, k_init=0.1)
    optimiser = torch.optim.SGD(regularizer.parameters(), lr=0.01)
    for _ in range(1500):
        optimiser.zero_grad()
        regularizer().backward()
        optimiser.step()
    k = regularizer.k.item()
    settings = {"strength": 0.1, "sharpness": 50.0, "norm": 2, "fixed_k": k}
    best = penalties.penalty(weight, k, **settings)
    assert all(best <= penalties.penalty(weight, f * k, **settings) + 1e-9 for f in (0.98, 1.02))


def test_saved_and_loaded():
    weight = drawn(3, 3)
    first = FragilityRegularizer(weight)
    with torch.no_grad():
        first.unbounded_k.add_(0.2)
    second = FragilityRegularizer(weight)
    second.load_state_dict(first.state_dict())
    assert second().item() == first().item()


def test_mixed_precision_changes_nothing(monkeypatch):
    weight = drawn(6, 5, dtype=torch.float32)
    for numbers in (None, 12):
        if numbers:
            in_blocks(monkeypatch, numbers)
        regularizer = FragilityRegularizer(weight)
        full = regularizer()
        with torch.autocast("cpu", torch.bfloat16):
            mixed = regularizer()
        assert mixed.dtype == torch.float32
        assert mixed.item() == full.item()
    half = FragilityRegularizer(weight.detach().bfloat16())
    for regularizer in (half, half.bfloat16()):  # as a part of a model in half precision
        assert regularizer().dtype == torch.float32
        assert regularizer().item() == pytest.approx(full.item(), rel=0.05)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # inductor itself uses it
@pytest.mark.parametrize("blocks", [False, True])
def test_compiled_takes_a_new_strength(blocks, monkeypatch):
    if blocks:
        in_blocks(monkeypatch, 8)
    weight = drawn(4, 3)
    regularizer = FragilityRegularizer(weight)
    compiled = torch.compile(regularizer, backend=COMPILER, fullgraph=True)
    for strength in (0.1, 0.2, 0.4):
        regularizer.strength = strength
        weight.grad = None
        regularizer().backward()
        eager, weight.grad = weight.grad, None
        compiled().backward()
        torch.testing.assert_close(weight.grad, eager, rtol=1e-12, atol=0.0)
    assert regularizer.strength == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"layer_or_weight": torch.nn.ReLU()}, TypeError, "got ReLU"),
        ({"layer_or_weight": torch.ones(3)}, ValueError, r"shape \(3,\)"),
        ({"norm": 3}, ValueError, "norm must be one of"),
        ({"strength": -1.0}, ValueError, "strength must be zero or more; got -1.0"),
        ({"sharpness": 0.0}, ValueError, "sharpness must be positive; got 0.0"),
        ({"k_init": inf}, ValueError, "k_init must be finite"),
        ({"k_init": 1e-300}, ValueError, "k_init must be from 1e-30 .*; got 1e-300"),
        ({"strength": 1e39}, ValueError, r"strength must be from 1e-30 to 1e\+30"),
        ({"strength": 10**400}, ValueError, "strength must be a number that floating point holds"),
    ],
)
def test_bad_settings(given, error, words):
    with pytest.raises(error, match=words):
        FragilityRegularizer(**({"layer_or_weight": torch.ones(3, 2)} | given))


def test_layer_on_another_device():
    layer = torch.nn.Linear(3, 2)
    regularizer = FragilityRegularizer(layer)
    layer.to("meta")
    with pytest.raises(ValueError, match=r"on meta and its regulariser on cpu.*regularizer.to"):
        regularizer()
