"""The search for slices: halves, candidates of one half, tests on the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import check_choice, check_confidence, check_count, check_threshold
from .._random import content_order, random_generator, spread_over_folds
from .._typing import Interval, Labels, Mask
from .._validation import LabelledScores, check_labelled_probabilities
from ..figures.confidence import confident_errors, predictions
from ..index.errors import RankingErrors
from ..index.fragility import measure
from ..measured import CONFIDENT
from ..report.comparing import holm
from .choosing import Candidate, Chooser
from .columns import check_rows, code_columns, read_table
from .conditions import CodedColumn
from .evidence import Evidence, case_evidence
from .permutation import StratifiedCases
from .slice import Slice

Against = Literal["both", "class", "score"]


def find_slices(
    X: Any,
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    feature_names: Sequence[str] | None = None,
    labels: Labels = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    against: Against = "both",
    level: float = 0.05,
    min_cases: int = 30,
    n_ranges: int = 4,
    n_candidates: int = 10,
    n_permutations: int = 4999,
    confident: float = CONFIDENT,
    random_state: Any = 0,
) -> list[Slice]:
    r"""Simple conditions that hold more than their share of the worst-case weight.

    The worst case of `measure_fragility` puts its weight on confident mistakes. A slice, such as
    "age from 40 to under 60 and sex is 'F'", is reported if it holds more of that weight

    1. than its share of the cases of each class, and
    2. than its scores lead one to expect: more than cases of about the same scores hold.

    The second leaves out slices that are hard for any model: one that is right to be unsure
    somewhere has much of its worst-case weight there. The first leaves out slices that hold no more
    than their share, though cases with such scores would hold still less. `against` asks for one of
    them alone; `Slice.share` and `Slice.expected_share` are what each compares with.

    Conditions are chosen on one half of the cases, drawn at random and stratified by class, and
    tested on the other. Tested is, by permutation, (1) whether membership of the slice is
    independent of the worst-case weight among cases of the same class, and (2) whether it is
    independent of the class among cases of about the same score (of several classes: about the same
    probabilities). The larger of the two p-values counts, adjusted for the number of conditions
    tested (Holm). So data in which either independence holds for all columns give a slice with
    probability `level` at most, up to the width of "about". Where the scores tell who is in a slice
    (a range of the only column that a model uses), there is nothing to compare it with at the same
    score: see `reliability_curve`, or ``against="class"``. Cases must be independent of each other:
    of several rows of one patient, give one.

    Parameters
    ----------
    X : data frame, mapping of str to array-like, or array-like of shape (n_samples, n_features)
        Columns to search, which the model may know or not: of pandas, polars or Arrow, or arrays.
        Numbers are cut into ranges, or told apart by value if they have six values or fewer; text,
        booleans and categories are told apart by value, up to the 100 most frequent ones that are
        in twice `min_cases` cases or more. A missing value is a value of its own.
        Columns without any frequent value, such as identifiers, and dates are named in a warning
        and left out.
    y_true : array-like of shape (n_samples,)
    proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of each class in the order of `labels`.
    feature_names : sequence of str, optional
        Names of the columns of an array; by default x0, x1, ...
    labels, pos_label, sample_weight
        As in `confident_error_rate`. In the tests every case of positive weight counts as one.
    against : {"both", "class", "score"}, default="both"
        What a slice is compared with: its share of the cases of each class (1), what its scores
        lead one to expect (2), or both.
    level : float, default=0.05
        Largest adjusted p-value of a slice that is reported.
    min_cases : int, default=30
        Fewest cases of a slice in each half.
    n_ranges : int, default=4
        Ranges that numbers are cut into, of about equal numbers of cases; neighbouring ones are
        searched together, too.
    n_candidates : int, default=10
        Most conditions to test. Conditions on two columns must score clearly more than either part;
        they are made of the 30 columns with the largest scores.
    n_permutations : int, default=4999
    confident : float, default=0.9
        A prediction above this confidence is a confident one.
    random_state : int, Generator or None, default=0
        Draws the halves and permutations. The order of the rows does not matter.

    Returns
    -------
    list of Slice
        Worst first: that with the largest weight in units of what it is compared with (of both
        the larger). Empty if no slice passes.

    Examples
    --------
    >>> import numpy as np
    >>> from fragility import find_slices
    >>> rng = np.random.default_rng(0)
    >>> age, sex = rng.integers(20, 80, 2000), rng.choice(["F", "M"], 2000)
    >>> score = rng.random(2000)
    >>> truth = np.where((age < 35) & (rng.random(2000) < 0.4), 1 - score, score)
    >>> sick = rng.random(2000) < truth
    >>> for found in find_slices({"age": age, "sex": sex}, sick, score):
    ...     print(found.condition)
    age under 36
    """
    check_choice(against, get_args(Against), "against")
    level, confident = (
        check_confidence(level, "level", "0.05"),
        check_threshold(confident, "confident"),
    )
    min_cases, n_ranges = check_count(min_cases, "min_cases"), check_count(n_ranges, "n_ranges", 2)
    n_candidates = check_count(n_candidates, "n_candidates")
    n_permutations = check_count(n_permutations, "n_permutations", 99)
    rng = random_generator(random_state)
    table = read_table(X, feature_names)
    data = check_labelled_probabilities(
        y_true, proba, labels, pos_label, sample_weight, name="proba", presence=True
    )
    check_rows(table, data.codes.size)
    if data.weights is not None:  # cases of no weight are none
        held = data.weights > 0.0
        data, table = data.take(held), [column.take(held) for column in table]
    n = data.codes.size
    if n < 4 * min_cases:
        raise ValueError(
            f"find_slices needs at least {4 * min_cases} cases of positive weight: in each half "
            f"min_cases={min_cases} in a slice, and as many outside. Got {n}; give more cases."
        )
    columns = code_columns(table, n_ranges, 2 * min_cases)
    search = _Search(data, columns, case_evidence(data), confident, against)
    return search.slices(n_candidates, min_cases, level, rng, n_permutations)


class _Search:
    """One search: the cases that choose conditions, and those that test them."""

    def __init__(
        self,
        data: LabelledScores,
        columns: Sequence[CodedColumn],
        evidence: Evidence,
        confident: float,
        against: Against,
    ) -> None:
        self._data, self._columns, self._evidence = data, columns, evidence
        self._confident, self._against = confident, against

    def slices(
        self,
        n_candidates: int,
        min_cases: int,
        level: float,
        rng: np.random.Generator,
        n_permutations: int,
    ) -> list[Slice]:
        """Slices that pass their tests, worst first."""
        chooses = self._first_half(rng)
        comparisons = self._comparisons(self._evidence.take(chooses))
        chooser = Chooser(self._columns, chooses, comparisons, min_cases)
        candidates = chooser.candidates(n_candidates)
        comparisons = self._comparisons(self._evidence.take(~chooses))
        inside = [candidate.meets() for candidate in candidates]
        p_values = [
            max(cases.p_value(own[~chooses], rng, n_permutations) for cases in comparisons)
            for own in inside
        ]
        measuring = self._measuring(~chooses)
        found = [
            measuring(candidate, own, p)
            for candidate, own, p in zip(candidates, inside, holm(p_values), strict=True)
            if p <= level
        ]
        return sorted(found, key=self._excess, reverse=True)

    def _excess(self, found: Slice) -> float:
        """Weight of a slice in units of what it is compared with."""
        compared = {
            "class": found.share,
            "score": found.expected_share,
            "both": max(found.share, found.expected_share),
        }
        return found.weight_share / compared[self._against]

    def _first_half(self, rng: np.random.Generator) -> Mask:
        """A random half of each class, whatever the order of the rows."""
        data = self._data
        codes = np.stack([column.codes for column in self._columns], axis=1)
        order = content_order(data.codes, data.scores, data.weights, [codes])
        chooses = np.empty(order.size, dtype=np.bool_)
        chooses[order] = spread_over_folds(data.codes[order], 2, rng) == 0
        return chooses

    def _comparisons(self, evidence: Evidence) -> list[StratifiedCases]:
        """Cases held against others of their class, and against others of about their score."""
        found = []
        if self._against != "score":
            excess = evidence.over_classes()
            found.append(StratifiedCases(evidence.classes, evidence.levels(), excess))
        if self._against != "class":
            found.append(StratifiedCases(evidence.alike(), evidence.classes, evidence.weights))
        return found

    def _measuring(self, tested: Mask) -> Callable[[Candidate, Mask, float], Slice]:
        """How to measure a slice, by the cases that did not choose it."""
        evidence, data = self._evidence.take(tested), self._data.take(tested)
        expected = evidence.expected(evidence.alike())

        def slice_of(candidate: Candidate, meets: Mask, p_value: float) -> Slice:
            own = meets[tested]
            share, weight_share, expected_share = (
                float(part[own].sum() / part.sum())
                for part in (evidence.shares, evidence.weights, expected)
            )
            index, interval = _index(data.take(own))
            return Slice(
                condition=candidate.text,
                columns=candidate.columns,
                n=int(np.count_nonzero(meets)),
                n_tested=int(np.count_nonzero(own)),
                share=share,
                weight_share=weight_share,
                expected_share=expected_share,
                p_value=p_value,
                confident_error_rate=self._confident_errors(data.take(own)),
                confident_error_rate_outside=self._confident_errors(data.take(~own)),
                index=index,
                index_interval=interval,
            )

        return slice_of

    def _confident_errors(self, data: LabelledScores) -> float:
        return confident_errors(predictions(data), self._confident)


def _index(data: LabelledScores) -> tuple[float, Interval | None]:
    """Index of some cases with its interval; undefined if they are of one class."""
    if np.count_nonzero(data.support) < 2:
        return nan, None
    found = measure(RankingErrors(data), 0.0, "ovo", None)
    return found.value, found.interval()
