"""What commands leave for others: a line in a history, JUnit XML, annotations of GitHub."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from .console import say, show_text
from .options import check_ending, force_option, together

if TYPE_CHECKING:
    from datetime import datetime

    from ..deferral import Policy
    from ..report import Report
    from ..report.decided_alone import DecidedAlone
    from ..report.gates import Check
    from ..tables import CaseFile

record_options = together(
    click.option(
        "--record",
        type=click.Path(),
        metavar="JSONL",
        help="History to add a dated line to, for `fragility history`.",
    ),
    click.option(
        "--date", metavar="DATE", help="Date of that line, such as 2026-05-04 or with a time [now]."
    ),
    click.option(
        "--policy",
        "policy_file",
        type=click.Path(),
        metavar="JSON",
        help="Policy that `fragility cost --policy` wrote: the line counts what it decides alone.",
    ),
)
gate_file_options = together(
    click.option("--junit", type=click.Path(), metavar="XML", help="JUnit XML to write."),
    click.option(
        "--annotations/--no-annotations",
        default=None,
        help="Show what failed on GitHub [if GITHUB_ACTIONS is true].",
    ),
    force_option,
)


@dataclass
class Recording:
    """The line that a command adds to a history, if it was asked to.

    It is made of the options before the report is, so that what is wrong with them is said at once.
    """

    path: str | None
    date: datetime | None = None
    policy: tuple[Policy, str, str] | None = None
    _counted: dict[str, DecidedAlone] = field(default_factory=dict)

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Recording:
        """Take the options of a record out of all options; the report's reading is watched."""
        path, date, file = (options.pop(name) for name in ("record", "date", "policy_file"))
        if path is None:
            for name, given in (("--date", date), ("--policy", file)):
                if given is not None:
                    raise click.UsageError(f"{name} is for --record, which is not given.")
            return cls(None)
        from ..report.provenance import sha256_of
        from ..report.records import check_appendable, parse_date

        check_appendable(path)
        found = cls(path)
        if date is not None:
            try:
                found.date = parse_date(date)
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="--date") from None
        if file is not None:
            from ..deferral.policy_files import load_policy

            found.policy = (load_policy(file), file, sha256_of(file))
        options["watch"] = found._read
        return found

    def _read(self, file: CaseFile[Any]) -> None:
        """Count what the policy decides alone."""
        if self.policy is not None:
            from ..report.decided_alone import by_policy

            model, alone = by_policy(*self.policy, file)
            self._counted[model] = alone

    def add(self, made: Report, checks: Sequence[Check] | None = None) -> None:
        """Add the line; `checks` are those of a gate."""
        if self.path is None:
            return
        from datetime import UTC, datetime

        from ..report.records import append_record, make_record

        passed: dict[str, bool] = {}  # a model that was held to nothing has not passed
        for check in checks or ():
            passed[check.model] = passed.get(check.model, True) and check.passed
        date = datetime.now(UTC).replace(microsecond=0) if self.date is None else self.date
        record = make_record(made, date=date, by_model=self._counted, passed=passed)
        append_record(self.path, record)
        say(f"Added a line to {self.path}: see `fragility history {self.path}`.")


@dataclass(frozen=True)
class GateFiles:
    """Results of a gate for machines, if they were asked for."""

    junit: str | None
    annotations: bool

    @classmethod
    def taken_from(cls, options: dict[str, Any], *, also: bool) -> GateFiles:
        """Take the options of these files out of all; `also` says that another one is written."""
        junit, wanted, force = (options.pop(name) for name in ("junit", "annotations", "force"))
        if junit is not None:
            from ..tables import check_output

            check_ending(junit, ".xml", option="--junit")
            inputs = [options.get("file"), options.get("baseline")]
            check_output(junit, [path for path in inputs if path is not None], force=force)
        elif force and not also:
            raise click.UsageError("--force is for --junit and --save-baseline; give one of them.")
        if wanted is None:
            wanted = os.environ.get("GITHUB_ACTIONS") == "true"
        return cls(junit, wanted)

    def write(
        self, checks: Sequence[Check], not_held: Sequence[str], file: str, *, stderr: bool
    ) -> None:
        """Write the file; GitHub reads annotations on both streams."""
        from ..report.gate_files import github_annotations, junit_xml

        if self.annotations:
            for line in github_annotations(checks):
                show_text(line, stderr=stderr)
        if self.junit is not None:
            from ..tables import write_file

            write_file(self.junit, junit_xml(checks, file, not_held))
            say(f"Wrote {self.junit}.")
