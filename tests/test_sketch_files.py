"""Sketch files of whoever recomputes the checksum: a sentence, or a sketch that could have been."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fragility import FragilitySketch

from .fuzzing import sketches
from .fuzzing.sketches import arrays_of, joined, sealed, taken_apart

Y = np.array([0, 1, 0, 1, 1, 0, 1, 0])
P = np.array([0.0, 1.0, 0.3, 0.6, 0.21, 0.7, 0.9, 0.3])


def binary(**options):
    weights = options.pop("weights", None)
    return FragilitySketch(16, **options).update(Y, P, weights)


def several(multi_class, n_classes=3, n=40):
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    p = rng.dirichlet(np.ones(n_classes), n)
    return FragilitySketch(16, multi_class=multi_class).update(y, p)


SKETCHES = {
    "binary": binary(),
    "weighted": binary(weights=[0.1, 3.0, 1e-9, 1e9, 1.0, 7.0, 0.3, 0.7]),
    "text": FragilitySketch(16).update(np.array(["no", "yes"])[Y], P),
    "positive": binary(pos_label=0),
    "ovo": several("ovo"),
    "ovr": several("ovr"),
    "one class": FragilitySketch(16, labels=[0, 1, 2]).update([1], [[0.1, 0.2, 0.7]]),
    "labels": FragilitySketch(16, labels=["a", "b"]),
    "empty": FragilitySketch(32, pos_label="a"),
    "large counts": binary(),
}
for _ in range(59):
    SKETCHES["large counts"].merge(SKETCHES["large counts"])


@pytest.mark.parametrize("name", SKETCHES)
def test_genuine_sketches_are_read(name):
    sketches.check(SKETCHES[name].to_bytes())
    assert FragilitySketch.from_bytes(SKETCHES[name].to_bytes()) == SKETCHES[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SKETCHES)
def test_changed_sketches(name):
    data = SKETCHES[name].to_bytes()
    for changed in sketches.mutations(data, np.random.default_rng(list(name.encode()))):
        sketches.check(changed)


@pytest.mark.outside
def test_little_memory_is_asked_for():
    """As much as the bytes themselves take and a sketch may have, whatever they say."""
    code = """
        import resource
        import numpy as np
        from fragility import FragilitySketch
        from tests.fuzzing import sketches
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        data = FragilitySketch(16).update([0, 1, 0, 1], [0.1, 0.9, 0.7, 0.4]).to_bytes()
        for seed in range(2):
            for changed in sketches.mutations(data, np.random.default_rng(seed)):
                sketches.check(changed)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def changed(place, entry, value, sketch=None):
    """Bytes of a sketch with one number of one array changed."""
    head, body = taken_apart((sketch or SKETCHES["binary"]).to_bytes())
    arrays = arrays_of(head, body)
    arrays[place][entry] = value
    return joined(head, arrays)


#: Places of the arrays.
SUPPORT, HELD, LOWEST, WEIGHTS, SUMS, SQUARES, SMALLEST, LARGEST, LIGHTEST = range(9)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(SUPPORT, 0, -1), "number of samples"),
        (changed(SUPPORT, 0, 0), "number of samples"),
        (changed(SUPPORT, 0, 1), "number of samples"),
        (changed(SUPPORT, 0, 5), "number of samples"),
        (changed(HELD, 0, -1), "bins"),
        (changed(HELD, 0, 10**9), "bins"),
        (changed(LOWEST, 0, 10**6), "digits"),
        (changed(WEIGHTS, (0, 0), 0), "weight"),
        (changed(WEIGHTS, (0, 0), -3), "weight"),
        (changed(SUMS, (0, 1), 1 << 50), "sums"),
        (changed(SQUARES, (0, 1), -5), "sums"),
        (changed(SQUARES, (0, 1), 1 << 30), "sums"),
        (changed(SMALLEST, (0, 0), 0.9), "smallest"),
        (changed(SMALLEST, (0, 0), np.nan), "smallest"),
        (changed(SMALLEST, (0, 0), -0.01), "smallest"),
        (changed(LARGEST, (0, 1), 1.5), "largest"),
        (changed(LARGEST, (0, 0), 0.2), "largest"),
        (changed(LIGHTEST, (0, 0), 0.0), "lightest"),
        (changed(LIGHTEST, (0, 0), 50.0), "lightest"),
        (changed(LIGHTEST, (0, 0), np.nan), "lightest"),
    ],
)
def test_impossible_content(data, message):
    with pytest.raises(ValueError, match=rf"This FragilitySketch cannot be read: .*{message}"):
        FragilitySketch.from_bytes(data)


def test_columns_of_one_sketch_saw_the_same_samples():
    for name in ("ovo", "ovr"):
        head, body = taken_apart(SKETCHES[name].to_bytes())
        arrays = arrays_of(head, body)
        arrays[WEIGHTS][0, arrays[WEIGHTS][0].argmax()] += 1
        with pytest.raises(ValueError, match="columns differ in the weight"):
            FragilitySketch.from_bytes(joined(head, arrays))


def test_what_is_not_asked_for_is_refused():
    head, body = taken_apart(SKETCHES["binary"].to_bytes())
    with pytest.raises(ValueError, match="'more'"):
        FragilitySketch.from_bytes(sealed(sketches.encoded({**head, "more": 1}), body))


def test_counts_do_not_wrap():
    sketch = binary()
    expected = sketch.fragility()
    for doublings in range(1, 60):
        sketch.merge(sketch)
        assert sketch.support.tolist() == [4 << doublings, 4 << doublings]
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=r"counts up to 2\*\*63 - 1 samples"):
        sketch.merge(sketch)
    assert sketch.to_bytes() == before
    assert sketch.support.tolist() == [4 << 59, 4 << 59]
    found = sketch.fragility()
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert found.lower <= expected.upper
    assert expected.lower <= found.upper
    with pytest.raises(ValueError, match=r"2\*\*63"):
        _ = sketch + sketch


def test_a_batch_beyond_the_last_count_leaves_no_trace():
    sketch = binary()
    for _ in range(59):
        sketch.merge(sketch)
    sketch.support[0] = 2**63 - 1 - sketch.support[1]  # one more is too many
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=r"2\*\*63 - 1 samples"):
        sketch.update([0, 1], [0.2, 0.4])
    assert sketch.to_bytes() == before
