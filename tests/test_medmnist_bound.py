"""Rules about the bound of the regulariser, with made-up results."""

import numpy as np
import pandas as pd
import pytest

from experiments import medmnist_bound
from experiments.medmnist_report import MEASURES

RULES = dict(
    zip(
        ("violated", "comparable", "lowers", "calibrated"),
        [claim.rule for claim in medmnist_bound.EXPERIMENT.claims],
        strict=True,
    )
)


def results(trials=10, excess=0.02, violations=0.02, bound=0.1, **changes):
    """All figures are .5 and noise that the methods share; `changes` are of the regularised."""
    rows = []
    for method in medmnist_bound.METHODS:
        for trial in range(trials):
            row = dict.fromkeys(MEASURES, 0.5 + 0.01 * trial)
            row |= {"scaled_pairs": "0.5", "bound": np.nan, "excess": np.nan, "violations": np.nan}
            if method != "ERM":
                row |= {"bound": bound, "excess": excess, "violations": violations}
                for name, change in changes.items():
                    row[name] += change + 0.001 * (-1) ** trial
            kind = {"dataset": "breast", "stem": "7x7", "method": method, "trial": trial}
            rows += [{**kind, "pick": pick, **row} for pick in ("ce", "ce+fi")]
    return pd.DataFrame(rows)


def mixed(share, good, bad):
    """The first trainings of one kind, the others of another."""
    good, bad = results(**good), results(**bad)
    return pd.concat([good[good["trial"] < 10 * share], bad[bad["trial"] >= 10 * share]])


def test_hardly_violated():
    rule = RULES["violated"]
    found = rule(results())
    assert found.holds == "holds"
    assert "in 20 of 20 trainings (median +2.0%)" in found.because
    for wrong in ({"excess": 0.06}, {"violations": 0.0201}, {"violations": 0.28}, {"bound": 0.0}):
        assert rule(results(**wrong)).holds == "does not hold"
        assert rule(mixed(0.6, {}, wrong)).holds == "holds partly"
        assert rule(mixed(0.4, {}, wrong)).holds == "does not hold"
    assert rule(results(excess=np.nan)).holds == "does not hold"


def test_comparable():
    rule = RULES["comparable"]
    assert rule(results(accuracy=-0.01, auc_ovr=0.3)).holds == "holds"
    assert rule(results(accuracy=-0.05, auc_ovr=0.3)).holds == "holds partly"
    assert rule(results(accuracy=-0.05, auc_ovr=-0.03)).holds == "does not hold"


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("lowers", ("log_loss", "capped_fragility_index")),
        ("calibrated", ("scaled_fragility_index", "calibrated_fragility_index")),
    ],
)
def test_lowers(name, figures):
    rule, (first, second) = RULES[name], figures
    assert rule(results(**{first: -0.1, second: -0.1})).holds == "holds"
    assert rule(results(**{first: -0.1, second: 0.1})).holds == "holds partly"
    assert rule(results(**{first: -0.0001, second: 0.0})).holds == "does not hold"  # by chance
    found = results(**{first: -0.1, second: -0.1})
    found.loc[found["method"] == "Regulariser", list(figures)] = 9.0  # the strong one is not asked
    assert rule(found).holds == "does not hold"


@pytest.mark.parametrize("name", RULES)
def test_too_few_say_nothing(name):
    assert RULES[name](results(trials=9)) is None
    assert RULES[name](results().assign(dataset="stand-in")) is None
    lacking = results()
    assert RULES[name](lacking[lacking["method"] != "ERM"]) is None


def test_what_is_run_and_shown():
    conditions = medmnist_bound.conditions(False)
    assert [one["method"] for one in conditions] == ["ERM", "Regulariser", "Regulariser strong"]
    assert medmnist_bound.METHODS["Regulariser"] == {"regularizer": 0.1}
    tables = medmnist_bound.report(results(accuracy=0.02)).tables
    assert tables["bounds"]["trainings"].tolist() == [10, 10]
    assert tables["bounds"]["largest_excess"].tolist() == [0.02, 0.02]
    assert set(tables) == {"bounds", "against_erm", "models"}
    alone = results()
    alone = alone[alone["method"] == "Regulariser"].assign(dataset="stand-in")
    assert set(medmnist_bound.report(alone).tables) == {"bounds", "models"}
