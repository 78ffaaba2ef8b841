"""Findings: what the figures of a report say, in plain words. One rule for each kind of sentence.

A rule reads a report and yields sentences, or none. A reader who doubts a sentence finds its rule
by its code in `fragility.report.findings.registry` and in docs/findings.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts import Finding
from .registry import RULES, STOPS, Rule, check_mute

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["RULES", "STOPS", "Rule", "check_mute", "findings", "unmuted"]

#: How the note on muted findings begins.
_MUTED = "Muted findings: "


def findings(report: Report) -> tuple[Finding, ...]:
    """All findings of a report, muted ones too: severe ones first, then in the order of the rules.

    If scores are plainly those of another class, nothing else is said.
    """
    stops = _said_by(STOPS, report)
    if stops:
        return stops
    found = [finding for rule in RULES for finding in _said_by(rule, report)]
    return tuple(sorted(found, key=lambda finding: finding.severity != "high"))


def _said_by(rule: Rule, report: Report) -> tuple[Finding, ...]:
    return tuple(
        Finding(rule.code, rule.name, rule.severity, text, tuple(models))
        for text, models in rule.speaks(report)
    )


def unmuted(report: Report) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings of a report that are not muted, and its notes with one on those that are.

    A report that is made from another has the note already: it is written anew.
    """
    said = findings(report)
    muted = [finding.code for finding in said if finding.code in report.mute]
    notes = [note for note in report.notes if not note.startswith(_MUTED)]
    if muted:
        codes = ", ".join(sorted(set(muted)))
        notes.append(f"{_MUTED}{len(muted)} ({codes}; see docs/findings.md).")
    return tuple(finding for finding in said if finding.code not in muted), tuple(notes)
