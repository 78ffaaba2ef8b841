"""Slices from their definitions: loops over cases, every subset, conditions read as words."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

from .pairs import bisected_index, pair_matrix, pair_weights


def worst_case(codes, columns, weights):
    """Worst-case weight and share of each case: (n,) scores of class 1, or (n, C)."""
    two = not hasattr(columns[0], "__len__")
    classes = sorted(set(codes))
    pairs = [(1, 0)] if two else list(itertools.permutations(classes, 2))
    found, shares = [0.0] * len(codes), [0.0] * len(codes)
    for positive, negative in pairs:
        value = [row if two else row[positive] for row in columns]
        rows = {c: [k for k, code in enumerate(codes) if code == c] for c in (negative, positive)}
        of = {c: [value[k] for k in members] for c, members in rows.items()}
        own = {c: [weights[k] for k in members] for c, members in rows.items()}
        index = bisected_index(
            pair_matrix(of[negative], of[positive]),
            0.0,
            pair_weights(of[negative], of[positive], own[negative], own[positive]),
        )
        for c, sign in ((negative, 1.0), (positive, -1.0)):
            top = max(sign * v for v in of[c])
            tilted = [
                a * (math.exp((sign * v - top) / index) if index else float(sign * v == top))
                for a, v in zip(own[c], of[c], strict=True)
            ]
            for k, a, t in zip(rows[c], own[c], tilted, strict=True):
                found[k] += t / sum(tilted) / len(pairs)
                shares[k] += a / sum(own[c]) / len(pairs)
    return found, shares


def groups_alike(rows, least, most):
    """Sets of cases, cut in two at medians of square roots as long as both parts are large."""
    size = max(least, len(rows) / most)

    def cut(members):
        roots = [[math.sqrt(p) for p in rows[k]] for k in members]
        n_columns = len(roots[0])

        def variance(c):
            mean = sum(r[c] for r in roots) / len(roots)
            return sum((r[c] - mean) ** 2 for r in roots) / len(roots)

        for c in sorted(range(n_columns), key=variance, reverse=True):
            ordered = sorted(r[c] for r in roots)
            limit = ordered[len(ordered) // 2]
            lower = [k for k, r in zip(members, roots, strict=True) if r[c] < limit]
            if not lower:
                lower = [k for k, r in zip(members, roots, strict=True) if r[c] == ordered[0]]
            upper = [k for k in members if k not in lower]
            if min(len(lower), len(upper)) >= size:
                return cut(lower) + cut(upper)
        return [frozenset(members)]

    return set(cut(list(range(len(rows)))))


def exact_p_value(strata, kinds, values, inside):
    """Share of all subsets, of as many cases of each stratum, with a sum as large or larger."""
    cells = {}
    for stratum, kind, value in zip(strata, kinds, values, strict=True):
        cells.setdefault((stratum, kind), []).append(Fraction(value))
    counted = [sum(cells[cell]) / len(cells[cell]) for cell in zip(strata, kinds, strict=True)]
    observed = sum(v for v, is_in in zip(counted, inside, strict=True) if is_in)
    sums = {Fraction(0): 1}
    for stratum in set(strata):
        own = [v for v, s in zip(counted, strata, strict=True) if s == stratum]
        n_inside = sum(1 for s, is_in in zip(strata, inside, strict=True) if s == stratum and is_in)
        more = {}
        for subset in itertools.combinations(own, n_inside):
            for total, count in sums.items():
                key = total + sum(subset)
                more[key] = more.get(key, 0) + count
        sums = more
    larger = sum(count for total, count in sums.items() if total >= observed)
    return larger / sum(sums.values())


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def meets(condition, columns):
    """Rows that a condition in words is true for; `columns` by name, as lists."""
    n = len(next(iter(columns.values())))
    found = [True] * n
    for part in condition.split(" and "):
        name, _, words = part.partition(" ")
        for k, value in enumerate(columns[name]):
            found[k] = found[k] and _is_true(words, value)
    return found


def _is_true(words, value):
    if words in ("is missing", "is not missing"):
        return is_missing(value) == (words == "is missing")
    if is_missing(value):
        return False
    if words.startswith("is "):
        wanted = words.removeprefix("is ")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value == float(wanted) if is_number else repr(value) == wanted
    found = re.fullmatch(r"(?:from (\S+))?(?: to )?(?:under (\S+))?", words)
    low, high = found.groups()
    return (low is None or value >= float(low)) and (high is None or value < float(high))


def score(comparisons, inside):
    """Least over comparisons, (strata, excess) each, of the sum of the excess in deviations."""
    found = []
    for strata, excess in comparisons:
        total = variance = 0.0
        for stratum, e, is_in in zip(strata, excess, inside, strict=True):
            if is_in:
                size = sum(1 for s in strata if s == stratum)
                members = sum(1 for s, i in zip(strata, inside, strict=True) if i and s == stratum)
                total += e
                variance += e * e * (1.0 - members / size)
        found.append(total / math.sqrt(variance) if variance > 1e-30 else 0.0)
    return min(found)
