"""Brent's method: SciPy's roots to the last digit, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from fragility._brent import bracketed_root

#: Function, bracket and what is said of it.
CASES = {
    "smooth": (lambda x: math.exp(x) - 3.0, 0.0, 2.0),
    "from right to left": (lambda x: math.exp(x) - 3.0, 2.0, 0.0),
    "falling": (lambda x: math.cos(x), 0.0, 3.0),
    "steep": (lambda x: x**9 - 1e-9, -1.0, 4.0),
    "flat at the root": (lambda x: (x - 0.3) ** 3, -1.0, 2.0),
    "a jump": (lambda x: -1.0 if x < math.pi else 1.0, 0.0, 10.0),
    "far apart": (lambda x: math.log(x) + 200.0, 1e-120, 1.0),
    "tiny": (lambda x: x - 1e-200, 0.0, 1.0),
    "infinite at an end": (lambda x: -math.inf if x == 0.0 else math.log(x) + 1.0, 0.0, 1.0),
    "rounded": (lambda x: round(math.sin(x), 3), 3.0, 4.0),
    "NumPy's numbers": (lambda x: np.float64(x) ** 2 - 2.0, 0.0, 2.0),
}


@pytest.mark.parametrize("rtol", [1e-15, 1e-10, 1e-3])
@pytest.mark.parametrize("name", CASES)
def test_the_same_root_as_scipy_after_the_same_steps(name, rtol):
    function, low, high = CASES[name]
    asked, theirs = [], []
    found = bracketed_root(
        lambda x: asked.append(x) or function(x), low, high, xtol=1e-300, rtol=rtol
    )
    expected = brentq(
        lambda x: theirs.append(x) or function(x), low, high, xtol=1e-300, rtol=rtol, maxiter=2000
    )
    assert found == expected
    assert asked == theirs
    assert isinstance(found, float)


def test_the_same_roots_of_many_polynomials():
    rng = np.random.default_rng(0)
    for roots in rng.uniform(-1.0, 1.0, (300, 3)):

        def cubic(x, roots=roots):
            return float(np.prod(x - roots))

        low, high = -1.0 - rng.random(), 1.0 + rng.random()  # all three roots between them
        found = bracketed_root(cubic, low, high, xtol=1e-12, rtol=1e-14)
        assert found == brentq(cubic, low, high, xtol=1e-12, rtol=1e-14)


@pytest.mark.parametrize("end", [0.0, 2.0])
def test_a_root_at_an_end_is_returned_as_it_is(end):
    assert bracketed_root(lambda x: x - end, 0.0, 2.0, xtol=1e-300, rtol=1e-10) == end


@pytest.mark.parametrize("value", [1.0, -1.0, math.nan])
def test_a_bracket_without_a_root_is_refused(value):
    with pytest.raises(ValueError, match=r"No root is bracketed.* at 0\.0 and .* at 1\.0; give"):
        bracketed_root(lambda x: value, 0.0, 1.0, xtol=1e-300, rtol=1e-10)


def test_what_is_not_a_number_between_the_ends_is_refused():
    values = {0.0: -1.0, 1.0: 1.0}
    with pytest.raises(ValueError, match=r"not a number at 0\.5"):
        bracketed_root(lambda x: values.get(x, math.nan), 0.0, 1.0, xtol=1e-300, rtol=1e-10)


def test_a_search_that_cannot_end_is_given_up():
    """No tolerance at all, and a jump: two neighbouring numbers are never the same."""
    with pytest.raises(ValueError, match=r"No root was found between 0\.0 and 10\.0"):
        bracketed_root(CASES["a jump"][0], 0.0, 10.0, xtol=0.0, rtol=0.0)
