"""The last-layer regulariser against its formula, written out pair by pair."""

import copy
import os
import pickle
from math import inf

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fragility.torch import FragilityRegularizer  # noqa: E402
from fragility.torch import _class_pairs as module  # noqa: E402

from .reference import penalties  # noqa: E402

COMPILER = os.environ.get("FRAGILITY_COMPILER", "aot_eager")


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
@pytest.mark.parametrize("sharpness", [0.5, 20.0])  # nearly all pairs count, or few
def test_value_and_slopes(norm, n_classes, blocks, sharpness, monkeypatch):
    if blocks:
        in_blocks(monkeypatch, 2 * n_classes * (1 if norm == 2 else 3))
    weight = drawn(n_classes, 3)
    settings = {"strength": 0.3, "sharpness": sharpness, "norm": norm}
    regularizer = FragilityRegularizer(weight, **settings)
    found = regularizer()
    found.backward()
    literal = weight.detach().numpy()
    k = penalties.bound(literal, sharpness, norm)
    assert regularizer.k.item() == pytest.approx(k, rel=1e-12)
    assert found.item() == pytest.approx(penalties.penalty(literal, **settings), rel=1e-12)
    # α does not move with the weights, k does.
    fixed = settings | {"alpha": sharpness / k}
    of_weight = penalties.slopes(lambda w: penalties.penalty(w, **fixed), literal)
    np.testing.assert_allclose(weight.grad, of_weight, rtol=1e-6, atol=1e-8)
    assert abs(of_weight).max() > 0.01


@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize("sharpness", [5.0, 50.0])
def test_slopes_are_nearly_those_of_the_printed_value(n_classes, sharpness):
    """What the docstring says of the part that α would add, and that it is not nothing."""
    weight = drawn(n_classes, 3)
    regularizer = FragilityRegularizer(weight, strength=1.0, sharpness=sharpness)
    regularizer().backward()
    settings = {"strength": 1.0, "sharpness": sharpness, "norm": 2}
    whole = penalties.slopes(lambda w: penalties.penalty(w, **settings), weight.detach().numpy())
    # A distance changes by at most the sum of what its two vectors move.
    assert abs(whole - weight.grad.numpy()).sum(1).max() < n_classes * 3**0.5 / (2 * sharpness)
    assert abs(whole - weight.grad.numpy()).max() > 1e-4
    k = regularizer.k.item()
    assert k <= regularizer().item() <= (1 + 0.5 / sharpness) * k * (1 + 1e-12)


@pytest.mark.parametrize("norm", [1, 2, inf])
@pytest.mark.parametrize("blocks", [False, True])
def test_equal_vectors_have_slope_zero(norm, blocks, monkeypatch):
    if blocks:
        in_blocks(monkeypatch, 8)
    weight = torch.ones(4, 3, requires_grad=True)
    regularizer = FragilityRegularizer(weight, norm=norm)
    penalty = regularizer()
    penalty.backward()
    assert penalty.item() == regularizer.k.item() == 0.0
    assert torch.equal(weight.grad, torch.zeros(4, 3))
    with torch.no_grad():  # and where some of them are
        weight[0] += 1.0
    regularizer().backward()
    assert weight.grad.isfinite().all()
    assert weight.grad[0].min() > 0.0


def violations(regularizer, weight):
    """Relative ones of every pair, from distances of our own."""
    rows = weight.detach().double()
    rows = torch.cat([rows, torch.zeros_like(rows)]) if len(rows) == 1 else rows
    return (torch.pdist(rows) / regularizer.k - 1.0).clamp_min(0.0)


@pytest.mark.parametrize(
    "weight",
    [
        torch.eye(600),  # all pairs alike: each violates k by 1e-7
        torch.cat([torch.eye(599, 600), 1.02 * torch.eye(600)[-1:]]),  # and some by more
        torch.cat([torch.zeros(300, 4), torch.eye(4)]),  # few violate it
        1e-20 * torch.eye(3),
        1e20 * torch.eye(3),
    ],
)
def test_violations_add_up_whatever_the_distances(weight):
    for sharpness in (20.0, 100.0):
        regularizer = FragilityRegularizer(weight.requires_grad_(), sharpness=sharpness)
        found = violations(regularizer, weight)
        assert found.sum().item() == pytest.approx(1.0 / sharpness, rel=1e-6)
        weight.grad = None
        regularizer().backward()
        # Turning all vectors together changes nothing, nor does moving them together.
        assert weight.grad.sum(0).abs().max() < 1e-6
        # The weighted mean of distances that pulls, so one of the largest.
        pull = (weight.grad * weight).sum().item() / regularizer.strength
        k = regularizer.k.item()
        assert k <= pull * (1 + 1e-6) <= (1 + 1 / sharpness) * k * (1 + 1e-5)


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "clipped": lambda p: torch.optim.SGD(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("n_classes", [2, 30])
def test_training_does_not_break_down(name, n_classes):
    """With a k that the optimiser learns, plain SGD lost most of its accuracy at many classes."""
    accuracy = {}
    for strength in (0.0, 0.1):
        torch.manual_seed(0)
        y = torch.arange(300) % n_classes
        x = 3.0 * torch.randn(n_classes, 16)[y] + torch.randn(300, 16)
        model = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, n_classes)
        )
        regularizer = FragilityRegularizer(model[-1], strength=strength)
        widest = torch.pdist(model[-1].weight).max().item()
        assert 0.98 * strength * widest <= regularizer().item() <= 1.01 * strength * widest
        optimiser = OPTIMISERS[name](model.parameters())
        for _ in range(60):
            loss = torch.nn.functional.cross_entropy(model(x), y) + regularizer()
            optimiser.zero_grad()
            loss.backward()
            if name == "clipped":
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            found = violations(regularizer, model[-1].weight)
            assert found.sum().item() == pytest.approx(1.0 / 50.0, rel=1e-6)
        accuracy[strength] = (model(x).argmax(1) == y).double().mean().item()
    assert accuracy[0.0] > 0.8
    assert accuracy[0.1] > accuracy[0.0] - 0.02


class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
    """Numbers in the largest tensor that any operation returned."""

    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.largest = max(self.largest, out.numel())
        return out


@pytest.mark.parametrize("norm", [1, 2])
def test_thousands_of_classes_in_memory_for_their_pairs(norm, monkeypatch):
    """With tensors that have a shape and no numbers: how large they are is all that counts."""
    monkeypatch.setattr(module, "_BLOCK", 1 << 20)
    weight = torch.empty(3000, 8, device="meta", requires_grad=True)
    with Sizes() as sizes:
        module.bound_and_excess(weight, 50.0, norm)[1].backward()
    assert sizes.largest == 3000 * 2999 // 2
    assert weight.grad.shape == weight.shape


def test_many_classes_row_by_row(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1 << 17)
    monkeypatch.setattr(module, "_FEW", 1 << 10)
    weight = drawn(500, 4, dtype=torch.float32)
    regularizer = FragilityRegularizer(weight, sharpness=1e-4)  # so that many pairs count
    regularizer().backward()
    # The vectors of a row against all others, in float64.
    exact = weight.detach().double()
    k = regularizer.k.item()
    distances = torch.cdist(exact[:1], exact)[0]
    assert (distances > k).sum() > 100
    excess = (distances - k).clamp_min(0)
    pulls = torch.where(distances > k, excess / distances.clamp_min(k), 0.0)
    row = 0.1 * 1e-4 / k * (pulls[:, None] * (exact[0] - exact)).sum(0)
    np.testing.assert_allclose(weight.grad[0], row, rtol=1e-5)


def test_its_gradient_is_not_differentiated(monkeypatch):
    for numbers in (None, 12):
        if numbers:
            in_blocks(monkeypatch, numbers)
        weight = drawn(6, 5)
        (gradient,) = torch.autograd.grad(FragilityRegularizer(weight)(), weight, create_graph=True)
        with pytest.raises(RuntimeError, match=r"no second derivative|not implemented"):
            gradient.square().sum().backward()


def test_module_owns_nothing():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4))
    model.regularizer = FragilityRegularizer(model[0])
    assert list(model.regularizer.parameters()) == []
    assert list(model.regularizer.state_dict()) == []
    assert list(model.regularizer.children()) == []
    assert len(list(model.parameters())) == 2
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight.mul_(2.0)
    assert twin.regularizer().item() == pytest.approx(2.0 * model.regularizer().item())
    before = model.regularizer().item()
    model[0].weight = torch.nn.Parameter(3.0 * model[0].weight.detach())
    assert model.regularizer().item() > before  # it follows a weight that is replaced


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


def train(model, regularizer, steps=45, optimiser=torch.optim.SGD, **settings):
    """Ordinary steps, with the penalty computed twice in each: once to be shown."""
    optimiser = optimiser([p for p in model.parameters() if p.requires_grad], lr=1e-4, **settings)
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
def test_a_head_that_only_the_penalty_trains_is_told(of):
    model = network()
    old = list(model.parameters())  # as an optimiser holds them that was made before
    regularizer = FragilityRegularizer(model[-1] if of == "layer" else model[-1].weight)
    kept = model[-1]
    model[-1] = torch.nn.Linear(5, 3)
    optimiser = torch.optim.Adam([*old, *model[-1].parameters()])
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


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # inductor itself uses it
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
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # dynamo itself does it
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
        ({"sharpness": inf}, ValueError, "sharpness must be finite"),
        ({"layer_or_weight": torch.ones(0, 3)}, ValueError, r"shape \(0, 3\)"),
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
