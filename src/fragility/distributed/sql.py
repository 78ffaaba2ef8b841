r"""The bins of a sketch by plain SQL, where the scores are.

`bins_query` gives the text, an engine runs it, and `FragilitySketch.from_bins` makes of its few
rows the very bytes that a sketch of the same scores has here. For that the query repeats the
operations of `fragility.scores.layout.Uniform` and `fragility.scores.bins` one by one in double
precision. A number is rounded by adding and taking away :math:`1.5 \cdot 2^{52}`, which rounds
halves to even on every machine; functions called ROUND do not agree on that.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from textwrap import indent
from typing import Any

import numpy as np

from .._labels import encode_labels
from .._names import shown
from .._parameters import require
from .._typing import Integers, Labels
from ..binned import ROUNDER
from ..scores.bin_rows import HEAVIEST_WHOLE, SPLIT, Flaw, read_rows
from ..scores.bins import MEAN_UNIT, SQUARE_UNIT
from ..scores.sketch import FragilitySketch, check_bins

#: Words that mean something else in some engine where they are not quoted.
_WORDS = """
all analyse analyze and any array as asc asymmetric between both by case cast check collate
column constraint create cross current_catalog current_date current_role current_schema
current_time current_timestamp current_user database default deferrable delete desc describe
distinct do drop else end escape except exists explain false fetch filter for foreign from full
function grant group grouping having if ilike in index initially inner insert intersect interval
into is isnull join key lambda lateral leading left like limit localtime localtimestamp match
minus natural not notnull null offset on only or order outer over overlaps partition pivot
pivot_longer pivot_wider placing primary qualify range references regexp returning right rlike
row rows select semi session_user set show similar some summarize symmetric system_user table
tablesample then to trailing transaction trigger true union unique unpivot update user using
values variadic view when where window with within
"""
_RESERVED = frozenset(_WORDS.split())
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTES = ('"', "`")


def bins_query(
    table: str,
    *,
    label: str,
    score: str,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    n_bins: int = 4096,
    quote: str | None = None,
) -> str:
    """SQL that sums the scores of two classes by class and bin, for `FragilitySketch.from_bins`.

    The text runs in DuckDB, Spark and SQLite, and is plain enough for other engines that know
    ``CAST(... AS DOUBLE)`` and ``BIGINT``. It reads the table once, and gives a row for each class
    and bin that holds any score. Sums are whole numbers in two parts, which do not overflow.

    Scores that are NULL, NaN or not from 0 to 1, and weights that are not whole numbers from 0 to
    65,536, do not stop the query: they are counted, and `FragilitySketch.from_bins` refuses them
    with their number.

    Parameters
    ----------
    table : str
        Name of a table or view, with dots after its catalog and schema (``"main.scores"``). Or a
        query in parentheses, which is taken as it is: ``"(SELECT y, p FROM scores WHERE ...)"``.
    label, score : str
        Names of the columns of the true class and of the probability of the positive class.
    by : str or sequence of str, optional
        Columns of groups, for a sketch of each: see `fragility.distributed.group_sketches`.
    weight : str, optional
        Column of weights: whole numbers from 0 to 65,536.
    n_bins : int, default=4096
        Bins of [0, 1], as in `FragilitySketch`.
    quote : {'"', "`"}, optional
        How the engine quotes names: ``'"'`` in DuckDB and most others, "`" in Spark. Names that are
        single plain words need no quotes, and then the same text runs everywhere. With `quote` all
        names are quoted, and upper and lower case are told apart where the engine does so.

    Returns
    -------
    str

    Examples
    --------
    >>> import sqlite3
    >>> from fragility import FragilitySketch
    >>> from fragility.distributed import bins_query
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE scores (sick INTEGER, p REAL)")
    >>> cases = [(0, 0.2), (0, 0.7), (1, 0.6), (1, 0.9)]
    >>> _ = base.executemany("INSERT INTO scores VALUES (?, ?)", cases)
    >>> rows = base.execute(bins_query("scores", label="sick", score="p")).fetchall()
    >>> sketch = FragilitySketch.from_bins(rows, n_rows=4)
    >>> round(sketch.fragility().value, 6)
    0.073051
    >>> sketch == FragilitySketch().update(*zip(*cases))
    True
    """
    check_bins(n_bins)
    names = _Names(quote)
    grouped = [by] if isinstance(by, str) else list(by or ())
    columns = {f"group_{place}": name for place, name in enumerate(grouped, start=1)}
    columns |= {"label": label}
    # Squares of cases without weights are below 2²², and would not overflow before 2⁴¹ cases.
    halved = ("x",) if weight is None else ("x", "x_squares")
    return _binned(names, names.table(table), columns, score, weight, n_bins, halved)


#: Cases of a bin whose sum of x does not overflow: each is at most 2³⁶ units.
MOST_WHOLE = (1 << 27) - 1


def coded_query(groups: int, n_bins: int, *, whole: bool = False) -> str:
    """The query of rows of a view ``{scores}`` whose class is a whole number from 0 to 3.

    Its columns are `group_1`, ..., `code` and `score`. Class and bin are one number, which
    `split_cells` takes apart: engines are faster with one key than with two. With `whole` the sum
    of x is in one part, which is right in bins of at most `MOST_WHOLE` cases.
    """
    keys = {f"group_{place}": f"group_{place}" for place in range(1, groups + 1)}
    halved = () if whole else ("x",)
    return _binned(_Names(None), "{scores}", keys, "score", None, n_bins, halved, "code")


#: Classes that a number of class and bin has room for, and bins below 0, of flaws.
_CODES, _BELOW = 4, len(Flaw)


def split_cells(cells: Integers) -> tuple[Integers, Integers]:
    """Class and bin of numbers of both."""
    bins, codes = np.divmod(cells, _CODES)
    return codes, bins - _BELOW


def _binned(
    names: _Names,
    table: str,
    columns: Mapping[str, str],
    score: str,
    weight: str | None,
    n_bins: int,
    halved: Sequence[str],
    code: str | None = None,
) -> str:
    """The query; `columns` are the keys by what they are called in it, and some sums are halved."""
    keys = list(columns)
    carried = keys if code is None else [*keys, code]
    given = [f"{names.column(name)} AS {alias}" for alias, name in columns.items()]
    given += [] if code is None else [code]
    own = names.column(score)
    # SQLite compares text with a bare number as text, and would take 0.5 of "0.5 or so".
    low, high = (f"CAST({end} AS DOUBLE)" for end in ("0E0", "1E0"))
    given += [
        f"CAST({own} AS DOUBLE) AS score",
        f"CASE WHEN {own} >= {low} AND {own} <= {high} THEN 1 ELSE 0 END AS inside",
    ]
    if weight is not None:
        carried = [*carried, "weight"]
        given.append(f"CAST({names.column(weight)} AS DOUBLE) AS weight")
    text = _select(given, table)
    # A flaw is a bin below 0, whose cases lie in its centre.
    text = _select([*carried, "score", f"{_scaled(weight, n_bins)} AS scaled"], text)
    if weight is not None:
        counted = "CASE WHEN scaled >= 0E0 THEN weight ELSE 0E0 END AS weight"
        text = _select([*keys, counted, "score", "scaled"], text)
    text = _select([*carried, "score", "scaled", f"{_rounded('scaled')} AS place"], text)
    text = _select([*carried, "score", "place", "scaled - place AS x"], text)
    times = "" if weight is None else " * weight"
    terms = {
        "x": _rounded(f"x * {_number(1.0 / MEAN_UNIT)}") + times,
        "x_squares": _rounded(f"x * x * {_number(1.0 / SQUARE_UNIT)}") + times,
    }
    summed = [f"{term} AS {name}" for name, term in terms.items()]
    text = _select([*carried, "score", "place", *summed], text)
    highs = [f"{_rounded(f'{name} * {_number(1.0 / SPLIT)}')} AS {name}_high" for name in halved]
    text = _select([*carried, "score", "place", *terms, *highs], text)
    place = "CAST(place AS BIGINT)"
    if code is not None:
        place = f"(CAST(place AS INT) + {_BELOW}) * {_CODES} + {code}"
    parts = {}
    for name in terms:
        if name in halved:
            parts[f"{name}_high"] = _sum(f"{name}_high")
            parts[f"{name}_low"] = _sum(f"{name} - {name}_high * {_number(SPLIT)}")
        else:
            parts |= {f"{name}_high": "0", f"{name}_low": _sum(name)}
    ends = [f"{place} AS bin", f"{int(n_bins)} AS n_bins", "COUNT(*) AS n_rows", *_counted(weight)]
    ends += [f"{total} AS {name}" for name, total in parts.items()]
    ends += [f"{kind}({_held('score', weight)}) AS {name}" for kind, name in _EXTREMES]
    return _select([*keys, *ends], text, group_by=[*keys, place])


_EXTREMES = (("MIN", "smallest"), ("MAX", "largest"))


def group_sketches(
    rows: Any,
    *,
    labels: Labels = None,
    pos_label: Any = None,
    n_rows: int,
    n_bins: int = 4096,
) -> dict[Hashable, FragilitySketch]:
    """A sketch of each group, from the rows of a `bins_query` with `by`.

    Parameters
    ----------
    rows : DataFrame, Arrow table or sequence
        All rows of the query, as `FragilitySketch.from_bins` takes them.
    labels, pos_label
        As in `FragilitySketch`. By default the classes of all groups together, so that a group may
        lack a class.
    n_rows : int
        Number of rows of the table: ``SELECT COUNT(*)`` of it.
    n_bins : int, default=4096
        As in the query.

    Returns
    -------
    dict
        Sketches by the value of the column `by`, of several columns by the tuple of their values.
        The group of missing values is None.

    Examples
    --------
    >>> import sqlite3
    >>> from fragility.distributed import bins_query, group_sketches
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE scores (country TEXT, sick INTEGER, p REAL)")
    >>> cases = [("DE", 0, 0.2), ("DE", 1, 0.1), ("FR", 1, 0.6), ("FR", 0, 0.7), ("FR", 1, 0.9)]
    >>> _ = base.executemany("INSERT INTO scores VALUES (?, ?, ?)", cases)
    >>> query = bins_query("scores", label="sick", score="p", by="country")
    >>> sketches = group_sketches(base.execute(query).fetchall(), n_rows=5)
    >>> sorted(sketches), sketches["FR"]
    (['DE', 'FR'], <FragilitySketch of 4096 bins, 3 samples>)
    """
    found = read_rows(rows, n_rows, n_bins)
    if labels is None and len(found):
        classes, _ = encode_labels(found.labels)
        labels = classes if classes.size > 1 else None
    return {
        key: FragilitySketch(n_bins, labels, pos_label)._take_rows(part)
        for key, part in found.groups()
    }


class _Names:
    """Names of tables and columns as an engine reads them."""

    def __init__(self, quote: str | None) -> None:
        known = quote is None or quote in _QUOTES
        require(known, f"quote must be '\"', '`' or None; got {shown(quote)}.")
        self._quote = quote

    def table(self, given: str) -> str:
        """The name of a table, or a query in parentheses."""
        text = self._text(given, "table").strip()
        if text.startswith("(") and text.endswith(")"):
            return f"{text} AS given"
        return ".".join(self._word(part, "table") for part in text.split("."))

    def column(self, given: str) -> str:
        """The name of a column."""
        return self._word(self._text(given, "column"), "column")

    def _text(self, given: Any, what: str) -> str:
        require(
            isinstance(given, str) and given.strip() and "\0" not in given,
            f"The name of a {what} must be text; got {shown(given)}.",
        )
        return str(given)

    def _word(self, name: str, what: str) -> str:
        if self._quote is not None:
            require(name != "", f"A part of the name of the {what} is empty.")
            return self._quote + name.replace(self._quote, 2 * self._quote) + self._quote
        plain = _PLAIN.fullmatch(name) is not None and name.lower() not in _RESERVED
        require(
            plain,
            f"{shown(name)} needs quotes as the name of a {what}: say how the engine writes them, "
            "with quote='\"' (DuckDB and most others) or quote='`' (Spark).",
        )
        return name


def _select(columns: Sequence[str], source: str, group_by: Sequence[str] = ()) -> str:
    if source.startswith("SELECT"):
        source = f"(\n{indent(source, '  ')}\n) AS cases"
    text = "SELECT\n" + indent(",\n".join(columns), "  ") + f"\nFROM {source}"
    return text + (f"\nGROUP BY {', '.join(group_by)}" if group_by else "")


def _number(value: float) -> str:
    """A literal in double precision: without an exponent some engines take it for a decimal."""
    mantissa, exponent = f"{value:.17e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{int(exponent)}"


def _rounded(term: str) -> str:
    """The nearest whole number; halves go to the even one."""
    return f"(({term} + {_number(ROUNDER)}) - {_number(ROUNDER)})"


def _scaled(weight: str | None, n_bins: int) -> str:
    """A score in widths of bins; of a row that cannot count what is wrong with it.

    NaN is above all numbers in some engines, and so is minus NaN; in others it compares with none.
    """
    missing = f"WHEN score IS NULL THEN {_number(Flaw.NULL)}"
    others = (
        "WHEN (score > 1E0 AND -score > 1E0) OR NOT (score <= 1E0 OR score > 1E0) "
        f"THEN {_number(Flaw.NAN)} ELSE {_number(Flaw.OUTSIDE)} END"
    )
    counts = f"score * {_number(n_bins)}"
    if weight is not None:
        whole = f"{_rounded('weight')} = weight"
        fits = f"weight >= 0E0 AND weight <= {_number(HEAVIEST_WHOLE)} AND {whole}"
        counts = f"CASE WHEN {fits} THEN {counts} ELSE {_number(Flaw.WEIGHT)} END"
    return f"CASE WHEN inside = 1 THEN {counts} {missing} {others}"


def _sum(term: str) -> str:
    """Sum of whole numbers; some engines would return a wider type."""
    return f"CAST(SUM(CAST({term} AS BIGINT)) AS BIGINT)"


def _held(column: str, weight: str | None) -> str:
    """A column where the weight is positive."""
    return column if weight is None else f"CASE WHEN weight > 0E0 THEN {column} END"


def _counted(weight: str | None) -> list[str]:
    """Number of cases that carry weight, their weight, and the least of it."""
    if weight is None:
        return ["COUNT(*) AS n", "COUNT(*) AS weight", "1 AS lightest"]
    held = _held("weight", weight)
    return [f"COUNT({held}) AS n", f"{_sum('weight')} AS weight", f"MIN({held}) AS lightest"]
