"""Bytes of sketches, changed by hand or at random, with the checksum of whoever changed them."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from fragility import AbsentClassWarning, FragilitySketch

MAGIC, FIXED = b"fragility-sketch", struct.Struct("<HI")
START = len(MAGIC) + FIXED.size

#: Numbers that formats are seldom ready for.
NUMBERS = [0, 1, -1, 2, 3, 15, 16, 17, 1 << 20, 1 << 21, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63]
NUMBERS += [-(1 << 63), 10**30, 10**400, 0.0, 0.5, 1e308, float("inf"), float("nan"), True, None]
TEXTS = ["", "a", "ovo", "ovr", "<f8", "<i8", "O", "|V8", "<U9", ">f8", "f8,f8", "\x00", "\ud800"]
NESTED = [[], {}, [[]], [[[1]]], {"a": 1}, [1, 2], [0, 1], ["0", 1], [0, 0], [None, 1], [0.5, 1]]
WHOLE = [0, 1, -1, 2, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, -(1 << 63), 1 << 40]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e30, 5e-324, 1e308, np.inf, -np.inf, np.nan]


def sealed(head: bytes, body: bytes, version: int = 2, length: int | None = None) -> bytes:
    """Bytes with a checksum that fits."""
    length = len(head) if length is None else length
    content = MAGIC + FIXED.pack(version, length % (1 << 32)) + head + body
    return content + hashlib.sha256(content).digest()


def taken_apart(data: bytes) -> tuple[dict, bytes]:
    """Head and body of bytes that are whole."""
    (_, length) = FIXED.unpack(data[len(MAGIC) : START])
    return json.loads(data[START : START + length]), data[START + length : -32]


def encoded(head: object) -> bytes:
    return json.dumps(head, sort_keys=True).encode()


def arrays_of(head: dict, body: bytes) -> list[np.ndarray]:
    arrays, start = [], 0
    for dtype, shape in head["arrays"]:
        arrays.append(np.frombuffer(body, dtype, prod(shape), start).reshape(shape).copy())
        start += arrays[-1].nbytes
    return arrays


def joined(head: dict, arrays: list[np.ndarray]) -> bytes:
    layout = [[part.dtype.str, list(part.shape)] for part in arrays]
    return sealed(encoded({**head, "arrays": layout}), b"".join(p.tobytes() for p in arrays))


def corpus() -> list[bytes]:
    """Sketches of two and three classes, with and without weights, of text, and empty ones."""
    rng = np.random.default_rng(0)
    y, three = np.tile([0, 1], 20), np.tile([0, 1, 2, 0], 10)
    p, several = rng.random(40), rng.dirichlet(np.ones(3), 40)
    made = [
        FragilitySketch(16).update(y, p),
        FragilitySketch(64).update(y, p, rng.gamma(0.1, size=40)),
        FragilitySketch(16, pos_label="no").update(np.array(["no", "yes"])[y], p),
        FragilitySketch(16).update(three, several),
        FragilitySketch(16, multi_class="ovr").update(three, several),
        FragilitySketch(16, labels=[0, 1, 2]).update([1], [[0.1, 0.2, 0.7]]),
        FragilitySketch(32, pos_label="a"),
    ]
    return [sketch.to_bytes() for sketch in made]


def mutations(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Some two hundred changes of the bytes of a sketch; most have a valid checksum."""
    yield from _damaged(data, rng)
    head, body = taken_apart(data)
    yield from _other_text(head, body)
    yield from _other_heads(head, body, rng)
    yield from _other_layouts(head, body, rng)
    if head["arrays"]:
        yield from _other_numbers(head, arrays_of(head, body), rng)


def _damaged(data: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    for repaired in (False, True):
        for _ in range(10):
            changed = bytearray(data)
            for place in rng.integers(0, len(data) - 32, rng.integers(1, 4)):
                changed[place] ^= 1 << int(rng.integers(8))
            content = bytes(changed[:-32])
            yield content + hashlib.sha256(content).digest() if repaired else bytes(changed)
    for length in rng.integers(0, len(data), 6):
        content = data[: int(length)]
        yield content
        yield content + hashlib.sha256(content).digest()


def _other_text(head: dict, body: bytes) -> Iterator[bytes]:
    """Heads that are no heads, or lie about their length."""
    text = encoded(head)
    deep = 200_000
    for other in (
        b"",
        b"null",
        b"[]",
        b"1e999",
        b"NaN",
        b'"text"',
        b"[" * deep,
        b"[" * deep + b"]" * deep,
        b'{"arrays":' * deep + b"1" + b"}" * deep,
        b"\xff\xfe" + text,
        text[:-1] + b', "n_bins": 16}',
        text[:-1] + b', "more": ' + b"9" * 5_000 + b"}",
        text + b" ",
        text.replace(b'"n_bins"', b'"n_bin"'),
        text.replace(b'"labels"', b'"label"'),
        text.replace(b'"arrays"', b'"array"'),
    ):
        yield sealed(other, body)
    for length in (0, 1, len(text) - 1, len(text) + 1, (1 << 32) - 1):
        yield sealed(text, body, length=length)
    yield sealed(text, body, version=0)
    yield sealed(text, body, version=1)
    yield sealed(text, body + b"\x00" * 8)
    yield sealed(text, body[:-8])


def _odd(rng: np.random.Generator) -> object:
    pool = [NUMBERS, TEXTS, NESTED][rng.integers(3)]
    return pool[rng.integers(len(pool))]


def _other_heads(head: dict, body: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    for name in ("n_bins", "multi_class", "labels", "pos_label", "arrays"):
        for _ in range(5):
            yield sealed(encoded({**head, name: _odd(rng)}), body)
    yield sealed(encoded({**head, "n_bins": 1 << 20}), body)
    labels = head["labels"] or [0, 1]
    long_text = "a" * 1_000_000
    for other in (
        [*labels[:-1], labels[0]],
        [*labels, "more"],
        labels[:-1],
        [str(label) for label in labels],
        [f"{label}\x00" for label in labels],
        [float(place) for place in range(len(labels))],
        [[label] for label in labels],
        [place + 10**400 for place in range(len(labels))],
        [bool(place) for place in range(len(labels))],
        list(range(3_000)),
        [long_text, *map(str, range(20_000))],
    ):
        yield sealed(encoded({**head, "labels": other}), body)


def _other_layouts(head: dict, body: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    layout = head["arrays"]
    for other in (
        [["<f8", [1 << 40]]],
        [["<f8", [1 << 62, 4]]],
        [["<f8", [-1]]],
        [["<f8", [0, 1 << 62]]],
        [["<f8", [1] * 100]],
        [["|V1000000000", [5]]],
        [["<U100000000", [1]]],
        [["O", [1]]],
        [["<f8", [len(body) / 8]]],
        [["<f8", [True]]],
        [["<f8", len(body) // 8]],
        [["<f8"]] * 3,
        {"0": ["<f8", [1]]},
        layout * 2,
        layout[::-1],
        layout[1:],
        [["<i8", [len(body) // 8]]],
    ):
        yield sealed(encoded({**head, "arrays": other}), body)
    for _ in range(10 if layout else 0):
        changed = json.loads(json.dumps(layout))
        part = changed[rng.integers(len(changed))]
        if rng.integers(2) or not part[1]:
            part[rng.integers(2)] = _odd(rng)
        else:
            part[1][rng.integers(len(part[1]))] = _odd(rng)
        yield sealed(encoded({**head, "arrays": changed}), body)


def _other_numbers(
    head: dict, arrays: list[np.ndarray], rng: np.random.Generator
) -> Iterator[bytes]:
    """Arrays of the right kind that say what cannot be."""
    for place, part in enumerate(arrays):
        if part.size == 0:
            continue
        pool = FLOATS if part.dtype.kind == "f" else WHOLE
        for _ in range(8):
            changed = [other.copy() for other in arrays]
            flat = changed[place].reshape(-1)
            entry = rng.integers(flat.size)
            if rng.integers(2):
                flat[entry] = pool[rng.integers(len(pool))]
            elif part.dtype.kind == "f":
                flat[entry] = np.nextafter(flat[entry], rng.choice([-9.0, 9.0]))
            else:
                flat[entry] += rng.choice([-1, 1, 1 << 20, -(1 << 20)])
            yield joined(head, changed)
        for other in (np.zeros_like(part), -part, part[::-1], part[..., :-1], part[..., None]):
            yield joined(head, [*arrays[:place], other, *arrays[place + 1 :]])
        if part.ndim == 2 and part.dtype.kind == "i":
            more = np.concatenate([part, np.zeros((100_000, part.shape[1]), part.dtype)])
            yield joined(head, [*arrays[:place], more, *arrays[place + 1 :]])


@np.errstate(all="raise")  # what the library means to let pass, it says itself
def check(data: bytes) -> None:
    """Bytes are refused with a sentence, or are a sketch that answers as one should.

    Raises
    ------
    AssertionError
        If a promise is broken; other errors come through.
    """
    sketch, refusal = _answer(FragilitySketch.from_bytes, data)
    if sketch is None:
        assert refusal.endswith("."), refusal
        assert 20 < len(refusal) < 2_000, refusal
        return
    assert int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little") in (1, 2)
    start = len(MAGIC) + 2  # format 1 is written as format 2, all else as it was
    assert sketch.to_bytes()[start:-32] == data[start:-32], "other bytes were read as this sketch"
    assert FragilitySketch.from_bytes(data) == sketch
    assert repr(sketch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AbsentClassWarning)
        for target in (0.0, 0.1):
            _check_answer(sketch, target)
        twice, refusal = _answer(lambda: sketch + sketch)
        if twice is None:
            assert "2**63" in refusal, refusal
        else:
            assert (twice.support == 2 * sketch.support).all()
            _check_answer(twice, 0.0)


def _answer(function: Callable[..., Any], *given: Any) -> tuple[Any, str]:
    """What a function returns, or None and why it refused."""
    try:
        return function(*given), ""
    except ValueError as error:
        return None, str(error)


def _check_answer(sketch: FragilitySketch, target: float) -> None:
    found, refusal = _answer(sketch.fragility, target)
    if found is None:
        assert "empty" in refusal or "class has samples" in refusal, refusal
        return
    there = ~np.isnan(found.pairs)
    assert there.any(), "no pair has an answer"
    assert 0.0 <= found.lower <= found.value <= found.upper, found
    assert (found.pairs_lower[there] <= found.pairs[there]).all()
    assert (found.pairs[there] <= found.pairs_upper[there]).all()
    assert repr(found)
