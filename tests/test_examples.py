"""What the README promises of the demo, and what the other examples show."""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
HEART = Path(os.environ.get("FRAGILITY_DATA", ROOT.parent / "shared" / "data"))


def test_demo_shows_equal_auc_and_unequal_fragility(capsys):
    runpy.run_path(str(ROOT / "examples" / "equal_auc.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = {
        name.strip(): (float(first), float(second))
        for name, first, second in re.findall(
            r"^(.{34}) +([\d.]+) +([\d.]+)$", printed, flags=re.MULTILINE
        )
    }
    assert rows["AUC"][0] == pytest.approx(rows["AUC"][1], abs=0.005)
    assert rows["Fragility Index"][1] > 1.3 * rows["Fragility Index"][0]
    assert rows["relative to separation"][1] > 0
    assert "The cases that carry the risk" in printed


def run(monkeypatch, name, *arguments):
    script = ROOT / "examples" / name
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.skipif(not (HEART / "heart" / "heart.csv").is_file(), reason="no heart.csv at hand")
def test_heart_compares_models_at_equal_calibration(capsys, monkeypatch):
    run(monkeypatch, "heart.py", "--trials", 2, "--data", HEART, "--flip", 0)
    printed = capsys.readouterr().out
    rows = {
        name.strip(): [float(value) for value in re.findall(r"([-+.\d]+) ±", cells)]
        for name, cells in re.findall(r"^(.{17})((?: +\S+ ± \S+){5})$", printed, re.MULTILINE)
    }
    assert set(rows) == {"accuracy", "AUC", "FI", "ratio", "calibrated FI", "calibrated ratio"}
    assert all(0.8 < value < 1.0 for value in rows["accuracy"][:3] + rows["AUC"][:3])
    for erm, kl, wasserstein, kl_less_erm, wasserstein_less_erm in rows.values():
        assert kl_less_erm == pytest.approx(kl - erm, abs=0.0015)
        assert wasserstein_less_erm == pytest.approx(wasserstein - erm, abs=0.0015)
    assert rows["FI"][2] < rows["FI"][0]  # weaker scores are less fragile before calibration
    assert printed.count("Wasserstein: ") == 1


def test_heart_without_data_says_where_to_put_it(capsys, monkeypatch, tmp_path):
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, "heart.py", "--data", tmp_path)
    assert stop.value.code == 2
    assert "heart.csv" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
def test_label_cost_is_exact_where_the_approximation_has_no_solution(loss):
    example = runpy.run_path(str(ROOT / "examples" / "label_cost.py"), run_name="label_cost")
    X, y = example["data"]()
    found = example["label_costs"](X[::4, :8], y[::4], loss, costs=[0.05, 0.1, 3.0])
    assert 0.5 * found.exact_from < found.feasible_from < found.exact_from
    inside = found.costs > found.feasible_from
    assert np.isinf(found.approximate[~inside]).all()
    assert np.isfinite(found.exact).all()
    # A safe bound where there is one; no more than that before it is proved to be exact.
    assert (found.approximate >= found.exact * (1.0 - 1e-6)).all()
    assert found.approximate[inside][0] > 1.2 * found.exact[inside][0]
    assert found.approximate[-1] == pytest.approx(found.exact[-1], rel=1e-5)
    assert found.exact[-1] == pytest.approx(found.without, rel=1e-6)
    # Cheap labels alone decide, and their price is all that matters.
    assert (found.exact * found.costs >= found.product * (1.0 - 1e-6)).all()
    assert found.exact[0] == pytest.approx(found.product / found.costs[0], rel=0.05)


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("torch")
    return runpy.run_path(str(ROOT / "examples" / "train_network.py"), run_name="network")


class TestNetwork:
    """The methods in a network; few epochs, so that only what is sure is asserted."""

    def test_every_metric_of_every_method(self, capsys, monkeypatch, example):
        run(monkeypatch, "train_network.py", "--splits", 2, "--epochs", 8)
        printed = capsys.readouterr().out
        rows = {
            name.strip(): [float(value) for value in re.findall(r"([.\d]+) ±", cells)]
            for name, cells in re.findall(r"^(.{17})((?: +\S+ ± \S+){4})$", printed, re.MULTILINE)
        }
        assert tuple(rows) == example["METRICS"]
        assert all(0.8 < value < 1.0 for value in rows["accuracy"] + rows["AUC"])
        # All networks are less sure after so few epochs than is right: the temperature mends that.
        mended = zip(rows["calibrated loss"], rows["log-loss"], strict=True)
        assert all(after < before for after, before in mended)
        assert all(f"  {name}: FI " in printed for name in list(example["METHODS"])[1:])

    def test_added_lines_do_what_they_say(self, example):
        training, validation, test = example["split"](0, 0.1)
        assert [len(y) for _, y in (training, validation, test)] == [250, 128, 191]
        (_, clean), *_ = example["split"](0, 0.0)
        assert 10 < (training[1] != clean).sum() < 40
        vectors = {}
        for name in ("plain", "regulariser"):
            method = example["METHODS"][name]
            weight = example["trained"](method, *training, epochs=5, seed=0)[-1].weight
            vectors[name] = (weight[0] - weight[1]).norm().item()
        assert vectors["regulariser"] < 0.9 * vectors["plain"]

    def test_verdict(self, example):
        same, less = np.array([-0.01, 0.01, 0.0]), np.array([-0.031, -0.029, -0.03])
        change = dict.fromkeys(example["METRICS"], same)
        verdict = example["verdict"]
        assert verdict(change) == (
            "FI as in plain training within chance, and calibrated alike no difference beyond "
            "chance."
        )
        change |= {"FI": less, "calibrated FI": -less, "AUC": less, "calibrated loss": less}
        assert verdict(change) == (
            "FI lower by 0.030, calibrated alike higher by 0.030; AUC worse by 0.030; calibrated "
            "loss better by 0.030."
        )


def test_costs_of_confusions_are_compared_on_test_data():
    example = runpy.run_path(str(ROOT / "examples" / "pair_costs.py"), run_name="pair_costs")
    X, y, n_train = example["data_sets"]()["breast cancer"]
    found = example["compared"](X, y, n_train, example["LOSSES"]["cross-entropy"], 4)
    assert found.shape == (4, 2, len(example["DECISIONS"]))
    argmax, least, policy = (found[:, 1] - found[:, 0]).mean(axis=0)
    assert argmax < -0.05  # training with costs saves where the highest score decides,
    assert least > -0.02  # and hardly where the matrix decides anyway
    assert policy > -0.02
    # To decide by the matrix saves as much.
    assert abs(found[:, 1, 0].mean() - found[:, 0, 1].mean()) < 0.1
