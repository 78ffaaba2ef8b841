"""From results to what people read: tables, figures, verdicts and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pandas import DataFrame

from experiments import files, page, tables
from experiments.claims import Claim, Verdict
from experiments.environment import Record
from experiments.experiment import NAMES, Experiment, Report, find
from fragility._files import write_whole

__all__ = ["Reported", "report"]


@dataclass(frozen=True)
class Reported:
    """An experiment with its results, and everything that is shown of them."""

    experiment: Experiment
    record: Record
    report: Report
    verdicts: Sequence[tuple[Claim, Verdict | None]]

    @classmethod
    def of(cls, name: str, folder: Path) -> Reported:
        """What the results in a folder say."""
        experiment = find(name)
        results = files.load(folder)
        record = files.record_of(folder)
        assert record is not None
        if record.experiment != name:
            raise ValueError(f"{folder} holds results of {record.experiment}, not of {name}.")
        try:
            verdicts = [(claim, claim.rule(results)) for claim in experiment.claims]
            return cls(experiment, record, experiment.report(results), verdicts)
        except ValueError as error:
            raise ValueError(f"{folder}: {error}") from error

    def tables(self) -> dict[str, DataFrame]:
        """The tables of the report, and one of the claims where there are any."""
        shown = dict(self.report.tables)
        if self.verdicts:
            shown["claims"] = DataFrame(
                [
                    {
                        "where": claim.where,
                        "claim": claim.says,
                        "verdict": verdict.holds if verdict else "not judged",
                        "because": verdict.because if verdict else "not in these results",
                    }
                    for claim, verdict in self.verdicts
                ]
            )
        return shown


def report(root: Path, names: Iterable[str] | None = None) -> list[Reported]:
    """Write tables and figures of some experiments (all with results), and the page of all.

    Nothing is recomputed: the same results give the same files, byte for byte.
    """
    there = [name for name in NAMES if files.record_of(root / name) is not None]
    wanted = there if names is None else list(names)
    for name in wanted:
        find(name)
        if name not in there:
            raise ValueError(
                f"There are no results of {name} in {root}: python -m experiments run {name}"
            )
    if not there:
        raise ValueError(f"There are no results in {root}: python -m experiments run NAME")
    everything = [Reported.of(name, root / name) for name in there]
    for one in everything:
        if one.experiment.name in wanted:
            _write(one, root / one.experiment.name)
    write_whole(root / "index.html", page.html(everything))
    return [one for one in everything if one.experiment.name in wanted]


def _write(one: Reported, folder: Path) -> None:
    from experiments import figures  # only here, so that a command that draws nothing starts soon

    content = {}
    for name, table in one.tables().items():
        content[f"table_{name}.csv"] = tables.csv_table(table)
        content[f"table_{name}.md"] = tables.markdown(table)
    for name, draw in one.report.figures.items():
        content[f"{name}.svg"] = figures.svg(draw)
    for name, text in content.items():
        write_whole(folder / name, text)
    for old in (*folder.glob("table_*.csv"), *folder.glob("table_*.md"), *folder.glob("*.svg")):
        if old.name not in content:
            old.unlink()
