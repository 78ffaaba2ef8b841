"""The gradient of the index is no constant: its derivative raises."""

import pytest

torch = pytest.importorskip("torch")

from fragility.torch import fragility_index  # noqa: E402

LABELS = torch.arange(12) % 3


def logits(n_classes=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, n_classes, generator=generator, dtype=torch.float64)


def index_of_two(z):
    return fragility_index(z[:, 0].sigmoid(), LABELS.clamp_max(1))


def index_of_three(z):
    return fragility_index(z.softmax(1), LABELS)


def rest(z):
    return fragility_index(z.softmax(1), LABELS, multi_class="ovr", average=None).sum()


def separated(z):
    """Index zero: its gradient is zero, its second derivative is not known to be."""
    return fragility_index(z[:, 0].sigmoid() / 4 + LABELS.clamp_max(1) / 2, LABELS.clamp_max(1))


EACH = [index_of_two, index_of_three, rest, separated]


@pytest.mark.parametrize("function", EACH)
def test_a_second_derivative_raises(function):
    z = logits().requires_grad_()
    (gradient,) = torch.autograd.grad(function(z), z, create_graph=True)
    with pytest.raises(RuntimeError, match=r"index has no second derivative, .*detach\(\)"):
        gradient.sum().backward()
    with pytest.raises(RuntimeError, match="has no second derivative"):
        torch.autograd.functional.hessian(function, logits())


@pytest.mark.parametrize("columns", [1, 3])
def test_also_of_the_probabilities_themselves(columns):
    labels = LABELS if columns == 3 else LABELS.clamp_max(1)
    probs = logits().softmax(1)[:, :columns].squeeze(1).requires_grad_()
    (gradient,) = torch.autograd.grad(fragility_index(probs, labels), probs, create_graph=True)
    with pytest.raises(RuntimeError, match="fragility_index has no second derivative"):
        gradient.square().sum().backward()


@pytest.mark.parametrize("function", EACH)
def test_the_first_derivative_is_the_same_with_a_graph(function):
    z = logits().requires_grad_()
    (plain,) = torch.autograd.grad(function(z), z)
    (graphed,) = torch.autograd.grad(function(z), z, create_graph=True)
    assert torch.equal(plain, graphed)
    # Other terms of a loss may be differentiated twice beside it.
    (gradient,) = torch.autograd.grad(z.pow(3).sum() + function(z).detach(), z, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), z)
    torch.testing.assert_close(second, 6.0 * z.detach())


def test_a_changed_input_is_no_error():
    """As before: the gradient is that of the numbers that were given."""
    z = logits().softmax(1).requires_grad_()
    index = fragility_index(z, LABELS)
    (expected,) = torch.autograd.grad(index, z, retain_graph=True)
    with torch.no_grad():
        z.mul_(0.5)
    (found,) = torch.autograd.grad(index, z)
    assert torch.equal(found, expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own forward mode uses it
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.hessian, torch.func.jacrev])
def test_transforms_of_functions(transform):
    with pytest.raises(RuntimeError, match=r"not work within torch\.func.*torch\.autograd\.grad"):
        transform(index_of_three)(logits())
    with pytest.raises(RuntimeError, match=r"not work within torch\.func"):
        torch.func.vmap(index_of_two)(logits()[None])
