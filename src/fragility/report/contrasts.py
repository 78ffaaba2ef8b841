r"""Whether a new model is worse than the present one: on the same cases, or on others.

Held are the cost of each at its own policy, log-loss as given and after calibration, and the
Fragility Index after calibration (before it, the index falls when scores shrink). Of answers the
share of wrong ones is held, too: a model that knows when it is wrong has a small log-loss, however
often it is.

**Not clearly worse** is the default. A figure fails where a one-sided test shows that the new model
is worse. Two trainings of one model differ, too, and enough cases show it: `tolerance` is the
standard deviation of that, as a share of the figure, and adds to the standard error (the root of
the sum of squares). The level of all tests of a gate together is that of the report (5 % at a
confidence of 95 %): each has a share of it, a double one for the cost, wrong answers and log-loss
after calibration, which say most. The smallest p-value decides, as with Holm's correction, and
every figure has a limit that can be printed. Where groups are held, too, one half of the level is
theirs.

**Non-inferiority** with a `margin`: the cost, or log-loss where there are no costs (of answers the
share of wrong ones), fails unless the upper limit of its difference (of the report's interval) is
below the margin. All of these must hold, so that none needs a correction, and no tolerance is
added.

On the same cases the tests are the paired ones of the report. On other cases the difference is held
to the root of the sum of the squared standard errors, of logarithms, which are nearly normal.
`benchmarks/gate.py` shows how often gates fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, hypot, inf, isfinite, isnan, nan

from scipy.special import ndtri, stdtridf, stdtrit

from .._typing import Interval
from ..deferral.paired_costs import PairedCosts
from ..figures.intervals import simultaneous
from ..index.inference import PairedDifference
from ..measured import Measured
from . import words
from .limits import KINDS, LARGEST_LOG_LOSS, WRONG
from .parts import Comparison
from .report import Report

#: How much the figure of one training differs from that of the next, a relative standard deviation.
TOLERANCE = 0.01
#: The same predictions are as good as themselves, however they are rounded in a file.
_ROUNDING = 1e-9
AS_GIVEN, CALIBRATED, BASELINE = "as given", "calibrated", "baseline"


@dataclass(frozen=True)
class Contrast:
    """A figure of a new model beside the same of the present one; smaller is better.

    Attributes
    ----------
    model, figure : str
    part : str
        Whether the figure is as given or calibrated; empty for the cost and wrong answers.
    new, old : float
    error : float
        Standard error of the difference; NaN if there is none.
    relative : float or None
        That of the difference of the logarithms, if these are tested.
    freedom : float
        Degrees of freedom of the error.
    source : str
        What the model is held to.
    group : str or None
    untested : str
        Why there is no test, if there is none.
    """

    model: str
    figure: str
    part: str
    new: float
    old: float
    error: float
    relative: float | None
    freedom: float
    source: str
    group: str | None = None
    untested: str = ""

    @property
    def title(self) -> str:
        """Figure and part, in words."""
        title = KINDS[self.figure].title
        return f"{title} ({self.part})" if self.part else title

    @property
    def tested(self) -> bool:
        """Whether there is a standard error to hold the difference to."""
        return all(map(isfinite, (self.new, self.old, self.error)))

    def worst_allowed(self, level: float, tolerance: float) -> float:
        """Largest value that is not clearly worse; that of the present model if none is tested."""
        allowed = self.old * (1.0 + _ROUNDING)
        if not self.tested:
            return allowed
        reach = -float(stdtrit(self.freedom, level))
        if self.relative is not None:
            return allowed * exp(min(reach * hypot(self.relative, tolerance), 700.0))
        return allowed + reach * hypot(self.error, tolerance * self.old)

    def worst_within(self, margin: float, level: float) -> float:
        """Largest value that is shown to be worse by less than the margin."""
        if self.new == self.old:  # the difference is known to be nothing
            return self.old + margin
        if not self.tested:
            return nan
        return self.old + margin + float(stdtrit(self.freedom, level)) * self.error


def paired(report: Report, against: str) -> Iterator[Contrast]:
    """Every other model beside the present one, on the same cases."""
    about = _About(against, report.confidence, report.n_samples)
    for pair in report.comparisons:
        if against in (pair.a, pair.b):
            for figure, part, test in _tests(pair):
                yield about.contrast(pair.a, pair.b, figure, part, test)


def paired_by_group(report: Report, against: str) -> Iterator[Contrast]:
    """The same in each group that is large enough; log-loss and cost, which are known there."""
    parts = [part for part in report.group_comparisons if against in (part.a, part.b)]
    # Their intervals hold in all groups together.
    n_groups = len({(part.column, part.group) for part in parts if part.n})
    confidence = simultaneous(report.confidence, n_groups)
    # Where neither needs a map, the test after calibration is the one before.
    same = {(pair.a, pair.b) for pair in report.comparisons if pair.calibrated is pair.raw}
    for part in parts:
        if part.too_small:
            continue
        about = _About(against, confidence, part.n, group_name(part.column, part.group))
        for figure, of, test in (
            ("cost", "", part.cost),
            ("log_loss", AS_GIVEN, part.log_loss),
            ("log_loss", CALIBRATED, part.calibrated_log_loss),
        ):
            if test is not None and not (of == CALIBRATED and (part.a, part.b) in same):
                yield about.contrast(part.a, part.b, figure, of, test)


def group_name(column: str, group: str) -> str:
    """A group in words."""
    return f"{words.shortened(column)}: {words.shortened(group)}"


def _tests(pair: Comparison) -> Iterator[tuple[str, str, PairedDifference | PairedCosts]]:
    if pair.cost is not None:
        yield "cost", "", pair.cost.test
    if (right := pair.raw.tests.get("accuracy")) is not None:
        yield WRONG, "", _of_wrong(right)
    yield "log_loss", AS_GIVEN, pair.raw.tests["log_loss"]
    if pair.calibrated is not None:
        if pair.calibrated is not pair.raw:  # else neither needs a map: it is the same test
            yield "log_loss", CALIBRATED, pair.calibrated.tests["log_loss"]
        yield "fragility_index", CALIBRATED, pair.calibrated.index


def _of_wrong(test: PairedDifference) -> PairedDifference:
    """The test of two shares as that of what they lack of one."""
    low, high = test.interval
    return replace(
        test,
        a=1.0 - test.a,
        b=1.0 - test.b,
        difference=0.0 - test.difference,
        interval=Interval(-high, -low),
    )


@dataclass(frozen=True)
class _About:
    """Which model is the present one, and what the intervals of its tests are."""

    against: str
    confidence: float
    n: int
    group: str | None = None

    def contrast(
        self, a: str, b: str, figure: str, part: str, test: PairedDifference | PairedCosts
    ) -> Contrast:
        """Of a paired test, a − b."""
        model, new, old = (a, test.a, test.b) if b == self.against else (b, test.b, test.a)
        tail = 0.5 * (1.0 - self.confidence)
        half = 0.5 * (test.interval.high - test.interval.low)
        untested = ""
        if isinstance(test, PairedCosts):  # its cases count alike
            freedom, untested = max(self.n - 1.0, 1.0), test.why_no_test
            error = half / -float(stdtrit(freedom, tail))
        elif self.group is not None:  # intervals of groups allow for one more case, too
            error, freedom = half / -float(ndtri(tail)), inf
        else:  # intervals know the degrees of freedom
            error, freedom = test.standard_error, inf
            if error > 0.0 and half / error > -float(ndtri(tail)) * (1.0 + 1e-9):
                freedom = float(stdtridf(1.0 - tail, half / error))
        return Contrast(
            model,
            figure,
            part,
            new,
            old,
            error,
            None,
            freedom,
            f"against {words.shortened(self.against)}",
            self.group,
            untested or "no case tells the models apart, or one gives all the same score",
        )


def unpaired_contrast(
    new: Measured,
    old: Measured,
    named: tuple[str, str, str],
    source: str,
    group: str | None = None,
) -> Contrast:
    """Of figures of two samples, on the scale of the logarithm where both are positive."""
    errors = [nan if part.standard_error is None else part.standard_error for part in (new, old)]
    relative = None
    if min(new.value, old.value) > 0.0:
        relative = hypot(errors[0] / new.value, errors[1] / old.value)
    return Contrast(
        *named,
        new.value,
        old.value,
        hypot(*errors),
        relative,
        inf,
        source,
        group,
        "it has no standard error",
    )


@dataclass(frozen=True)
class Verdict:
    """A contrast with the largest value allowed, and the reason if it fails."""

    contrast: Contrast
    limit: float
    passed: bool
    reason: str
    source: str


def judged(
    contrasts: list[Contrast],
    confidence: float,
    tolerance: float,
    margin: float | None,
) -> Iterator[Verdict | str]:
    """Verdicts, and sentences on what is not held."""
    main = _held_by_margin(contrasts) if margin is not None else set()
    shared = [part for part in contrasts if part.tested and part.figure not in main]
    weights = {grouped: _total_weight(shared, grouped) for grouped in (False, True)}
    n_families = sum(total > 0 for total in weights.values())
    for part in contrasts:
        if part.figure in main:
            assert margin is not None
            yield _within(part, margin, confidence)
        else:
            total = max(weights[part.group is not None] * n_families, 1)
            level = (1.0 - confidence) * _weight(part, shared) / total
            yield _not_worse(part, level, tolerance)


def _weight(part: Contrast, tested: list[Contrast]) -> int:
    """Share of the level: figures that say most count twice."""
    if part.figure != "log_loss" or part.part == CALIBRATED:
        return 1 if part.figure == "fragility_index" else 2
    alike = (part.model, part.figure, part.group, part.source)
    calibrated = (
        other.part == CALIBRATED and (other.model, other.figure, other.group, other.source) == alike
        for other in tested
    )
    return 1 if any(calibrated) else 2


def _total_weight(tested: list[Contrast], grouped: bool) -> int:
    return sum(_weight(part, tested) for part in tested if (part.group is not None) == grouped)


def _held_by_margin(contrasts: list[Contrast]) -> set[str]:
    """The margin is money where there are costs; where there are none what models are judged by."""
    held = {part.figure for part in contrasts}
    return {next((name for name in ("cost", WRONG) if name in held), "log_loss")}


def _within(part: Contrast, margin: float, confidence: float) -> Verdict:
    limit = part.worst_within(margin, 0.5 * (1.0 - confidence))
    source = f"{part.source}, margin {margin:g}"
    if part.new < limit:
        return Verdict(part, limit, True, "", source)
    level = words.level(confidence)
    if isnan(limit):
        why = f"there is no test ({part.untested})"
    else:
        most = part.new - limit + margin
        why = f"the upper limit of the difference ({level}) is {words.signed(most, 4)}"
    reason = f"{_told(part)}; {why}, which must be below the margin of {margin:g}."
    return Verdict(part, limit, False, reason, source)


def _not_worse(part: Contrast, level: float, tolerance: float) -> Verdict | str:
    model = words.shortened(part.model)
    where = "" if part.group is None else f" in {part.group}"
    limit = part.worst_allowed(level, tolerance)
    if not limit < (LARGEST_LOG_LOSS if part.figure == "log_loss" else inf):
        old = words.number(part.old)
        return f"{part.title} of {model}{where} is not held: no value is clearly worse than {old}."
    alike = abs(part.new - part.old) <= _ROUNDING * part.old
    if isfinite(part.new) and not part.tested and not alike:
        return f"{part.title} of {model}{where} is not held: {part.untested}."
    if part.new <= limit:
        return Verdict(part, limit, True, "", part.source)
    reason = (
        f"{_told(part)}: clearly worse, beyond {words.number(limit, 4)}, which chance (and "
        f"{100.0 * tolerance:g} % between trainings) may make of it."
    )
    return Verdict(part, limit, False, reason, part.source)


def _told(part: Contrast) -> str:
    where = "" if part.group is None else f" in {part.group}"
    new, old = (words.number(value, 4) for value in (part.new, part.old))
    present = "the baseline" if part.source == BASELINE else part.source.removeprefix("against ")
    return f"{part.title} of {words.shortened(part.model)}{where} is {new}, that of {present} {old}"
