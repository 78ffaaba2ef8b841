"""Inputs of a linear model from the rows of a table, written out: no library but the standard one.

Numbers less their mean, by their standard deviation over n; levels, sorted, as 0 and 1.
"""

from math import sqrt
from statistics import mean, median


def inputs(rows, numeric, categorical):
    """One list of inputs per row (a dict): all numeric columns first, then the levels."""
    columns = []
    for name in numeric:
        known = [row[name] for row in rows if row[name] is not None]
        filled = [median(known) if row[name] is None else row[name] for row in rows]
        centre = mean(filled)
        spread = sqrt(mean((value - centre) ** 2 for value in filled))
        columns.append([(value - centre) / spread for value in filled])
    for name in categorical:
        known = [row[name] for row in rows if row[name] is not None]
        levels = sorted(set(known))
        usual = max(levels, key=lambda level: (known.count(level), -levels.index(level)))
        filled = [usual if row[name] is None else row[name] for row in rows]
        columns += [[float(value == level) for value in filled] for level in levels]
    return [list(row) for row in zip(*columns, strict=True)]
