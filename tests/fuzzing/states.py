"""Bytes of states, changed by hand or at random, with the checksum of whoever changed them."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
from collections.abc import Callable, Iterator
from math import inf, isnan, prod
from typing import Any

import numpy as np

from fragility import AbsentClassWarning, Costs, Report, ScoreState

from .sketches import FLOATS, NESTED, NUMBERS, TEXTS, WHOLE, encoded

MAGIC, FIXED = b"fragility-state", struct.Struct("<HI")
START = len(MAGIC) + FIXED.size
FIELDS = ("labels", "positive", "models", "groups", "weighted", "priced", "hold", "complete")

#: Figures, and the ends of what each may be.
RANGES = {
    "fragility_index": (0.0, inf),
    "ratio": (0.0, inf),
    "auc": (0.0, 1.0),
    "log_loss": (0.0, inf),
    "brier": (0.0, 2.0),
    "calibration_error": (0.0, 1.0),
    "buffered_auc": (0.0, 1.0),
    "cvar": (-1.0, 1.0),
    "confident_error_rate": (0.0, 1.0),
    "aurc": (0.0, 1.0),
}


def sealed(head: bytes, body: bytes, version: int = 2, length: int | None = None) -> bytes:
    """Bytes with a checksum that fits."""
    length = len(head) if length is None else length
    content = MAGIC + FIXED.pack(version, length % (1 << 32)) + head + body
    return content + hashlib.sha256(content).digest()


def taken_apart(data: bytes) -> tuple[dict, list[np.ndarray]]:
    """Head and arrays of bytes that are whole."""
    (_, length) = FIXED.unpack(data[len(MAGIC) : START])
    head, body = json.loads(data[START : START + length]), data[START + length : -32]
    arrays, start = [], 0
    for dtype, shape in head.pop("arrays"):
        arrays.append(np.frombuffer(body, dtype, prod(shape), start).reshape(shape).copy())
        start += arrays[-1].nbytes
    return head, arrays


def joined(head: dict, arrays: list[np.ndarray]) -> bytes:
    """The bytes of a head and arrays."""
    layout = [[part.dtype.str, list(part.shape)] for part in arrays]
    return sealed(encoded({**head, "arrays": layout}), b"".join(p.tobytes() for p in arrays))


def made(
    n_classes: int,
    hold: float,
    *,
    weighted: bool = False,
    priced: bool = False,
    groups: Any = (),
    models: tuple[str, ...] = ("a",),
    labels: Any = None,
    n: int = 40,
    pos_label: Any = None,
) -> ScoreState:
    """A state of random cases: some scores are 0, 1 and one half."""
    rng = np.random.default_rng([n_classes, n])
    labels = list(range(n_classes)) if labels is None else labels
    state = ScoreState(labels, models, groups, weighted, hold, pos_label=pos_label)
    if not n:
        return state
    codes = np.arange(n) % n_classes
    scores = {}
    for name in models:
        if n_classes == 2:
            p = np.clip(0.5 + 0.3 * (codes - 0.5) + 0.3 * rng.normal(size=n), 0.0, 1.0)
            p[:3] = 0.5, 0.25, 0.25
        else:
            p = rng.dirichlet(np.full(n_classes, 0.4), n)
            p[0] = np.eye(n_classes)[1]
        scores[name] = p
    columns = {key: rng.choice(names, n) for key, names in state.groups.items()}
    return state.update(
        np.array(labels)[codes],
        scores,
        rng.gamma(0.5, size=n) + 1e-3 if weighted else None,
        columns or None,
        rng.gamma(1.0, 8.0, n).round(2) if priced else None,
    )


def states() -> dict[str, ScoreState]:
    """States of every kind."""
    both = {"site": ["x", "y"], "sex": ["f", "m", "x"]}
    return {
        "two held": made(2, inf),
        "two bins": made(2, 0.0),
        "two all held": made(2, 2.0**20, weighted=True, priced=True, groups=both),
        "two all bins": made(2, 8.0, weighted=True, priced=True, groups=["x", "y"]),
        "two priced bins": made(2, 0.0, priced=True, models=("a", "b")),
        "first positive": made(2, 0.0, labels=["no", "yes"], pos_label="no"),
        "three held": made(3, inf, weighted=True, groups=both, models=("a", "b")),
        "three bins": made(3, 0.0, weighted=True, groups=both),
        "three sample": made(3, 30.0, labels=["a", "b", "c"]),
        "four all sample": made(4, 60.0, weighted=True, priced=True, groups=["x", "y"]),
        "empty": made(2, 2.0**20, n=0, groups=["x"]),
        "empty bins": made(3, 0.0, n=0),
    }


def corpus() -> list[bytes]:
    """Bytes of states of every kind."""
    return [state.to_bytes() for state in states().values()]


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Some hundred changes of the bytes of a state; nearly all have a valid checksum."""
    yield from (part for part in other_heads(data) if rng.random() < 0.5)
    yield from random_changes(data, rng, 70)


def random_changes(data: bytes, rng: np.random.Generator, n: int) -> Iterator[bytes]:
    """Changes of bytes, of the head, and of arrays."""
    head, arrays = taken_apart(data)
    for _ in range(n):
        kind = rng.integers(10)
        if kind == 0:
            yield _damaged(data, rng)
        elif kind == 1:
            name = FIELDS[rng.integers(len(FIELDS))]
            yield joined({**head, name: _odd(rng)}, arrays)
        elif kind == 2:
            yield _other_layout(head, arrays, rng)
        elif arrays:
            changed = [part.copy() for part in arrays]
            for _ in range(1 + (kind > 7)):
                _change(changed, rng)
            yield joined(head, changed)


def _damaged(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data[: int(rng.integers(len(data)))] if rng.random() < 0.3 else data)
    for place in rng.integers(0, max(len(changed), 1), rng.integers(0, 4)):
        if place < len(changed):
            changed[place] ^= 1 << int(rng.integers(8))
    if rng.random() < 0.5:
        return bytes(changed)
    content = bytes(changed[:-32])
    return content + hashlib.sha256(content).digest()


def _odd(rng: np.random.Generator) -> object:
    pool = [NUMBERS, TEXTS, NESTED][rng.integers(3)]
    return pool[rng.integers(len(pool))]


def other_heads(data: bytes) -> Iterator[bytes]:
    """Heads that ask for much, or say what cannot be."""
    head, arrays = taken_apart(data)
    labels, models = head["labels"], head["models"]
    many = [str(place) for place in range(1 << 16)]
    for name, others in {
        "labels": [
            [*labels[:-1], labels[0]],
            [*labels, "more"],
            [*labels, 7],
            labels[:-1],
            labels[::-1],
            [str(label) for label in labels],
            [f"{label}\x00" for label in labels],
            [float(place) for place in range(len(labels))],
            [place + 10**400 for place in range(len(labels))],
            [place + (1 << 63) for place in range(len(labels))],
            [bool(place) for place in range(len(labels))],
            list(range(3_000)),
            ["a" * 1_000_000, *map(str, range(20_000))],
        ],
        "positive": [1 - head["positive"], -1, 5, 10**30, True, 1.0],
        "models": [[], models * 2, [*models, "more"], many, [f"{models[0]}\x00"], "a", [1]],
        "groups": [
            [["g", many]],
            [["g", ["x"]], ["g", ["y"]]],
            [["g", []]],
            [["", ["x", "x"]]],
            [["g", "xy"]],
            [[part, ["x"]] for part in many],
            [["g", ["x"], 1]],
            {"g": ["x"]},
        ],
        "weighted": [not head["weighted"], 0],
        "priced": [not head["priced"], None, 1],
        "complete": [not head["complete"], 1],
        "hold": [0.0, None, -1.0, 1e308, float("nan"), inf, 5, 30.0],
    }.items():
        for other in others:
            yield joined({**head, name: other}, arrays)
    yield joined({**head, "labels": list(range(100_000)), "groups": [["g", many]]}, arrays)
    yield joined({**head, "complete": False, "models": many}, arrays)
    yield joined({**head, "more": 1}, arrays)
    yield joined({key: value for key, value in head.items() if key != "hold"}, arrays)


def _other_layout(head: dict, arrays: list[np.ndarray], rng: np.random.Generator) -> bytes:
    """Arrays that are missing, doubled, swapped, or of another shape or type."""
    changed = list(arrays)
    place, other = (int(rng.integers(max(len(arrays), 1))) for _ in range(2))
    action = rng.integers(6) if arrays else 5
    if action == 0:
        del changed[place]
    elif action == 1:
        changed.insert(place, arrays[other])
    elif action == 2:
        changed[place], changed[other] = changed[other], changed[place]
    elif action == 3:
        part = changed[place]
        shapes = [part[..., :-1], part[..., None], part.ravel(), part[:0]] if part.ndim else [part]
        changed[place] = shapes[rng.integers(len(shapes))]
    elif action == 4:
        part = changed[place]
        with np.errstate(invalid="ignore"):
            changed[place] = part.astype("<i8" if part.dtype.kind == "f" else "<f8")
    else:
        changed.append(np.zeros(int(rng.integers(3)), rng.choice(["<f8", "<i8"])))
    return joined(head, changed)


def _change(arrays: list[np.ndarray], rng: np.random.Generator) -> None:
    """Change numbers of one array, which still has its shape."""
    held = [part for part in arrays if part.size]
    if not held:
        return
    flat = held[rng.integers(len(held))].reshape(-1)
    whole = flat.dtype.kind == "i"
    entry = int(rng.integers(flat.size))
    action = rng.integers(6)
    with np.errstate(all="ignore"):
        if action == 0:
            pool = WHOLE if whole else FLOATS
            flat[entry] = pool[rng.integers(len(pool))]
        elif action == 1 and whole:
            flat[entry] += rng.choice([-1, 1, 1 << 20, -(1 << 20)])
        elif action == 1:
            flat[entry] = np.nextafter(flat[entry], rng.choice([-9.0, 9.0]))
        elif action == 2:
            flat[:] = flat[::-1].copy()
        elif action == 3:
            flat[:] = 0
        elif action == 4:
            flat[entry] = flat[int(rng.integers(flat.size))]
        elif whole:
            flat[entry] *= int(rng.choice([-1, 2, 1000]))
        else:
            flat[:] *= float(rng.choice([-1.0, 0.0, 0.5, 2.0, 1e250, 1e-250]))


@np.errstate(all="raise", under="ignore")  # what the library means to let pass, it says itself
def check(data: bytes) -> bool:
    """Bytes are refused with a sentence, or are a state that answers as one should.

    Raises
    ------
    AssertionError
        If a promise is broken; other errors come through.
    """
    state, refusal = _answer(ScoreState.from_bytes, data)
    if state is None:
        assert refusal.endswith("."), refusal
        assert 20 < len(refusal) < 2_000, refusal
        return False
    assert state.to_bytes() == data, "other bytes were read as this state"
    assert repr(state)
    assert (state.support >= 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AbsentClassWarning)
        _check_report(state, priced=data[-1] % 4 == 0)  # which takes longest
        twice, refusal = _answer(ScoreState.from_bytes(data).merge, state)
        if twice is None:
            assert "2**63" in refusal, refusal
        else:
            assert (twice.support == 2 * state.support).all(), "counts wrapped"
        assert state.to_bytes() == data, "a report or a merge changed a state"
    return True


def _answer(function: Callable[..., Any], *given: Any) -> tuple[Any, str]:
    """What a function returns, or None and why it refused."""
    try:
        return function(*given), ""
    except ValueError as error:
        return None, str(error)


def _check_report(state: ScoreState, priced: bool) -> None:
    costs = Costs(None if state.priced else 5.0, 1.0) if priced else None
    report, refusal = _answer(Report.from_state, state, costs)
    if report is None:
        assert "class" in refusal or "no case" in refusal, refusal
        return
    for model in report.models:
        for part in (model.raw, model.calibrated):
            for name, figure in (part.figures if part else {}).items():
                low, high = RANGES.get(name, (0.0, inf))
                where = name, figure
                assert not isnan(figure.value) or name == "ratio", where
                if not isnan(figure.value):
                    assert low - 1e-9 <= figure.value <= high + 1e-9, where
                if figure.bounds is not None:
                    least, most = figure.bounds
                    room = 1e-9 * max(1.0, abs(most)) if most < inf else 0.0
                    assert least - room <= figure.value <= most + room, where
