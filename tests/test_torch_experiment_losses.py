"""The index of recent predictions as a term of a loss, against literal sums over pairs."""

import io
import math
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fragility  # noqa: E402
from experiments.deep.losses import FragilityLoss  # noqa: E402

from .reference.torch_terms import mean_over_pairs, pair_level, worst_case_error  # noqa: E402

COMPILER = os.environ.get("FRAGILITY_COMPILER", "aot_eager")


def batch(seed, n, n_classes, signal=1.5, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, n_classes, (n,), generator=g)
    labels[:n_classes] = torch.arange(n_classes)
    logits = torch.randn(n, n_classes, generator=g, dtype=dtype)
    logits[torch.arange(n), labels] += signal
    return logits, labels


def full_table(term):
    """s by [i][j], for two classes too."""
    if term.n_classes > 2:
        return term._s.double().tolist()
    s = term._s[0, 0].item()
    return [[math.nan, s], [s, math.nan]]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_s_finds_the_root_of_the_bank(n_classes):
    logits, labels = batch(0, 96, n_classes)
    term = FragilityLoss(n_classes, bank_size=96)
    for _ in range(20):
        term(logits, labels)
    pairs = fragility.fragility_index(
        labels.numpy(), logits.double().softmax(1).numpy(), average=None
    )
    ours = 1 / np.array(full_table(term))
    off = ~np.eye(n_classes, dtype=bool)
    np.testing.assert_allclose(ours[off], np.clip(pairs[off], 0.01, 2.0), rtol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_two_warm_steps_follow_a_moving_model(n_classes):
    """After a small change of the predictions the tracked s is the root again."""
    logits, labels = batch(3, 128, n_classes)
    term = FragilityLoss(n_classes, bank_size=128)
    for _ in range(20):
        term(logits, labels)
    term(1.05 * logits, labels)
    probs = (1.05 * logits).double().softmax(1).numpy()
    pairs = np.clip(fragility.fragility_index(labels.numpy(), probs, average=None), 0.01, 2.0)
    off = ~np.eye(n_classes, dtype=bool)
    np.testing.assert_allclose(1 / np.array(full_table(term))[off], pairs[off], rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_term_is_the_worst_case_error_and_its_gradient_that_of_the_level(n_classes):
    """With the batch as bank: value E_P*[ε], gradient that of the mean of h(s)/s at fixed s."""
    logits, labels = batch(1, 40, n_classes, dtype=torch.float64)
    term = FragilityLoss(n_classes, weight=0.7, bank_size=40)
    for _ in range(15):
        term(logits, labels)
    term.eval()
    leaf = logits.clone().requires_grad_()
    value = term(leaf, labels)
    value.backward()
    table, classes = full_table(term), labels.tolist()

    def literal(function, z):
        return 0.7 * mean_over_pairs(function, z.softmax(1).tolist(), classes, table)

    assert value.item() == pytest.approx(literal(worst_case_error, logits), rel=1e-5)
    for n, c in [(0, 0), (5, 1), (17, n_classes - 1), (39, 0)]:
        shift = torch.zeros_like(logits)
        shift[n, c] = 1e-5
        slope = (literal(pair_level, logits + shift) - literal(pair_level, logits - shift)) / 2e-5
        assert leaf.grad[n, c].item() == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_gradient_lowers_the_index():
    logits, labels = batch(2, 200, 3)
    logits.requires_grad_()
    term, optimiser = FragilityLoss(3, bank_size=200), torch.optim.SGD([logits], lr=20.0)

    def index():
        return fragility.fragility_index(labels.numpy(), logits.detach().softmax(1).numpy())

    before = index()
    for _ in range(30):
        optimiser.zero_grad()
        term(logits, labels).backward()
        optimiser.step()
    assert index() < 0.8 * before


def test_bank_keeps_the_last_predictions():
    term = FragilityLoss(3, bank_size=10)
    logits, labels = batch(5, 27, 3)
    for part in (slice(0, 4), slice(4, 12), slice(12, 12), slice(12, 27)):  # one is empty
        term(logits[part], labels[part])
    kept = {tuple(row) for row in logits[-10:].softmax(1).tolist()}
    assert {tuple(row) for row in term._bank.tolist()} == kept
    assert sorted(term._bank_y_true.tolist()) == sorted(labels[-10:].tolist())


def test_missing_classes_are_left_out_and_come_back():
    term = FragilityLoss(3, bank_size=60)
    logits, labels = batch(6, 30, 3)
    only = labels == 1
    leaf = logits[only].clone().requires_grad_()
    value = term(leaf, labels[only])
    value.backward()
    assert value.item() == 0.0
    assert not leaf.grad.any()
    two = labels != 2
    value = term(logits[two], labels[two])
    assert value.item() != 0.0
    start = FragilityLoss(3)._s
    moved = term._s != start
    assert moved.tolist() == [[False, True, False], [True, False, False], [False] * 3]
    term(logits, labels)
    assert (term._s != start).sum() == 6
    # A batch of one class is weighed by what the bank knows of the others.
    leaf = logits[only].clone().requires_grad_()
    term(leaf, labels[only]).backward()
    assert (leaf.grad[:, 1] < 0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_finite_where_the_index_is_zero_or_infinite(sign):
    labels = torch.arange(40) % 4
    logits = (sign * 100.0 * torch.nn.functional.one_hot(labels)).requires_grad_()
    term = FragilityLoss(4)
    for _ in range(30):
        value = term(logits, labels)
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()
    off = ~torch.eye(4, dtype=torch.bool)
    assert (term._s[off] == (100.0 if sign > 0 else 0.5)).all()


def test_nan_does_not_stay():
    logits, labels = batch(7, 32, 3)
    term, clean = FragilityLoss(3, bank_size=64), FragilityLoss(3, bank_size=64)
    bad = logits.clone()
    bad[3, 1] = math.nan
    term(bad, labels)
    assert term._s.isfinite().all()
    for _ in range(30):
        term(logits, labels)
        clean(logits, labels)
    torch.testing.assert_close(term(logits, labels), clean(logits, labels))


def test_warmup_and_ramp_count_training_calls():
    logits, labels = batch(8, 64, 3)
    plain = FragilityLoss(3, weight=1.0, bank_size=64)
    term = FragilityLoss(3, weight=1.0, bank_size=64, warmup=2, ramp=4)
    shares = []
    for _ in range(8):
        shares.append((term(logits, labels) / plain(logits, labels)).item())
        term.eval()
        term(logits, labels)  # counts for nothing
        term.train()
    np.testing.assert_allclose(shares, [0, 0, 0.25, 0.5, 0.75, 1, 1, 1], rtol=1e-6)


def test_evaluation_changes_nothing():
    logits, labels = batch(9, 64, 3)
    term = FragilityLoss(3)
    term(logits, labels)
    before = {k: v.clone() for k, v in term.state_dict().items()}
    term.eval()
    term(2 * logits, labels)
    for name, value in term.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_saved_state_goes_on_as_if_nothing_happened():
    logits, labels = batch(10, 90, 3)
    term = FragilityLoss(3, weight=0.5, bank_size=50, warmup=1, ramp=5)
    term(logits[:30], labels[:30])
    term(logits[30:60], labels[30:60])
    file = io.BytesIO()
    torch.save(term.state_dict(), file)
    file.seek(0)
    other = FragilityLoss(3, weight=0.5, bank_size=50, warmup=1, ramp=5)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert not list(term.parameters())
    for _ in range(3):
        assert torch.equal(term(logits[60:], labels[60:]), other(logits[60:], labels[60:]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # inductor itself uses it
@pytest.mark.parametrize("n_classes", [2, 3])
def test_compiled_whole(n_classes):
    logits, labels = batch(11, 64, n_classes)
    plain, other = FragilityLoss(n_classes), FragilityLoss(n_classes)
    compiled = torch.compile(other, backend=COMPILER, fullgraph=True)
    for step in range(3):
        a = (logits * (1 + step)).requires_grad_()
        b = a.detach().clone().requires_grad_()
        x, y = plain(a, labels), compiled(b, labels)
        x.backward()
        y.backward()
        torch.testing.assert_close(x, y)
        torch.testing.assert_close(a.grad, b.grad)
    torch.testing.assert_close(plain._s, other._s)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("logit", [math.nan, math.inf])
def test_not_finite_logits_never_give_a_finite_term(training, logit):
    term = FragilityLoss(3, warmup=3).train(training)
    logits, labels = batch(15, 6, 3)
    for filled in (False, True):  # also while there is no pair in the bank
        bad = logits.clone()
        bad[0, 1] = logit
        assert term(bad[:1], labels[:1]).isnan(), filled
        term(logits, labels)


def test_the_last_samples_of_a_batch_larger_than_the_bank_are_remembered():
    term = FragilityLoss(2, bank_size=3)
    logits = torch.randn(5, 2)
    term(logits, torch.tensor([1, 0, 1, 0, 0]))
    assert sorted(term._bank_y_true.tolist()) == [0, 0, 1]
    expected = logits[2:].softmax(1)[:, 1]
    torch.testing.assert_close(term._bank.flatten().sort().values, expected.sort().values)
