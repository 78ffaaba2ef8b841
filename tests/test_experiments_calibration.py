"""The calibration experiment: temperature, rows, printed values and rules."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from experiments import calibration
from experiments.calibration import EXPERIMENT, HELD_BACK, MODELS, TRUTH, best_temperature


def test_the_best_temperature_is_the_best():
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.standard_normal(3000)
    y = (rng.random(3000) < expit(logits)).astype(int)
    found = best_temperature(y, 3.0 * logits)
    assert found == pytest.approx(3.0, abs=0.3)
    assert best_temperature(y, 30.0 * logits) == pytest.approx(10.0 * found, rel=1e-5)

    def loss(temperature):
        p = expit(3.0 * logits / temperature)
        return -np.mean(y * np.log(p) + (1 - y) * np.log1p(-p))

    assert loss(found) <= min(loss(t) for t in np.geomspace(1.5, 10.0, 400)) + 1e-12


@pytest.fixture(scope="module")
def results():
    rows = [{"trial": t, **row} for t in range(2) for row in EXPERIMENT.trial({}, t, True)]
    return pd.DataFrame(rows)


def test_rows(results):
    assert str(list(EXPERIMENT.trial({}, 1, True))) == str(
        results[results["trial"] == 1].drop(columns="trial").to_dict("records")
    )
    of = results.groupby("classifier").mean()
    assert of.loc[TRUTH, "std"] == 0.0
    others = of.drop(index=TRUTH)
    assert (others["std"] > 0.1).all()
    assert (others["log_loss"] > of.loc[TRUTH, "log_loss"]).all()
    assert (others["accuracy_train"] > others["accuracy"]).all()


def test_report(results):
    report = EXPERIMENT.report(results)
    models = report.tables["models"].set_index(["classifier", "measure"])
    assert models.loc[("LR", "fragility_index"), "paper"] == 0.194
    assert models.loc[("LR", "fragility_index"), "paper_spread"] == 0.049
    mean = results.loc[results["classifier"] == "LR", "fragility_index"].mean()
    assert models.loc[("LR", "fragility_index"), "ours"] == pytest.approx(mean)
    assert bool(models.loc[("LR", "fragility_index"), "inside"]) == (abs(mean - 0.194) <= 0.049)
    assert len(report.figures["beside_the_paper"]().axes) == 5


def test_every_classifier_is_printed():
    names = set(calibration.printed().index.get_level_values("classifier"))
    assert names == {*MODELS, *HELD_BACK} == set(calibration.CLASSIFIERS)
    assert len(calibration.printed()) == 45


def printed_as_results(sign=1.0):
    """The printed means, or the opposite, a little different from trial to trial."""
    table = calibration.printed()["mean"].unstack().reset_index()
    truth = {"classifier": TRUTH, **dict.fromkeys(calibration.MEASURES, 0.0)}
    table = pd.concat([table, pd.DataFrame([truth])], ignore_index=True)
    order = [*MODELS, *HELD_BACK, TRUTH]
    table = table.set_index("classifier").loc[order].reset_index()
    table[list(calibration.MEASURES)] *= sign
    rng = np.random.default_rng(0)
    trials = [table.assign(trial=trial) for trial in range(5)]
    results = pd.concat(trials, ignore_index=True)
    results[list(calibration.MEASURES)] += 1e-5 * rng.normal(size=(len(results), 5))
    return results


PRINTED_CLAIMS = EXPERIMENT.claims[:3]


def test_what_is_printed_fulfils_the_claims():
    found = [claim.rule(printed_as_results()).holds for claim in PRINTED_CLAIMS]
    assert found == ["holds"] * 3


def test_the_opposite_does_not():
    found = [claim.rule(printed_as_results(-1.0)) for claim in PRINTED_CLAIMS]
    assert [verdict.holds for verdict in found] == ["does not hold"] * 3
    assert found[0].because.startswith("0 of 8 steps clearly")


def test_one_step_the_other_way():
    results = printed_as_results()
    results.loc[results["classifier"] == "SVM", "accuracy"] = 0.99  # between LR and MLP
    assert PRINTED_CLAIMS[0].rule(results).holds == "holds partly"
