"""A sample by cells, drawn stratum by stratum in plain loops.

A row is a dictionary: `number`, `y` (a class, or by model whether it was right), `scores` (by model
a probability of the positive class, a list of those of all classes, or None), and where the data
have them `weight`, `amount`, `groups` (by column) and `cluster`.
"""

from __future__ import annotations

from math import asinh, floor, inf, log, log2


def draw(rows, capacity, n_classes=2, confident=0.9):
    """By the place of each row that is held: its chance, its count, and its count by column."""
    if len(rows) <= capacity:
        return {i: (1.0, 1.0, {}) for i in range(len(rows))}
    first, room = rows[0], capacity / 2
    columns = list(first.get("groups", ()))
    keys = {"all": [0 for _ in rows]}
    budgets = {"all": room / 2}
    if "cluster" not in first:
        keys["cell"] = [_cell(row, first, room, n_classes, confident) for row in rows]
        budgets["cell"] = room / (4 if columns else 2)
        for column in columns:
            keys[column] = [
                (row["groups"][column], _kind(row, n_classes, confident)) for row in rows
            ]
            budgets[column] = room / (4 * len(columns))
    limits = {}
    for family, key in keys.items():
        strata = {}
        for i in sorted(range(len(rows)), key=lambda i: rows[i]["number"]):
            strata.setdefault(key[i], []).append(i)
        most = _most([len(s) for s in strata.values()], budgets[family])
        if family == "cell" and most < 2:
            # Two rows of each cell if all families together then keep at most `capacity`, or one.
            most = next((k for k in (2, 1) if k * len(strata) <= 1.25 * room), 0)
        if most == 0 or (family in columns and most < 2):
            continue
        limits[family] = {
            stratum: rows[inside[most]]["number"] if len(inside) > most else inf
            for stratum, inside in strata.items()
        }
    chances = {}
    for i, row in enumerate(rows):
        chance = max(by_stratum[keys[family][i]] for family, by_stratum in limits.items())
        if row["number"] < chance:
            chances[i] = min(chance, 1.0)

    def counts(family):
        raised, whole = {}, {}
        for i, row in enumerate(rows):
            stratum, weight = keys[family][i], row.get("weight", 1.0)
            whole[stratum] = whole.get(stratum, 0.0) + weight
            if i in chances:
                raised[stratum] = raised.get(stratum, 0.0) + weight / chances[i]
        return {i: whole[keys[family][i]] / raised[keys[family][i]] / c for i, c in chances.items()}

    count = counts("cell" if "cell" in limits else "all")
    by_column = {column: counts(column) for column in columns if column in limits}
    return {i: (c, count[i], {k: v[i] for k, v in by_column.items()}) for i, c in chances.items()}


def _most(sizes, budget):
    """The largest number of rows that every stratum may keep within the budget."""
    if sum(sizes) <= budget:
        return max(sizes)
    most = 0
    while sum(min(size, most + 1) for size in sizes) <= budget:
        most += 1
    return most


def _truth(row, model):
    return row["y"][model] if isinstance(row["y"], dict) else row["y"]


def _log_odds(row, model):
    """Log-odds of the truth, between -700 and 700; None where the model abstained."""
    p, truth = row["scores"][model], _truth(row, model)
    if p is None:
        return None
    negative = not isinstance(row["y"], dict) and not isinstance(p, list) and truth == 0
    p = p[truth] if isinstance(p, list) else p
    odds = -700.0 if p == 0 else 700.0 if p == 1 else log(p) - log(1 - p)
    return -odds if negative else odds


def _decision(row, model, confident):
    """Whether the model was right, and whether it was confident; None where it abstained."""
    p, truth = row["scores"][model], _truth(row, model)
    if p is None:
        return None
    if isinstance(row["y"], dict):
        return truth, p > confident
    if not isinstance(p, list):
        p = [1 - p, p]
        return (p[1] > 0.5) == (truth == 1), max(p) > confident
    return p.index(max(p)) == truth, max(p) > confident


def _kind(row, n_classes, confident):
    told = list(row["scores"])[:3]
    y = None if isinstance(row["y"], dict) else row["y"]
    return (y, *(_decision(row, model, confident) for model in told))


def _cell(row, first, room, n_classes, confident):
    told = list(row["scores"])[:3]
    n_sizes = ("weight" in first) + ("amount" in first)
    truths = 2 ** len(told) if isinstance(row["y"], dict) else n_classes
    steps = int((room / (8 * truths * 6**n_sizes)) ** (1 / len(told)))
    steps = min(max(steps, 3), 1024)
    cell = [_kind(row, n_classes, confident)]
    reference = 0.0
    for place, model in enumerate(told):
        odds = _log_odds(row, model)
        if place == 0:
            reference = 0.0 if odds is None else min(max(odds, -6.0), 6.0)
        if odds is None:
            cell.append("abstained")
            continue
        if place == 0:
            share = asinh(odds / 2) / (2 * asinh(20))
        else:
            share = asinh((odds - reference) / 0.02) / (2 * asinh(10 / 0.02))
        cell.append(min(max(floor(share * steps) + steps // 2, 0), steps - 1))
    for name in ("weight", "amount"):
        if name in row:
            cell.append(min(max(floor(log2(max(row[name], 1e-300)) / 2), -32), 31))
    return tuple(cell)
