"""What a database should sum: case by case, in fractions."""

from __future__ import annotations

from fractions import Fraction


def rows(cases, n_bins):
    """By label and bin: rows, cases of positive weight, weight, sums of x and x², extremes.

    Cases are (label, score, weight). `round` of a fraction takes halves to the even number.
    """
    found = {}
    for label, score, weight in cases:
        place = round(Fraction(score) * n_bins)
        x = Fraction(score) * n_bins - place
        row = found.setdefault((label, place), [0, 0, 0, None, 0, 0, None, None])
        row[0] += 1
        if weight == 0:
            continue
        row[1] += 1
        row[2] += weight
        row[3] = weight if row[3] is None else min(row[3], weight)
        row[4] += weight * round(x * 2**37)
        row[5] += weight * round(x * x * 2**23)
        row[6] = score if row[6] is None else min(row[6], score)
        row[7] = score if row[7] is None else max(row[7], score)
    return {key: tuple(row) for key, row in found.items()}
