"""States as bytes: genuine ones are read back, tampered ones are refused or hold together."""

from __future__ import annotations

import contextlib
import copy
import subprocess
import sys
import textwrap
from functools import partial
from math import inf, nan

import numpy as np
import pytest

from fragility import Costs, Report, ScoreState
from fragility.envelope import Envelope
from fragility.report.data import to_dict
from fragility.scores.stored import LIGHTEST

from .fuzzing import states
from .fuzzing.states import made

ENVELOPE = Envelope(b"fragility-state", "ScoreState", version=3)
STATES = states.states()
HELD = [name for name, state in STATES.items() if state.complete and state.held]
BINS = [name for name, state in STATES.items() if not state.complete]


#: Those that have few arrays of few numbers.
FEW = [name for name in STATES if name not in ("two priced bins", "three bins", "four all sample")]


def opened(name: str) -> tuple[dict, list[np.ndarray]]:
    return ENVELOPE.open(STATES[name].to_bytes(), lambda head, arrays: (head, arrays))


def resealed(name: str, head: dict | None = None, arrays: dict | None = None) -> bytes:
    """Bytes of a state with other values in the head and other arrays, and a valid checksum."""
    own, parts = opened(name)
    for place, part in (arrays or {}).items():
        parts[place] = part
    return ENVELOPE.seal({**own, **(head or {})}, parts)


def refused(data: bytes) -> str:
    with pytest.raises(ValueError, match="ScoreState") as caught:
        ScoreState.from_bytes(data)
    message = str(caught.value)
    assert message.endswith(".")
    assert len(message) < 2_000
    return message


def read(data: bytes) -> ScoreState | None:
    """The state, or None where a sentence refuses it."""
    try:
        return ScoreState.from_bytes(data)
    except ValueError as error:
        refusal = str(error)
    assert refusal.endswith(".")
    assert 20 < len(refusal) < 2_000
    return None


def figures(state: ScoreState) -> dict:
    costs = Costs(None if state.priced else 4.0, 1.0)
    return to_dict(Report.from_state(state, costs))


def same(one, two, where: str = "") -> None:
    """Equal trees; numbers may differ by rounding, as the cases come in another order."""
    assert type(one) is type(two), where
    if isinstance(one, dict):
        assert one.keys() == two.keys(), where
        for key, part in one.items():
            same(part, two[key], f"{where} {key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), where
        for place, (a, b) in enumerate(zip(one, two, strict=True)):
            same(a, b, f"{where} {place}")
    elif isinstance(one, float):
        assert one == pytest.approx(two, rel=1e-9, abs=1e-12, nan_ok=True), where
    else:
        assert one == two, where


# Genuine states.


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_states_are_read_back(name):
    state = STATES[name]
    data = state.to_bytes()
    again = ScoreState.from_bytes(data)
    assert again.to_bytes() == data
    assert state.to_bytes() == data
    assert repr(again) == repr(state)
    for what in ("models", "groups", "weighted", "hold", "positive", "priced", "complete"):
        assert getattr(again, what) == getattr(state, what), what
    assert again.labels.tolist() == state.labels.tolist()
    assert again.support.tolist() == state.support.tolist()
    assert again.group_support.tolist() == state.group_support.tolist()
    if state.support.any():
        same(figures(again), figures(state))
        assert again.to_bytes() == data, "a report changed a state"


def test_the_corpus_has_every_kind():
    kinds = {(s.is_binary, s.weighted, bool(s.priced), len(s.groups)) for s in STATES.values()}
    assert {kind[0] for kind in kinds} == {kind[1] for kind in kinds} == {True, False}
    assert {kind[2] for kind in kinds} == {True, False}
    assert {kind[3] for kind in kinds} == {0, 1, 2}
    assert any(s.sample() is not None for s in STATES.values() if not s.complete)


@pytest.mark.parametrize("labels", [[False, True], ["ä", "\U0001f600"], [-(2**62), 2**62]])
@pytest.mark.parametrize("hold", [0.0, inf])
def test_labels_of_every_kind(labels, hold):
    state = made(2, hold, labels=labels)
    again = ScoreState.from_bytes(state.to_bytes())
    assert again.to_bytes() == state.to_bytes()
    assert again.labels.tolist() == labels
    assert again.merge(state).support.tolist() == [40, 40]


def test_states_that_were_read_go_on_as_if_they_were_not():
    rng = np.random.default_rng(3)
    y, p, w = rng.integers(0, 3, 120), rng.dirichlet(np.ones(3), 120), rng.gamma(1.0, size=120)
    for hold in (0.0, 30.0, 90.0, 1e6):
        whole, again = (ScoreState([0, 1, 2], ["a"], (), True, hold) for _ in range(2))
        whole.update(y, p, w)
        for part in np.array_split(np.arange(120), 8):
            again = ScoreState.from_bytes(again.to_bytes()).update(y[part], p[part], w[part])
        assert again.to_bytes() == whole.to_bytes()


# Foreign and damaged bytes.


@pytest.mark.parametrize(
    "data", [b"", b"x", b"fragility-state", b"fragility-state" * 9, b"\x00" * 99]
)
def test_foreign_bytes(data):
    refused(data)


@pytest.mark.parametrize("data", ["text", None, 5, [1], {}])
def test_what_is_not_bytes(data):
    assert "read from bytes" in refused(data)


def test_other_formats_are_refused():
    from fragility import FragilitySketch

    refused(FragilitySketch(16).update([0, 1], [0.1, 0.7]).to_bytes())
    head, arrays = opened("two bins")
    for version in (1, 2, 4):
        other = Envelope(b"fragility-state", "ScoreState", version=version)
        assert f"format {version}" in refused(other.seal(head, arrays))


@pytest.mark.parametrize("name", ["two held", "four all sample"])
def test_every_flipped_bit_is_noticed(name):
    data, rng = STATES[name].to_bytes(), np.random.default_rng(0)
    for place in rng.integers(0, 8 * len(data), 80).tolist():
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        refused(bytes(changed))
    for length in [*range(60), *rng.integers(0, len(data), 40).tolist()]:
        refused(data[:length])
    refused(data + b"\x00")


# Tampered content.

FLAWS = [
    {"labels": []},
    {"labels": [0]},
    {"labels": [0, 0]},
    {"labels": [0, "1"]},
    {"labels": [0, True]},
    {"labels": [0.0, 1.0]},
    {"labels": [None, 1]},
    {"labels": [[0], [1]]},
    {"labels": "01"},
    {"labels": {"0": 1}},
    {"labels": ["a\x00", "b"]},
    {"labels": ["a" * 10**6, *map(str, range(9_000))]},
    {"positive": 2},
    {"positive": -1},
    {"positive": True},
    {"positive": 1.0},
    {"positive": None},
    {"models": []},
    {"models": ["a", "a"]},
    {"models": [1]},
    {"models": "a"},
    {"models": None},
    {"groups": None},
    {"groups": {}},
    {"groups": [["g", []]]},
    {"groups": [["g", ["x"]]]},
    {"groups": [["g", ["x", "x"]]]},
    {"groups": [["g", ["x"]], ["g", ["x"]]]},
    {"groups": [[1, ["x"]]]},
    {"groups": [["g", [1]]]},
    {"groups": [["g", "xy"]]},
    {"weighted": 1},
    {"weighted": None},
    {"weighted": "yes"},
    {"priced": 0},
    {"priced": "no"},
    {"complete": None},
    {"complete": 1},
    {"hold": -1.0},
    {"hold": nan},
    {"hold": inf},
    {"hold": 5},
    {"hold": "5"},
    {"hold": True},
    {"more": 1},
]


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: str(flaw)[:40])
@pytest.mark.parametrize("name", ["two held", "two bins"])
def test_heads_that_cannot_be(name, flaw):
    refused(resealed(name, flaw))


@pytest.mark.parametrize("name", ["two held", "two bins", "three sample"])
def test_heads_that_belong_to_other_content(name):
    head, _ = opened(name)
    for other in (
        {"complete": not head["complete"]},
        {"weighted": not head["weighted"]},
        {"priced": True},
        {"models": ["a", "b"]},
        {"labels": [*head["labels"], type(head["labels"][0])(7)]},
        {"labels": head["labels"][:-1]},
        {"groups": [["g", ["x", "y"]]]},
    ):
        refused(resealed(name, other))


@pytest.mark.parametrize("name", STATES)
def test_a_head_that_lacks_something(name):
    head, arrays = opened(name)
    for key in head:
        rest = {other: value for other, value in head.items() if other != key}
        assert key in refused(ENVELOPE.seal(rest, arrays))


@pytest.mark.parametrize("name", FEW)
def test_arrays_that_are_missing_or_too_many(name):
    head, arrays = opened(name)
    refused(ENVELOPE.seal(head, []))
    for place in range(len(arrays)):
        refused(ENVELOPE.seal(head, arrays[:place] + arrays[place + 1 :]))
        if "sample" not in name or place != len(arrays) - 3:
            refused(ENVELOPE.seal(head, arrays[:place]))
    for kind in (np.int64, np.float64):
        for shape in (0, 1, (2, 3)):
            refused(ENVELOPE.seal(head, [*arrays, np.zeros(shape, dtype=kind)]))


@pytest.mark.parametrize("name", FEW)
def test_arrays_of_other_types_and_shapes(name):
    _, arrays = opened(name)
    for place, part in enumerate(arrays):
        with np.errstate(invalid="ignore"):
            other = part.astype(np.int64 if part.dtype.kind == "f" else np.float64)
        refused(resealed(name, arrays={place: other}))
        longer = np.concatenate([part, part], axis=-1)
        for other in [part[..., None], part[..., :-1], longer] if part.size else [part[..., None]]:
            refused(resealed(name, arrays={place: other}))


def hostile(part: np.ndarray) -> list[np.ndarray]:
    """The same array with numbers that cannot be, or that may only be in another place."""
    found = []
    values = [-1, 2**62, -(2**63)] if part.dtype.kind == "i" else [-0.5, 1.5, nan, inf, -inf, 1e300]
    for value in values:
        other = part.copy()
        other.reshape(-1)[part.size // 2] = value
        found.append(other)
    found += [np.zeros_like(part), part[::-1].copy(), part[..., ::-1].copy()]
    return [other for other in found if not np.array_equal(other, part, equal_nan=True)]


def checked(data: bytes) -> bool:
    """Whether the bytes are a state, which then makes a report or says why not."""
    state = read(data)
    if state is None:
        return False
    if state.is_binary or data[-1] % 4 == 0:  # a report takes some time
        with contextlib.suppress(ValueError):
            Report.from_state(state, calibrate=state.is_binary)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STATES if STATES[name].support.any()])
def test_arrays_of_other_numbers(name):
    """Every array in turn: the state is refused, or makes a report, or a sentence."""
    _, arrays = opened(name)
    for place, part in enumerate(arrays):
        # Of many arrays some: others are like them, of another column or model.
        if part.size and (len(arrays) < 30 or place % 3 < 1 or place > len(arrays) - 4):
            for other in hostile(part):
                checked(resealed(name, arrays={place: other}))


def cases_changed(name: str, row: int, value: float, place: int = 0) -> bytes:
    """A state that holds its cases, with one number of one column changed."""
    _, arrays = opened(name)
    columns = arrays[3].copy()
    columns[row, place] = value
    return resealed(name, arrays={3: columns})


#: Rows of the columns of "two all held": score, weight, cost, two groups.
SCORE, WEIGHT, COST, SITE, SEX = range(5)


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (SCORE, -0.1, "scores are not from 0 to 1"),
        (SCORE, 1.1, "scores are not from 0 to 1"),
        (SCORE, nan, "not finite"),
        (SCORE, inf, "not finite"),
        (WEIGHT, 0.0, "weights are out of range"),
        (WEIGHT, -1.0, "weights are out of range"),
        (WEIGHT, LIGHTEST / 2.0, "weights are out of range"),
        (WEIGHT, 1e31, "weights are out of range"),
        (WEIGHT, nan, "not finite"),
        (COST, -1.0, "costs are negative"),
        (COST, inf, "not finite"),
        (SITE, 2.0, "groups that it does not have"),
        (SITE, -1.0, "groups that it does not have"),
        (SITE, 0.5, "groups that it does not have"),
        (SEX, 3.0, "groups that it does not have"),
    ],
)
def test_cases_that_cannot_be(row, value, message):
    assert message in refused(cases_changed("two all held", row, value))


@pytest.mark.parametrize("name", HELD)
def test_classes_of_cases_fit_their_number(name):
    _, arrays = opened(name)
    support, group_support, codes = arrays[:3]
    for value in (-1, support.size, 2**62, (codes[0] + 1) % support.size):
        other = codes.copy()
        other[0] = value
        refused(resealed(name, arrays={2: other}))
    refused(resealed(name, arrays={0: support + 1}))
    refused(resealed(name, arrays={0: -support}))
    if group_support.size:
        refused(resealed(name, arrays={1: group_support + 1}))
        refused(resealed(name, arrays={1: group_support[::-1]}))


@pytest.mark.parametrize("name", BINS)
def test_bins_fit_the_number_of_cases(name):
    _, arrays = opened(name)
    support, group_support = arrays[:2]
    refused(resealed(name, arrays={0: support + 1}))
    refused(resealed(name, arrays={0: -support - 1}))
    refused(resealed(name, arrays={0: np.full_like(support, 2**62)}))
    if group_support.size:
        refused(resealed(name, arrays={1: group_support + 1}))
    if support.any():
        held = arrays[2]
        for other in (held[::-1], held - held[0] - 1, held + 10**9, np.zeros_like(held)):
            assert "bins" in refused(resealed(name, arrays={2: other}))


@pytest.mark.parametrize("name", STATES)
def test_random_changes(name):
    """A little of ``python -m tests.fuzzing states``: refusals are sentences."""
    data = STATES[name].to_bytes()
    for changed in states.random_changes(data, np.random.default_rng(list(name.encode())), 15):
        read(changed)


# Merging.


def two(groups=(), **options):
    labels, models = options.pop("labels", [0, 1]), options.pop("models", ["a"])
    state = ScoreState(labels, models, groups, **options)
    names = state.groups and {key: [names[0]] * 4 for key, names in state.groups.items()}
    scores = {name: [0.2, 0.7, 0.6, 0.4] for name in models}
    return state.update(np.array(labels)[[0, 1, 0, 1]], scores, groups=names or None)


def priced(**options):
    return ScoreState([0, 1], ["a"], **options).update([0, 1], [0.2, 0.7], case_costs=[1.0, 2.0])


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
@pytest.mark.parametrize(
    "other",
    [
        lambda **o: two(labels=[0, 2], **o),
        lambda **o: two(labels=["0", "1"], **o),
        lambda **o: two(labels=[1, 0], **o),
        lambda **o: two(models=["b"], **o),
        lambda **o: two(models=["a", "b"], **o),
        lambda **o: two(models=["b", "a"], **o),
        lambda **o: two(groups=["x"], **o),
        lambda **o: two(groups={"g": ["x"], "h": ["x"]}, **o),
        lambda **o: two(pos_label=0, **o),
        lambda **o: priced(**o),
        lambda **o: ScoreState([0, 1, 2], ["a"], **o),
        lambda **o: ScoreState([0, 1], ["b"], **o),
    ],
)
def test_states_that_do_not_merge(other, hold):
    state, other = two(hold=hold), other(hold=hold)
    before = state.to_bytes(), other.to_bytes()
    for one, two_ in ((state, other), (other, state)):
        with pytest.raises(ValueError, match=r"differ|costs by case"):
            one.merge(two_)
        assert (state.to_bytes(), other.to_bytes()) == before


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
def test_groups_that_do_not_merge(hold):
    state = two(groups={"g": ["x", "y"], "h": ["x"]}, hold=hold)
    before = state.to_bytes()
    for groups in ({"g": ["y", "x"], "h": ["x"]}, {"g": ["x", "y"]}, {"g": ["x"], "h": ["x"]}):
        with pytest.raises(ValueError, match="differ in groups"):
            state.merge(two(groups=groups, hold=hold))
        assert state.to_bytes() == before


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
@pytest.mark.parametrize("other", [None, 5, b"bytes", "text", {}, ScoreState])
def test_only_states_merge(other, hold):
    state = two(hold=hold)
    before = state.to_bytes()
    with pytest.raises(TypeError, match="merges with a state"):
        state.merge(other)
    assert state.to_bytes() == before


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
def test_a_state_does_not_merge_with_itself(hold):
    state = two(hold=hold)
    before = state.to_bytes()
    with pytest.raises(ValueError, match="itself"):
        state.merge(state)
    assert state.to_bytes() == before


@pytest.mark.parametrize("name", STATES)
def test_a_merge_leaves_the_other_as_it_was(name):
    data = STATES[name].to_bytes()
    one, other = ScoreState.from_bytes(data), ScoreState.from_bytes(data)
    one.merge(other)
    assert other.to_bytes() == data
    one.merge(ScoreState.from_bytes(data))
    assert other.to_bytes() == data
    assert (one.support == 3 * other.support).all()


def parts_of_a_sample():
    """Cases without weights, and with."""
    rng = np.random.default_rng(0)
    y, p = np.arange(200) % 3, rng.dirichlet(np.ones(3), 200)
    return y, p, rng.random(200) + 0.1


def test_a_sample_without_weights_meets_held_cases_with_weights():
    y, p, w = parts_of_a_sample()
    state = ScoreState([0, 1, 2], ["a"], hold=60.0).update(y[:100], p[:100])
    held = ScoreState([0, 1, 2], ["a"], weighted=True, hold=60.0).update(y[:6], p[:6], w[:6])
    state.merge(held)
    assert ScoreState.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()


def test_a_sample_without_weights_meets_one_with_weights():
    y, p, w = parts_of_a_sample()
    state = ScoreState([0, 1, 2], ["a"], hold=60.0).update(y[:100], p[:100])
    other, whole = (ScoreState([0, 1, 2], ["a"], (), True, 60.0) for _ in range(2))
    state.merge(other.update(y[100:], p[100:], w[100:]))
    whole.update(y[:100], p[:100]).update(y[100:], p[100:], w[100:])
    assert state.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "holds", [(0.0, 60.0), (30.0, 90.0), (30.0, 1e6), (0.0, 1e6), (60.0, 240.0)]
)
def test_states_that_hold_unlike_numbers_of_cases(holds, weighted):
    """The least of them counts, whatever the order."""
    y, p, w = parts_of_a_sample()
    weights = [w[:70], w[70:]] if weighted else [None, None]

    def parts():
        for hold, rows, own in zip(holds, (slice(70), slice(70, None)), weights, strict=True):
            yield ScoreState([0, 1, 2], ["a"], (), weighted, hold).update(y[rows], p[rows], own)

    one, other = parts()
    whole = ScoreState([0, 1, 2], ["a"], (), weighted, holds[0]).update(
        y, p, w if weighted else None
    )
    expected = whole.to_bytes()
    assert one.merge(other).to_bytes() == expected
    one, other = parts()
    assert other.merge(one).to_bytes() == expected
    sample = other.sample()
    assert (0 if sample is None else sample.counts.size) == holds[0] // 3


# Updates.

Y, P = [0, 1, 0, 1], [0.2, 0.7, 0.6, 0.4]


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"y_true": [0, 2, 0, 1]}, "label|class"),
        ({"y_true": ["0", "1", "0", "1"]}, "label|class|text"),
        ({"y_true": [0, 1, 0]}, "sample|length|shape"),
        ({"y_true": [[0, 1], [0, 1]]}, "one-dimensional|1d|1-D|shape"),
        ({"y_true": [0.0, nan, 0.0, 1.0]}, "missing labels"),
        ({"scores": {"a": P, "b": P[:3]}}, "sample|length|shape"),
        ({"scores": {"a": P, "b": [0.2, 0.7, nan, 0.4]}}, "NaN"),
        ({"scores": {"a": P, "b": [0.2, inf, 0.1, 0.4]}}, "infinit|finite"),
        ({"scores": {"a": P, "b": [0.2, 1.2, 0.6, 0.4]}}, "0 and 1|0 to 1|probabilit"),
        ({"scores": {"a": P, "b": [0.2, -0.2, 0.6, 0.4]}}, "0 and 1|0 to 1|probabilit"),
        ({"scores": {"a": P, "b": [["x"]] * 4}}, "number|shape|column|string"),
        ({"scores": {"a": P, "b": np.full((4, 2), 0.4)}}, "sum"),
        ({"scores": {"a": P, "b": np.full((4, 3), 1 / 3)}}, "column|shape"),
        ({"scores": {"a": P}}, "missing"),
        ({"scores": {"a": P, "b": P, "c": P}}, "not models"),
        ({"scores": P}, "missing"),
        ({"groups": ["x", "y", "x", "z"]}, "was not told of"),
        ({"groups": ["x", "y", "x"]}, "entries for 4"),
        ({"groups": None}, "groups must be given"),
        ({"groups": {"other": ["x"] * 4}}, "groups must be given"),
        ({"case_costs": None}, "but not all"),
        ({"case_costs": [1.0, 2.0, 3.0]}, "shape"),
        ({"case_costs": [1.0, -2.0, 3.0, 1.0]}, "zero or more"),
        ({"case_costs": [1.0, nan, 3.0, 1.0]}, "finite|NaN"),
        ({"case_costs": [1.0, inf, 3.0, 1.0]}, "finite"),
        ({"sample_weight": [1.0, 1.0, 1.0, 1.0]}, "weighted=True"),
    ],
)
def test_refused_updates_change_nothing(given, match, hold):
    state = ScoreState([0, 1], ["a", "b"], ["x", "y"], hold=hold)
    good = {
        "y_true": Y,
        "scores": {"a": P, "b": P[::-1]},
        "groups": ["x", "y", "y", "x"],
        "case_costs": [1.0, 0.0, 2.0, 3.0],
    }
    for times in range(2):
        before = state.to_bytes()
        if times or "case_costs" not in given or given["case_costs"] is not None:
            with pytest.raises(ValueError, match=f"(?i){match}"):
                state.update(**{**good, **given})
        assert state.to_bytes() == before
        state.update(**good)
    assert state.support.tolist() == [4, 4]


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1.0, -1.0, 1.0, 1.0], "negative"),
        ([1.0, nan, 1.0, 1.0], "NaN"),
        ([1.0, inf, 1.0, 1.0], "infinit|finite"),
        ([1.0, 1e-31, 1.0, 1.0], "takes weights from"),
        ([1.0, 1e31, 1.0, 1.0], "takes weights from"),
        ([1.0, 1.0, 1.0], "sample_weight"),
        ("abcd", "sample_weight"),
    ],
)
def test_refused_weights_change_nothing(weights, match, hold):
    state = ScoreState([0, 1], ["a"], weighted=True, hold=hold).update(Y, P, [1.0, 2.0, 0.0, 0.5])
    before = state.to_bytes()
    with pytest.raises(ValueError, match=f"(?i){match}"):
        state.update(Y, P, weights)
    assert state.to_bytes() == before
    assert state.update(Y, P, [0.0] * 4).to_bytes() == before
    assert state.update([], []).to_bytes() == before


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
def test_refused_rows_of_several_classes(hold):
    state = ScoreState([0, 1, 2], ["a"], hold=hold).update([0, 1, 2], np.eye(3))
    before = state.to_bytes()
    for rows in (np.full((3, 3), 0.3), np.eye(3)[:2], np.eye(4)[:3], [0.1, 0.2, 0.3], -np.eye(3)):
        with pytest.raises(ValueError, match="scores"):
            state.update([0, 1, 2], rows)
        assert state.to_bytes() == before


# What was once accepted, or went wrong.


@pytest.mark.parametrize("name", ["two held", "three sample"])
def test_only_bytes_that_the_library_writes_are_read(name):
    rng = np.random.default_rng(1)
    for changed in states.random_changes(STATES[name].to_bytes(), rng, 25):
        states.check(changed)
    _, arrays = opened(name)  # the cases, or the sample, in another order
    first = 2 if name == "two held" else len(arrays) - 3
    turned = {k: arrays[k][..., ::-1].copy() for k in range(first, len(arrays))}
    refused(resealed(name, arrays=turned))


@pytest.mark.parametrize(
    ("name", "hold"),
    [("two held", 0.0), ("two held", 39.0), ("two bins", None), ("two bins", 40.0)],
)
def test_states_hold_what_they_say(name, hold):
    refused(resealed(name, {"hold": hold}))


@pytest.mark.parametrize("name", ["two held", "two bins"])
def test_states_with_cases_know_whether_these_have_costs(name):
    refused(resealed(name, {"priced": None}))


def test_a_state_that_lacks_its_sample():
    head, arrays = opened("three sample")
    refused(ENVELOPE.seal(head, arrays[:-3]))


@pytest.mark.parametrize("name", ["two bins", "two all bins", "two priced bins", "three bins"])
def test_bins_and_decisions_are_of_the_same_cases(name):
    _, arrays = opened(name)
    for place, part in enumerate(arrays):
        if part.ndim == 2 and part.shape[1] > 30 and part.dtype.kind == "i" and (part > 0).all():
            # Every sum times 1 + 2 ** 32, or so.
            refused(resealed(name, arrays={place: np.concatenate([part, part])}))


@pytest.mark.parametrize("hold", [0.0, 2.0**20])
def test_costs_that_are_too_large(hold):
    state = ScoreState([0, 1], ["a"], hold=hold)
    with np.errstate(over="raise"), pytest.raises(ValueError, match="costs"):
        state.update([0, 1] * 5, [0.2, 0.7] * 5, case_costs=[1e200] * 10)
    assert not state.support.any()


@pytest.mark.parametrize("cost", [1e-20 / 3.0, 1e-60])
def test_small_and_large_costs_are_read_back(cost):
    """Or refused in the first place."""
    try:
        state = ScoreState([0, 1], ["a"], weighted=True, hold=0.0).update(
            [0, 1], [0.2, 0.7], [1e-30, 1.0], case_costs=[cost, 1.0]
        )
    except ValueError:
        return
    assert ScoreState.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()


def test_columns_of_groups_in_another_order():
    one = two(groups={"g": ["x", "y"], "h": ["x", "y"]})
    other = two(groups={"h": ["x", "y"], "g": ["x", "y"]})
    with pytest.raises(ValueError, match="groups"):
        one.merge(other)


def test_names_that_end_with_a_zero_are_other_names():
    with pytest.raises(ValueError, match="models"):
        two(models=["a\x00"]).merge(two(models=["a"]))


@pytest.mark.parametrize("merged", [False, True])
def test_too_many_classes_change_nothing(merged):
    state, more = (ScoreState(range(300), ["a"], hold=600.0) for _ in range(2))
    state.update([0, 1], np.full((2, 300), 1 / 300))
    before = state.to_bytes()
    more.update([0, 1], np.full((2, 300), 1 / 300))
    adding = (
        partial(state.merge, more) if merged else partial(state.update, [0, 1], np.eye(300)[:2])
    )
    with pytest.raises(ValueError, match="too many"):
        adding()
    assert state.to_bytes() == before


def test_scores_by_something_else_than_names():
    with pytest.raises(ValueError, match="models"):
        ScoreState([0, 1], ["a"]).update(Y, {1: P})


def test_counts_do_not_wrap():
    state = two(hold=0.0)
    for _ in range(60):
        state.merge(copy.deepcopy(state))
    assert state.support.tolist() == [2 << 60, 2 << 60]
    with pytest.raises(ValueError, match=r"2\*\*63"):
        state.merge(copy.deepcopy(state))
    assert ScoreState.from_bytes(state.to_bytes())


def test_costs_without_an_error_cost():
    report = Report.from_state(made(2, 0.0, priced=True), {"review_cost": 1.0})
    assert report.models[0].policy is not None


@pytest.mark.outside
def test_little_memory_is_asked_for():
    """As much as the bytes themselves take and a state may have, whatever they say."""
    code = """
        import resource
        from tests.fuzzing import states
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        for changed in states.other_heads(states.made(2, 0.0).to_bytes()):
            if len(changed) < 100_000:
                continue
            try:
                states.ScoreState.from_bytes(changed)
            except ValueError:
                pass
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
