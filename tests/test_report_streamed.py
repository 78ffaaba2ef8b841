"""Reports on files measured in passes against the same in memory."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fragility.deferral import Costs
from fragility.report import streamed
from fragility.report.files import report_on_file
from fragility.tables import PredictionFile, open_table

CLASSES = ("cat", "dog", "owl")


def prediction_file(folder, columns, scores, classes=None, **options):
    path = folder / "table.csv"
    with path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return PredictionFile(
        open_table(path), label="y", models={"m": scores}, classes=classes, **options
    )


def both(file, **options):
    return [report_on_file(file, hold=hold, n_worst=0, **options) for hold in (np.inf, 0)]


def test_large_files_are_measured_in_passes_unless_told_otherwise(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"y": rng.integers(0, 2, 200), "p": rng.random(200)}
    file = prediction_file(tmp_path, columns, ["p"])

    def in_passes(**options):
        return "passes" in " ".join(report_on_file(file, calibrate=False, **options).notes)

    assert not in_passes()
    assert in_passes(hold=0)
    assert in_passes(hold=199)
    assert not in_passes(hold=200)
    assert not in_passes(hold=np.inf)


def animals(n, seed, n_groups):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3))
    codes = rng.integers(0, 3, n)
    logits[np.arange(n), codes] += np.where(codes == 2, 4.0, 1.5)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    groups = rng.integers(0, n_groups, n)
    groups[codes == 2] = np.maximum(groups[codes == 2], 1)  # group 0 has no owls
    columns = {"y": np.array(CLASSES)[codes], "g": np.char.add("g", groups.astype(str))}
    return {
        **columns,
        "w": np.round(rng.exponential(size=n) ** 4, 6),
        **dict(zip("abc", p.T, strict=True)),
    }


def test_confident_cases_and_groups_are_those_in_memory(tmp_path):
    file = prediction_file(
        tmp_path, animals(1_500, 0, 6), ("a", "b", "c"), CLASSES, weight="w", group="g"
    )
    memory, stream = both(file, calibrate=False)
    ours, theirs = (report.models[0].raw.confident for report in (memory, stream))
    assert ours.n == theirs.n
    assert ours.effective < 0.5 * ours.n
    for name in ("effective", "confidence", "right"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-12)
    assert [part.lacks_classes for part in memory.groups] == [True] + 5 * [False]
    for one, other in zip(memory.groups, stream.groups, strict=True):
        assert other.in_all == pytest.approx(one.in_all, rel=1e-9)
        assert other.lacks_classes == one.lacks_classes
        assert list(other.cautious) == pytest.approx(list(one.cautious), rel=1e-3)
        assert other.cautious.low < other.index.interval.low  # it allows for six groups


def test_an_absent_class_is_a_note_and_no_warning(tmp_path):
    columns = animals(300, 1, 2)
    columns["y"] = np.where(columns["y"] == "owl", "cat", columns["y"])
    file = prediction_file(tmp_path, columns, ("a", "b", "c"), CLASSES)
    memory, stream = both(file)
    for report in (memory, stream):
        assert any("No case of 'owl'" in note for note in report.notes)


def test_a_file_with_a_rhythm_is_calibrated_as_any_other(tmp_path, monkeypatch):
    """Patients and controls by turns: every other case would be of one class only."""
    monkeypatch.setattr(streamed, "_SAMPLE", 400)
    rng = np.random.default_rng(2)
    y = np.arange(4_000) % 2
    logit = 2.0 * rng.normal(size=y.size) + 2.0 * (2 * y - 1)
    file = prediction_file(tmp_path, {"y": y, "p": 1 / (1 + np.exp(-3 * logit))}, ("p",))
    memory, stream = both(file, costs=Costs(10.0))
    assert any("one case in" in note for note in stream.notes)
    losses = [report.models[0].calibrated.figures["log_loss"].value for report in (memory, stream)]
    assert losses[1] == pytest.approx(losses[0], rel=0.03)


def test_the_gap_allows_for_an_order_that_is_not_known(tmp_path):
    """All confidences within a billionth of Chow's threshold, half of them on either side."""
    rng = np.random.default_rng(3)
    confidence = 0.9 + 1e-9 * (rng.random(5_000) - 0.5)
    y = rng.random(5_000) < np.where(confidence > 0.9, 1.0, 0.4)
    file = prediction_file(tmp_path, {"y": y.astype(int), "p": confidence}, ("p",))
    memory, stream = both(file, costs=Costs(10.0), calibrate=False)
    true = memory.models[0].raw.threshold.gap  # next to nothing
    low, high = stream.models[0].raw.threshold.gap_interval
    assert low <= true <= high
    assert "chow_gap" not in [finding.kind for finding in (*memory.findings, *stream.findings)]


def test_below_hold_a_file_has_the_same_figures_however_it_is_read(tmp_path):
    file = prediction_file(tmp_path, animals(300, 5, 2), list("abc"), classes=CLASSES)
    whole, held = (report_on_file(file, hold=hold, n_worst=3) for hold in (np.inf, 900))
    assert whole.to_json() == held.to_json()
    assert "passes" in " ".join(report_on_file(file, hold=899, n_worst=0).notes)


def test_compressed_files_are_counted_before_they_are_held(tmp_path):
    import gzip

    columns = {"y": np.arange(50) % 2, "p": np.linspace(0.1, 0.9, 50)}
    plain = prediction_file(tmp_path, columns, ["p"])
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "table.csv").read_bytes()))
    file = PredictionFile(open_table(packed), label="y", models={"m": ["p"]})
    for hold, passes in ((50, False), (49, True)):
        notes = " ".join(report_on_file(file, hold=hold, calibrate=False).notes)
        assert ("passes" in notes) == passes
    same = report_on_file(plain, hold=50).to_json(), report_on_file(file, hold=50).to_json()
    assert same[0] == same[1]
