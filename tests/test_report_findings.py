"""Every finding sentence: data where it must appear, and data where it must not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fragility import Interval, PreviousPredictions, Report
from fragility.measured import Measured
from tests.confident_models import classes_drawn, logistic


def patients(n=600, seed=0, spread=2.0):
    """Truth and a calibrated log-odds."""
    rng = np.random.default_rng(seed)
    logit = spread * rng.normal(size=n)
    return rng.random(n) < logistic(logit), logit, rng


def kinds(report):
    return [finding.kind for finding in report.findings]


def text(report, kind):
    (found,) = [finding.text for finding in report.findings if finding.kind == kind]
    return found


SICK, LOGIT, RNG = patients(900)
NOISY = LOGIT + 2 * RNG.normal(size=LOGIT.size)  # knows less, and says so after calibration
FAIR, BOLD, TIMID = logistic(LOGIT), logistic(3 * LOGIT), logistic(0.3 * LOGIT)


def fair_and(name, other, **options):
    return Report.from_predictions(SICK, {"fair": FAIR, name: other}, **options)


def test_fewer_confident_mistakes():
    found = text(fair_and("noisy", logistic(NOISY)), "fewer_confident_mistakes")
    assert found.startswith("fair makes fewer confident mistakes than noisy, at equal calibration")
    assert "95 % interval −" in found
    swapped = Report.from_predictions(SICK, {"noisy": logistic(NOISY), "fair": FAIR})
    assert text(swapped, "fewer_confident_mistakes") == found


@pytest.mark.parametrize("other", [BOLD, TIMID], ids=["bold", "timid"])
def test_no_fewer_confident_mistakes_by_scale_alone(other):
    assert "fewer_confident_mistakes" not in kinds(fair_and("other", other))


def test_explained_by_scale():
    # Each model has bins and folds of its own: a difference may be left that could be chance.
    found = text(fair_and("timid", TIMID), "explained_by_scale")
    assert found.startswith("timid's lower Fragility Index before calibration")
    assert "is explained by its smaller scores" in found
    assert found.endswith("which could be chance.")
    # One temperature turns powers of probabilities into each other; here in the same folds, too,
    # as these have the same order.
    rng = np.random.default_rng(0)
    codes, top = rng.integers(0, 3, 900), rng.uniform(0.4, 0.99, 900)
    guessed = np.where(rng.random(900) < top, codes, (codes + rng.integers(1, 3, 900)) % 3)
    p = np.where(np.eye(3, dtype=bool)[guessed], top[:, None], (1 - top[:, None]) / 2)
    power = p**0.3 / (p**0.3).sum(axis=1, keepdims=True)
    report = Report.from_predictions(codes, {"fair": p, "timid": power})
    found = text(report, "explained_by_scale")
    assert found.startswith("timid's lower Fragility Index before calibration")
    assert found.endswith("nothing is left of the difference.")


def test_explained_by_scale_and_turned_round():
    timid_and_worse = logistic(0.15 * NOISY)
    found = text(fair_and("weak", timid_and_worse), "explained_by_scale")
    assert found.startswith("weak's lower Fragility Index")
    assert found.endswith("at equal calibration, fair has the lower one.")


def comparison(raw, calibrated):
    """Two models whose index differs so much before and after calibration, with p-values."""
    report = fair_and("noisy", logistic(NOISY))
    (pair,) = report.comparisons
    parts = [
        replace(
            part,
            tests={**part.tests, "fragility_index": replace(part.index, difference=difference)},
            adjusted={**part.adjusted, "fragility_index": p_value},
        )
        for part, (difference, p_value) in (
            (pair.raw, raw),
            (pair.calibrated, calibrated),
        )
    ]
    return replace(report, comparisons=(replace(pair, raw=parts[0], calibrated=parts[1]),))


def test_not_explained_by_scale_where_only_the_certainty_goes():
    explained = text(comparison((-0.1, 0.01), (-0.02, 0.6)), "explained_by_scale")
    assert "is explained by its smaller scores" in explained
    stays = text(comparison((-0.1, 0.04), (-0.09, 0.06)), "explained_by_scale")
    assert "is not certain to be more than one of scale" in stays


def test_not_explained_by_scale_where_the_difference_stays():
    assert "explained_by_scale" not in kinds(fair_and("noisy", logistic(NOISY)))


def test_same_auc():
    found = text(fair_and("bold", BOLD), "same_auc")
    assert found.startswith("AUC cannot tell fair from bold")
    assert "the mistakes of bold are more confident" in found
    bold, fair = found.split("Fragility Index ")[1].split(", difference ")[0].split(" against ")
    assert float(bold) > float(fair)
    assert ", difference +" in found


def test_not_same_auc():
    assert "same_auc" not in kinds(fair_and("noisy", logistic(NOISY)))


def with_auc(report, *aucs):
    """The same report with other AUCs."""
    models = tuple(
        replace(m, raw=replace(m.raw, figures={**m.raw.figures, "auc": auc}))
        for m, auc in zip(report.models, aucs, strict=True)
    )
    return replace(report, models=models)


def test_not_same_auc_where_one_ranks_many_times_fewer_pairs_wrongly():
    report = fair_and("bold", BOLD)
    assert "same_auc" in kinds(with_auc(report, Measured(0.9), Measured(0.903)))
    assert "same_auc" not in kinds(with_auc(report, Measured(0.9999), Measured(0.9955)))


def test_not_same_auc_where_only_bounds_are_known():
    report = fair_and("bold", BOLD)
    narrow, wide = (
        Measured(0.5, bounds=Interval(0.5 - width, 0.5 + width)) for width in (1e-3, 0.5)
    )
    assert "same_auc" in kinds(with_auc(report, narrow, narrow))
    assert "same_auc" not in kinds(with_auc(report, wide, wide))


def test_no_difference():
    rng = np.random.default_rng(2)
    twins = {name: logistic(LOGIT + rng.normal(size=LOGIT.size)) for name in ("a", "b")}
    report = Report.from_predictions(SICK, twins)
    assert text(report, "no_difference").startswith(
        "In the Fragility Index 900 cases do not tell a from b (difference "
    )


def test_no_sentence_of_no_difference_where_there_is_one():
    assert "no_difference" not in kinds(fair_and("noisy", logistic(NOISY)))
    assert "no_difference" not in kinds(fair_and("bold", BOLD))


def test_overconfident():
    found = text(Report.from_predictions(SICK, {"bold": BOLD}), "overconfident")
    above = np.maximum(BOLD, 1 - BOLD) > 0.9
    right = ((BOLD > 0.5) == SICK)[above].mean()
    assert f"is right in {100 * right:.1f} %" in found
    assert f"the {above.sum()} cases above 90 %" in found


@pytest.mark.parametrize("scores", [FAIR, TIMID], ids=["fair", "timid"])
def test_not_overconfident(scores):
    assert "overconfident" not in kinds(Report.from_predictions(SICK, {"model": scores}))


def test_not_overconfident_by_one_mistake_among_few():
    """At 97 % confidence one mistake in five cases happens to one fair model in seven."""
    scores = [0.97, 0.03, 0.97, 0.03, 0.97]
    few = Report.from_predictions([1, 0, 1, 0, 0], {"m": scores})
    assert "overconfident" not in kinds(few)
    many = Report.from_predictions([1, 0, 1, 0, 0] * 4, {"m": scores * 4})
    assert "overconfident" in kinds(many)


COSTS = {"error_cost": 10.0}


def test_who_decides():
    report = Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS)
    policy = report.models[0].policy
    found = text(report, "who_decides")
    assert found.startswith(f"fair: Decide False below {policy.lower:.4g}, True from ")
    assert f"Decided alone: {100 * policy.automation_rate:.1f} %" in found
    alone = policy.decide(FAIR).automate.mean()
    assert policy.automation_rate == pytest.approx(alone)  # of the printed thresholds
    assert f"without any review {policy.cost_without_review:.4g}" in found
    assert "with full review 1" in found
    free = Report.from_predictions(SICK, {"fair": FAIR}, costs={"error_cost": 0.5})
    assert "no review" in text(free, "who_decides")
    # The surest of its predictions, that nobody is sick, are those of the sickest.
    worst = Report.from_predictions(SICK, {"fair": 0.4 - 0.1 * FAIR}, costs={"error_cost": 1e6})
    assert "A human reviews every case." in text(worst, "who_decides")
    assert "scores of the other class?" in text(worst, "who_decides")


def test_who_decides_says_what_is_guaranteed():
    limits = {"max_error_rate": 0.1}
    report = Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS, policy=limits)
    assert "Guaranteed with 95 % probability: errors, of the cases decided alone, at most" in text(
        report, "who_decides"
    )
    limits = {"max_error_share": 1e-4}
    report = Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS, policy=limits)
    found = text(report, "who_decides")
    assert "A human reviews every case." in found
    assert "900 cases are too few for max_error_share=0.0001: it takes 29,956, 29,056 more" in found


def test_who_decides_names_a_case_that_makes_the_cost():
    costs = np.full(900, 1.0)
    wrong = int(np.argmax(np.where(SICK, -1.0, FAIR)))  # the surest mistake
    costs[wrong] = 1e4
    report = Report.from_predictions(
        SICK, {"fair": FAIR}, costs={"error_cost": costs}, cases=[f"case {k}" for k in range(900)]
    )
    assert f"One case, case {wrong}, makes " in text(report, "who_decides")


def test_no_policy_without_costs():
    assert not {"who_decides", "cheapest"} & set(kinds(fair_and("noisy", logistic(NOISY))))


@pytest.mark.slow
def test_cheapest():
    found = text(fair_and("noisy", logistic(NOISY), costs=COSTS), "cheapest")
    assert found.startswith("fair is the cheapest")
    noise = 0.3 * np.random.default_rng(5).normal(size=900)
    mild = {"error_cost": 2.0, "review_cost": 0.4}
    close = text(fair_and("close", logistic(LOGIT + noise), costs=mild), "cheapest")
    assert close.endswith("), which could be chance.")
    dear = text(fair_and("close", logistic(LOGIT + noise), costs=COSTS), "cheapest")
    assert dear.endswith("; no test: too few costly cases make the difference.")


def test_no_cheapest_of_equal_models_or_of_one():
    assert "cheapest" not in kinds(fair_and("same", FAIR, costs=COSTS))
    assert "cheapest" not in kinds(Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS))


def test_no_separation():
    constant = text(Report.from_predictions(SICK, {"same": np.full(900, 0.4)}), "no_separation")
    assert "gives every case the same score" in constant
    reversed_ = text(Report.from_predictions(SICK, {"reversed": 1 - FAIR}), "no_separation")
    assert "scores the positives no higher than the negatives" in reversed_
    # With equal means neither scores higher.
    equal = text(Report.from_predictions([1, 1, 0, 0], [0.3, 0.7, 0.4, 0.6]), "no_separation")
    assert "no higher" in equal


def test_separation_is_not_denied():
    assert "no_separation" not in kinds(Report.from_predictions(SICK, {"fair": FAIR}))


def animals(n=900, seed=4):
    rng = np.random.default_rng(seed)
    return *classes_drawn(rng, n), rng


def test_infinite_pairs():
    codes, p, _ = animals()
    swapped = p[:, [1, 0, 2]]
    report = Report.from_predictions(codes, {"swapped": swapped})
    infinite = int(np.isinf(report.models[0].raw.pairs).sum())
    assert infinite
    assert f"{infinite} of 6 pairs have an infinite index (true " in text(report, "infinite_pairs")


def test_no_infinite_pairs():
    codes, p, _ = animals()
    assert "infinite_pairs" not in kinds(Report.from_predictions(codes, {"fair": p}))


def test_fragile_pair():
    codes, p, rng = animals(3_000)
    bold = p**4 / (p**4).sum(axis=1, keepdims=True)
    sure = np.eye(3)[codes] * 0.9 + 0.1 / 3
    confused = (codes == 1) & (rng.random(codes.size) < 0.3)  # dogs that look like cats
    sure[confused] = bold[confused][:, [0, 1, 2]] * 0.1 + np.array([0.85, 0.05, 0.0])
    sure /= sure.sum(axis=1, keepdims=True)
    report = Report.from_predictions(np.array(["cat", "dog", "owl"])[codes], {"m": sure})
    assert "m's most confident mistakes are true dog scored as cat" in text(report, "fragile_pair")


def test_no_fragile_pair():
    codes, p, _ = animals(3_000)
    assert "fragile_pair" not in kinds(Report.from_predictions(codes, {"fair": p}))
    assert "fragile_pair" not in kinds(Report.from_predictions(SICK, {"fair": FAIR}))


def test_fragile_group():
    groups = np.where(np.arange(SICK.size) < 300, "old", "young")
    scores = np.where(groups == "old", logistic(0.2 * LOGIT + 4 * (NOISY - LOGIT)), FAIR)
    report = Report.from_predictions(SICK, {"m": scores}, groups=groups)
    found = text(report, "fragile_group")
    assert found.startswith("m is more fragile in the group old (300 cases)")


def test_costly_group():
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(SICK.size) < 0.3, "old", "young")
    flipped = (groups == "old") & (rng.random(SICK.size) < 0.3)
    scores = np.where(flipped, 1.0 - FAIR, FAIR)
    costs = {"error_cost": 2.0, "review_cost": 1.0}
    report = Report.from_predictions(SICK, {"m": scores}, groups=groups, costs=costs)
    found = text(report, "costly_group")
    assert found.startswith("In the group old (")
    assert "per case at its policy" in found
    assert "alone and wrongly" in found
    assert "young" not in found


def test_no_costly_group_by_chance():
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 8, SICK.size)
        costs = {"error_cost": 2.0, "review_cost": 1.0}
        report = Report.from_predictions(SICK, {"m": FAIR}, groups=groups, costs=costs)
        assert "costly_group" not in kinds(report)


def test_shared_mistakes():
    wrong = np.arange(SICK.size) < 7
    scores = np.where(wrong, np.where(SICK, 0.01, 0.99), FAIR)
    report = Report.from_predictions(SICK, {"a": scores, "b": scores**1.1})
    n = report.n_shared_mistakes
    assert n >= 7
    said = text(report, "shared_mistakes")
    assert said.startswith(f"Both models get {n} cases wrong above 90 % confidence. Check their")
    assert "shared_mistakes" not in kinds(Report.from_predictions(SICK, {"a": scores}))


def test_new_mistakes():
    names = [str(row) for row in range(SICK.size)]
    old = PreviousPredictions(SICK, {"m": FAIR}, names)
    scores = np.where(np.arange(SICK.size) < 5, np.where(SICK, 0.001, 0.999), FAIR)
    report = Report.from_predictions(SICK, {"m": scores}, cases=names, previous=old)
    n = report.new_mistakes[0].n_new
    assert n > 3
    said = text(report, "new_mistakes")
    assert said.startswith(f"m: {n} cases are newly wrong above 90 % confidence, ")
    same = Report.from_predictions(SICK, {"m": FAIR}, cases=names, previous=old)
    assert text(same, "new_mistakes").startswith("m: 0 cases are newly wrong above 90 %")
    assert "new_mistakes" not in kinds(Report.from_predictions(SICK, {"m": FAIR}))


def test_no_fragile_group_by_lack_of_an_easy_class():
    """A group of the classes that are hard to tell apart is as fragile as these are in all."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 3_000)
    logits = 0.3 * rng.normal(size=(3_000, 3))
    logits[np.arange(3_000), codes] += np.where(codes == 2, 6.0, 1.0)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    groups = np.where((codes < 2) & (rng.random(3_000) < 0.5), "no owls", "all")
    report = Report.from_predictions(codes, {"m": p}, groups=groups, calibrate=False)
    all_classes, no_owls = report.groups
    assert no_owls.index.interval.low > report.models[0].raw.figures["fragility_index"].value
    pairs = report.models[0].raw.pairs
    assert no_owls.in_all == pytest.approx((pairs[0, 1] + pairs[1, 0]) / 2)
    index = report.models[0].raw.figures["fragility_index"].value
    assert all_classes.in_all == pytest.approx(index)
    assert "fragile_group" not in kinds(report)


def test_no_fragile_group_by_chance():
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 8, SICK.size)
        report = Report.from_predictions(SICK, {"fair": FAIR}, groups=groups)
        assert "fragile_group" not in kinds(report)


def test_perfect_ranking():
    report = Report.from_predictions([0] * 40 + [1] * 40, {"m": np.linspace(0, 1, 80)})
    found = text(report, "perfect_ranking")
    assert found.startswith("m ranks all 80 cases correctly")
    assert "they allow up to 0." in found


def test_perfect_ranking_but_for_ties():
    found = text(
        Report.from_predictions([1, 1, 0, 0], {"m": [0.5, 0.9, 0.1, 0.5]}), "perfect_ranking"
    )
    assert found.startswith("m ranks none of 4 cases wrongly, but for ties, so its")


def test_no_perfect_ranking():
    assert "perfect_ranking" not in kinds(Report.from_predictions(SICK, {"fair": FAIR}))
    constant = Report.from_predictions(SICK, {"same": np.full(900, 0.4)})
    assert "perfect_ranking" not in kinds(constant)


def test_too_few_cases():
    report = Report.from_predictions([1, 1, 0, 0, 0], {"m": [0.6, 0.9, 0.1, 0.8, 0.2]})
    found = text(report, "too_few_cases")
    assert "is 0.0" in found
    assert "to ∞. Class 1 has 2 cases." in found


def test_enough_cases():
    assert "too_few_cases" not in kinds(Report.from_predictions(SICK, {"fair": FAIR}))


def test_every_rule_has_a_test_where_it_appears():
    from fragility.report.findings import RULES

    source = Path(__file__).read_text()
    for rule in RULES:
        assert f"def test_{rule.__name__}" in source


def answers_of(*rates, n=400):
    """Answers of models that are right so often."""
    rng = np.random.default_rng(7)
    correct = {name: rng.random(n) < rate for name, rate in zip("ab", rates, strict=True)}
    sure = {name: 0.3 * own + 0.7 * rng.random(n) for name, own in correct.items()}
    return Report.from_outcomes(correct, sure, calibrate=False)


def test_more_right_answers():
    found = text(answers_of(0.5, 0.7), "more_right_answers")
    assert found.startswith("b is right more often than a: in ")
    assert "95 % interval 0." in found


def test_no_more_right_answers_by_chance():
    assert "more_right_answers" not in kinds(answers_of(0.6, 0.6))
    assert "more_right_answers" not in kinds(fair_and("noisy", logistic(NOISY)))


def test_infinite_indices_are_not_equal_but_for_rounding():
    y = [0, 0, 0, 1, 1, 1]
    upside_down = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
    right = [0.1, 0.2, 0.6, 0.5, 0.8, 0.9]
    report = Report.from_predictions(y, {"bad": upside_down, "good": right}, calibrate=False)
    shown = str(report)
    assert "rounding" not in shown
    assert "no test: an index is 0 or ∞" in shown
    (wrong_way,) = [f.text for f in report.findings if f.kind == "no_separation"]
    assert "the positive class is 1; are the scores those of 0?" in wrong_way


def test_pairs_that_differ_by_rounding_are_equal():
    codes, proba = classes_drawn(np.random.default_rng(0), 300)
    report = Report.from_predictions(codes, {"m": proba}, calibrate=False)
    (model,) = report.models
    said = set()
    for place in ((0, 1), (2, 1)):
        pairs = np.where(np.eye(3) > 0, np.nan, 0.1)
        pairs[0, 1] = pairs[2, 1] = 0.4
        pairs[place] = np.nextafter(0.4, 1.0)
        changed = replace(model, raw=replace(model.raw, pairs=pairs))
        said.add(text(replace(report, models=(changed,)), "fragile_pair"))
    assert len(said) == 1


def test_equal_calibration_is_said_only_where_it_is():
    """No rising map mends scores that go up and down with the risk."""
    rng = np.random.default_rng(0)
    logit = 2.0 * rng.normal(size=4000)
    sick = rng.random(4000) < logistic(logit)
    odd = logistic(logit + 1.5 * np.sin(4.0 * logit))
    unequal = Report.from_predictions(sick, {"fair": logistic(logit), "odd": odd})
    test = unequal.comparisons[0].calibrated.tests["calibration_error"]
    assert test.p_value < 0.05
    found = text(unequal, "fewer_confident_mistakes")
    assert f"after calibration (still unequal: {test.a:.3f}, {test.b:.3f}): " in found
    assert not any("equal calibration" in finding.text for finding in unequal.findings)
    noisy = logistic(logit + rng.normal(size=4000))
    equal = Report.from_predictions(sick, {"fair": logistic(logit), "noisy": noisy})
    assert equal.comparisons[0].calibrated.tests["calibration_error"].p_value >= 0.05
    assert "at equal calibration: " in text(equal, "fewer_confident_mistakes")


def test_chance_beside_an_interval_without_zero_is_explained():
    """The interval is that of one test, the p-value allows for all of them."""
    report = fair_and("noisy", logistic(NOISY))
    (pair,) = report.comparisons
    index = replace(pair.raw.index, interval=Interval(-0.03, -0.001), p_value=0.04)
    parts = [
        replace(
            part,
            tests={**part.tests, "fragility_index": index},
            adjusted={**part.adjusted, "fragility_index": 0.08},
        )
        for part in (pair.raw, pair.calibrated)
    ]
    changed = replace(report, comparisons=(replace(pair, raw=parts[0], calibrated=parts[1]),))
    found = text(changed, "no_difference")
    assert "−0.030 to −0.001 (p = 0.04 alone, 0.08 corrected for 2 tests)" in found
    index = replace(index, interval=Interval(-0.03, 0.001))
    parts = [replace(part, tests={**part.tests, "fragility_index": index}) for part in parts]
    changed = replace(report, comparisons=(replace(pair, raw=parts[0], calibrated=parts[1]),))
    assert "corrected" not in text(changed, "no_difference")
