"""Findings about models one by one: data where a sentence must appear, and where it must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fragility import Interval, PreviousPredictions, Report
from fragility.measured import Measured
from tests.confident_models import classes_drawn, logistic
from tests.said import LOGIT, NOISY, SICK, fair_and, patients, rules, text, with_figures

FAIR, BOLD, TIMID = logistic(LOGIT), logistic(3 * LOGIT), logistic(0.3 * LOGIT)


def one(scores, **options):
    return Report.from_predictions(SICK, {"m": scores}, **options)


FAIR_REPORT = one(FAIR)


def fair_with(**figures):
    """The report on one fair model with other figures."""
    return with_figures(FAIR_REPORT, figures)


def test_reversed_scores():
    names = np.where(SICK, "yes", "no")
    report = Report.from_predictions(names, {"m": 1 - FAIR}, pos_label="yes", costs=COSTS)
    assert rules(report) == ["reversed_scores"]  # and nothing else is said
    auc = (FAIR[SICK][:, None] < FAIR[~SICK]).mean()
    said = text(report, "reversed_scores")
    assert said.startswith(
        f"m gives the class no higher scores than yes, AUC {auc:.3f} (95 % interval 0.1"
    )
    assert said.endswith("say --positive no (pos_label in Python), else give those of yes.")
    two = Report.from_predictions(SICK, {"good": FAIR, "upside": 1 - FAIR, "down": 1 - BOLD**2})
    assert rules(two) == ["reversed_scores"]
    assert two.findings[0].models == ("down", "upside")
    assert text(two, "reversed_scores").endswith(
        "give their probability of True, as the other models do."
    )


def test_reversed_scores_of_answers_and_of_several_classes():
    rng = np.random.default_rng(0)
    right = rng.random(300) < 0.6
    report = Report.from_outcomes(right, 0.5 * rng.random(300) + 0.3 * ~right)
    assert rules(report) == ["reversed_scores"]
    assert "if its confidence is that of being wrong, give one minus it." in str(report)
    codes, p = classes_drawn(rng, 600)
    turned = Report.from_predictions(codes, {"m": p[:, [1, 2, 0]]})
    assert rules(turned) == ["reversed_scores"]
    assert "in which order the columns of its scores are, which is not 0, 1, 2" in str(turned)


def test_reversed_scores_that_are_all_wrong():
    """An AUC of 0 has the interval of an AUC of 1, the other way round."""
    n = 30
    y, p = [0] * n + [1] * n, np.linspace(0, 1, 2 * n)
    up, down = (Report.from_predictions(y, {"m": part}) for part in (p, 1 - p))
    low, high = up.models[0].raw.figures["auc"].interval
    assert down.models[0].raw.figures["auc"].interval == pytest.approx((1 - high, 1 - low))
    assert rules(down) == ["reversed_scores"]
    few = Report.from_predictions([0, 0, 1, 1], {"m": [0.9, 0.8, 0.2, 0.1]})
    assert "reversed_scores" not in rules(few)  # so few cases may be so by chance
    assert "no_separation" in rules(few)


@pytest.mark.parametrize(
    ("auc", "high", "stops"),
    [(0.4, 0.499, True), (0.4001, 0.499, False), (0.4, 0.5, False), (0.1, None, False)],
)
def test_not_reversed_scores_beyond_the_border(auc, high, stops):
    interval = None if high is None else Interval(0.05, high)
    report = fair_with(auc=Measured(auc, interval))
    assert ("reversed_scores" in rules(report)) == stops
    assert (len(report.findings) == 1) == stops


def test_no_separation():
    constant = text(one(np.full(900, 0.4)), "no_separation")
    assert constant.startswith("m gives every case the same score")
    equal = text(Report.from_predictions([1, 1, 0, 0], [0.3, 0.7, 0.4, 0.6]), "no_separation")
    assert "scores the positives no higher than the negatives on average" in equal
    assert "the positive class is 1; are the scores those of 0?" in equal
    both = {"same": np.full(900, 0.4), "half": np.full(900, 0.5)}
    said = text(Report.from_predictions(SICK, both), "no_separation")
    assert said.startswith("half and same give every case the same score: their Fragility Index")


def test_not_no_separation():
    assert "no_separation" not in rules(FAIR_REPORT)


def test_infinite_indices_are_not_equal_but_for_rounding():
    y = [0, 0, 0, 1, 1, 1]
    upside_down = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
    right = [0.1, 0.2, 0.6, 0.5, 0.8, 0.9]
    report = Report.from_predictions(y, {"bad": upside_down, "good": right}, calibrate=False)
    shown = str(report)
    assert "rounding" not in shown
    assert "no test: an index is 0 or ∞" in shown
    assert "are the scores those of 0?" in text(report, "no_separation")


def test_confident_mistakes():
    report = fair_and("bold", BOLD)
    n = {}
    for name, p in (("fair", FAIR), ("bold", BOLD)):
        wrong = (p > 0.5) != SICK
        n[name] = (wrong & (np.maximum(p, 1 - p) > 0.9)).sum()
        errors = wrong.sum()
    assert text(report, "confident_mistakes") == (
        f"Wrong above 90 % confidence, of 900 cases: bold {n['bold']} "
        f"({100 * n['bold'] / errors:.1f} % of its {errors} errors) and fair {n['fair']} "
        f"({100 * n['fair'] / errors:.1f} % of its {errors} errors)."
    )
    assert f"and m {n['fair']} (" not in str(one(FAIR))
    assert "timid none." in text(fair_and("timid", TIMID), "confident_mistakes")


def test_confident_mistakes_of_weighted_and_of_streamed_cases_are_counted():
    from fragility import ScoreState

    wrong = ((BOLD > 0.5) != SICK) & (np.maximum(BOLD, 1 - BOLD) > 0.9)
    weight = np.where(np.arange(900) < 450, 0.25, 3.0)
    state = ScoreState([False, True], ["m"], hold=0)
    state.update(SICK, {"m": BOLD})
    for report in (one(BOLD, sample_weight=weight), Report.from_state(state)):
        assert f"cases: m {wrong.sum()} (" in text(report, "confident_mistakes")


def test_not_confident_mistakes():
    assert "confident_mistakes" not in rules(one(TIMID))
    one_sure = TIMID.copy()
    place = int(np.flatnonzero(SICK)[0])
    one_sure[place] = 0.05
    assert "of 900 cases: m 1 (" in text(one(one_sure), "confident_mistakes")


def test_overconfident():
    found = text(one(BOLD), "overconfident")
    above = np.maximum(BOLD, 1 - BOLD) > 0.9
    right, mean = ((BOLD > 0.5) == SICK)[above].mean(), np.maximum(BOLD, 1 - BOLD)[above].mean()
    assert found == (
        f"m is overconfident above 90 % confidence: it claims {100 * mean:.1f} % and is right in "
        f"{100 * right:.1f} % of {above.sum()} cases."
    )
    both = Report.from_predictions(SICK, {"noisy": logistic(NOISY), "bold": BOLD})
    assert text(both, "overconfident").startswith("noisy and bold are overconfident above 90 %")


@pytest.mark.parametrize("scores", [FAIR, TIMID], ids=["fair", "timid"])
def test_not_overconfident(scores):
    assert "overconfident" not in rules(one(scores))


def test_not_overconfident_by_one_mistake_among_few():
    """At 97 % confidence one mistake in five cases happens to one fair model in seven."""
    scores = [0.97, 0.03, 0.97, 0.03, 0.97]
    few = Report.from_predictions([1, 0, 1, 0, 0], {"m": scores})
    assert "overconfident" not in rules(few)
    many = Report.from_predictions([1, 0, 1, 0, 0] * 4, {"m": scores * 4})
    assert "overconfident" in rules(many)


@pytest.mark.parametrize(("excess", "said"), [(0.0101, True), (0.0099, False)])
def test_not_overconfident_by_less_than_a_point(excess, said):
    (model,) = FAIR_REPORT.models
    sure = replace(model.raw.confident, n=1e6, effective=1e6, confidence=0.95, right=0.95 - excess)
    changed = replace(model, raw=replace(model.raw, confident=sure))
    assert ("overconfident" in rules(replace(FAIR_REPORT, models=(changed,)))) == said


HONESTY = {"dishonest_confidence", "honest_confidence", "honesty_unknown"}


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.0, 0.05, "honest_confidence"),
        (0.01, 0.05, "honest_confidence"),
        (0.0, 0.0501, "honesty_unknown"),
        (0.01, 0.2, "honesty_unknown"),
        (0.0101, 0.2, "dishonest_confidence"),
        (0.0101, 0.04, "dishonest_confidence"),
    ],
)
def test_honesty_has_borders(low, high, said):
    report = fair_with(calibration_error=Measured(0.02, Interval(low, high)))
    assert HONESTY & set(rules(report)) == {said}
    assert f"calibration error 0.020 (95 % interval {low:.3f} to {high:.3f})" in text(report, said)


def test_dishonest_confidence():
    found = text(one(TIMID), "dishonest_confidence")
    assert found.startswith("The confidence of m is off by more than chance: calibration error 0.1")


def test_not_dishonest_confidence_by_chance():
    """Honest scores are called dishonest in no more than the tail of the interval."""
    said = 0
    for seed in range(40):
        sick, logit, _ = patients(400, seed)
        report = Report.from_predictions(sick, {"m": logistic(logit)}, calibrate=False, n_worst=0)
        said += "dishonest_confidence" in rules(report)
    assert said <= 3


def test_not_dishonest_confidence_twice():
    """An overconfident model has its sentence."""
    assert not HONESTY & set(rules(one(BOLD)))


def test_honest_confidence():
    sick, logit, _ = patients(20_000)
    report = Report.from_predictions(sick, {"m": logistic(logit)}, calibrate=False, n_worst=0)
    assert "The confidence of m is honest within 5 points" in text(report, "honest_confidence")


def test_not_honest_confidence():
    assert "honest_confidence" not in rules(one(TIMID))


def test_honesty_unknown():
    found = text(FAIR_REPORT, "honesty_unknown")
    assert found.startswith("900 cases cannot tell whether the confidence of m is honest")


def test_not_honesty_unknown():
    assert "honesty_unknown" not in rules(one(TIMID))
    assert not HONESTY & set(rules(fair_with(calibration_error=Measured(0.02))))


def test_ranked_errors():
    found = text(FAIR_REPORT, "ranked_errors")
    wrong, sure = (FAIR > 0.5) != SICK, np.maximum(FAIR, 1 - FAIR)
    surest = wrong[np.argsort(-sure)[:810]].mean()
    assert found.startswith("m errs less where it is surer, so reviews of the least sure help")
    assert found.endswith(f": {100 * wrong.mean():.1f} % and {100 * surest:.1f} %.")


def shuffled(n=900, seed=0):
    """Predictions that are right in 70 %, with a confidence that has nothing to do with it."""
    rng = np.random.default_rng(seed)
    y, right = rng.random(n) < 0.5, rng.random(n) < 0.7
    sure = rng.uniform(0.5, 1, n)
    return y, np.where(right == y, sure, 1 - sure)


def test_unranked_errors():
    y, p = shuffled()
    found = text(Report.from_predictions(y, {"m": p}), "unranked_errors")
    assert found.startswith("900 cases do not show that m errs less where it is surer")
    assert found.endswith(f", where chance gives {((p > 0.5) != y).mean():.3f}.")


def test_not_ranked_errors_by_chance():
    for seed in range(40):
        y, p = shuffled(300, seed)
        report = Report.from_predictions(y, {"m": p}, calibrate=False, n_worst=0)
        assert "ranked_errors" not in rules(report)
        assert "unranked_errors" in rules(report)


def test_not_unranked_errors():
    assert "unranked_errors" not in rules(FAIR_REPORT)
    perfect = Report.from_predictions([0] * 40 + [1] * 40, {"m": np.linspace(0, 1, 80)})
    assert not {"ranked_errors", "unranked_errors"} & set(rules(perfect))
    unknown = fair_with(aurc=Measured(0.1))
    assert not {"ranked_errors", "unranked_errors"} & set(rules(unknown))


@pytest.mark.parametrize(("above", "rule"), [(-1e-9, "ranked_errors"), (0.0, "unranked_errors")])
def test_ranking_has_a_border(above, rule):
    rate = ((FAIR > 0.5) != SICK).mean()
    report = fair_with(aurc=Measured(0.1, Interval(0.05, rate + above)))
    assert rule in rules(report)


def test_one_model_has_few_findings():
    assert 2 <= len(FAIR_REPORT.findings) <= 4
    assert 2 <= len(one(BOLD, costs=COSTS).findings) <= 4


COSTS = {"error_cost": 10.0}


def test_who_decides():
    report = Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS)
    policy = report.models[0].policy
    found = text(report, "who_decides")
    assert found.startswith(f"fair: Decide False below {100 * policy.lower:.4g} %, True from ")
    assert f"Decided alone: {100 * policy.automation_rate:.1f} %" in found
    alone = policy.decide(FAIR).automate.mean()
    assert policy.automation_rate == pytest.approx(alone)  # of the printed thresholds
    assert f"without any review {policy.cost_without_review:.4g}" in found
    assert "with full review 1" in found
    free = Report.from_predictions(SICK, {"fair": FAIR}, costs={"error_cost": 0.5})
    assert "no review" in text(free, "who_decides")
    # The surest of its predictions, that nobody is sick, are those of the sickest.
    worst = Report.from_predictions(SICK, {"fair": 0.4 - 0.1 * FAIR}, costs={"error_cost": 1e6})
    policy = " ".join(worst.models[0].policy.sentences())
    assert "A human reviews every case." in policy
    assert "scores of the other class?" in policy
    assert rules(worst) == ["reversed_scores"]


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


def test_not_who_decides_without_costs():
    assert not {"who_decides", "cheapest"} & set(rules(fair_and("noisy", logistic(NOISY))))


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


def test_not_cheapest_of_equal_models_or_of_one():
    assert "cheapest" not in rules(fair_and("same", FAIR, costs=COSTS))
    assert "cheapest" not in rules(Report.from_predictions(SICK, {"fair": FAIR}, costs=COSTS))


def test_not_cheapest_beyond_capacity():
    report = fair_and("noisy", logistic(NOISY), costs=COSTS)
    fair, noisy = report.models
    over = replace(fair, policy=replace(fair.policy, within_capacity=False))
    assert "cheapest" not in rules(replace(report, models=(over, noisy)))
    assert "cheapest" in rules(report)


def animals(n=900, seed=4):
    rng = np.random.default_rng(seed)
    return *classes_drawn(rng, n), rng


def test_infinite_pairs():
    codes, p, _ = animals()
    swapped = 0.7 * p[:, [1, 0, 2]] + 0.3 * p
    report = Report.from_predictions(codes, {"swapped": swapped})
    infinite = int(np.isinf(report.models[0].raw.pairs).sum())
    assert infinite
    assert f"{infinite} of 6 pairs have an infinite index (true " in text(report, "infinite_pairs")


def test_not_infinite_pairs():
    codes, p, _ = animals()
    assert "infinite_pairs" not in rules(Report.from_predictions(codes, {"fair": p}))


def test_fragile_pair():
    codes, p, rng = animals(3_000)
    bold = p**4 / (p**4).sum(axis=1, keepdims=True)
    sure = np.eye(3)[codes] * 0.9 + 0.1 / 3
    confused = (codes == 1) & (rng.random(codes.size) < 0.3)  # dogs that look like cats
    sure[confused] = bold[confused][:, [0, 1, 2]] * 0.1 + np.array([0.85, 0.05, 0.0])
    sure /= sure.sum(axis=1, keepdims=True)
    report = Report.from_predictions(np.array(["cat", "dog", "owl"])[codes], {"m": sure})
    assert "m's most confident mistakes are true dog scored as cat" in text(report, "fragile_pair")


def test_not_fragile_pair():
    codes, p, _ = animals(3_000)
    assert "fragile_pair" not in rules(Report.from_predictions(codes, {"fair": p}))
    assert "fragile_pair" not in rules(Report.from_predictions(SICK, {"fair": FAIR}))


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


@pytest.mark.parametrize(("times", "said"), [(2.001, True), (2.0, False)])
def test_fragile_pair_has_a_border(times, said):
    codes, proba = classes_drawn(np.random.default_rng(0), 300)
    report = Report.from_predictions(codes, {"m": proba}, calibrate=False)
    (model,) = report.models
    pairs = np.where(np.eye(3) > 0, np.nan, 0.1)
    pairs[0, 1] = 0.1 * times
    changed = replace(model, raw=replace(model.raw, pairs=pairs))
    assert ("fragile_pair" in rules(replace(report, models=(changed,)))) == said


def grouped(**options):
    groups = np.where(np.arange(SICK.size) < 300, "old", "young")
    scores = np.where(groups == "old", logistic(0.2 * LOGIT + 4 * (NOISY - LOGIT)), FAIR)
    return Report.from_predictions(SICK, {"m": scores}, groups=groups, **options)


def test_fragile_group():
    found = text(grouped(), "fragile_group")
    assert found.startswith("Tails are heavier in some groups: m in the group old, 300 cases (")
    assert "young" not in found


def test_fragile_group_names_the_worst_three():
    report = grouped()
    part = next(part for part in report.groups if part.group == "old")
    high = part.in_all + 1.0

    def with_low(name, low):
        index = Measured(high, Interval(low, high + 1.0))
        return replace(part, group=name, figures={**part.figures, "fragility_index": index})

    lows = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4, "equal": 0.0}
    groups = tuple(with_low(name, part.in_all + low) for name, low in lows.items())
    for order in (groups, groups[::-1]):
        found = text(replace(report, groups=order), "fragile_group")
        assert [word[0] for word in found.split("in the group ")[1:]] == ["d", "b", "c"]
        assert found.endswith("; and 1 more.")  # at the border there is no excess


def test_costly_group():
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(SICK.size) < 0.3, "old", "young")
    flipped = (groups == "old") & (rng.random(SICK.size) < 0.3)
    scores = np.where(flipped, 1.0 - FAIR, FAIR)
    costs = {"error_cost": 2.0, "review_cost": 1.0}
    report = Report.from_predictions(SICK, {"m": scores}, groups=groups, costs=costs)
    found = text(report, "costly_group")
    assert found.startswith("Some groups cost more, or err more: m in the group old, ")
    assert "per case at its policy" in found
    assert "alone and wrongly" in found
    assert "young" not in found
    common = report.models[0].policy
    part = next(part for part in report.groups if part.group == "old")
    at_border = replace(
        part.policy,
        cost=Measured(9.0, Interval(common.cost, 9.0)),
        error_share=Measured(0.9, Interval(common.error_share, 0.9)),
    )
    same = replace(report, groups=(replace(part, policy=at_border),))
    assert "costly_group" not in rules(same)


def test_not_costly_group_by_chance():
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 8, SICK.size)
        costs = {"error_cost": 2.0, "review_cost": 1.0}
        report = Report.from_predictions(SICK, {"m": FAIR}, groups=groups, costs=costs)
        assert "costly_group" not in rules(report)


def test_shared_mistakes():
    wrong = np.arange(SICK.size) < 7
    scores = np.where(wrong, np.where(SICK, 0.01, 0.99), FAIR)
    report = Report.from_predictions(SICK, {"a": scores, "b": scores**1.1})
    n = report.n_shared_mistakes
    assert n >= 7
    said = text(report, "shared_mistakes")
    assert said.startswith(f"Both models get {n} cases wrong above 90 % confidence. Check their")
    single = text(replace(report, n_shared_mistakes=1), "shared_mistakes")
    assert single.startswith("Both models get 1 case wrong above 90 % confidence. Check its label")


def test_not_shared_mistakes():
    report = fair_and("bold", BOLD)
    assert "shared_mistakes" in rules(report)
    for none in (0, None):
        assert "shared_mistakes" not in rules(replace(report, n_shared_mistakes=none))
    assert "shared_mistakes" not in rules(one(BOLD))


def test_new_mistakes():
    names = [str(row) for row in range(SICK.size)]
    old = PreviousPredictions(SICK, {"m": FAIR}, names)
    scores = np.where(np.arange(SICK.size) < 5, np.where(SICK, 0.001, 0.999), FAIR)
    report = one(scores, cases=names, previous=old)
    n = report.new_mistakes[0].n_new
    assert n > 3
    said = text(report, "new_mistakes")
    assert said.startswith(f"m: {n} cases are newly wrong above 90 % confidence, ")
    same = one(FAIR, cases=names, previous=old)
    assert text(same, "new_mistakes").startswith("m: 0 cases are newly wrong above 90 %")
    both = {"m": FAIR, "n": FAIR}
    old = PreviousPredictions(SICK, both, names)
    two = Report.from_predictions(SICK, {"m": FAIR, "n": scores}, cases=names, previous=old)
    assert text(two, "new_mistakes").startswith(f"n: {n} cases are newly wrong")
    assert "; m: 0 cases are newly wrong" in text(two, "new_mistakes")


def test_not_new_mistakes():
    assert "new_mistakes" not in rules(one(FAIR))


def test_not_fragile_group_by_lack_of_an_easy_class():
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
    assert "fragile_group" not in rules(report)


def test_not_fragile_group_by_chance():
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 8, SICK.size)
        report = Report.from_predictions(SICK, {"fair": FAIR}, groups=groups)
        assert "fragile_group" not in rules(report)


def test_perfect_ranking():
    y, p = [0] * 40 + [1] * 40, np.linspace(0, 1, 80)
    found = text(Report.from_predictions(y, {"m": p}), "perfect_ranking")
    assert found.startswith("m ranks all 80 cases correctly")
    assert "they allow up to 0." in found
    both = text(Report.from_predictions(y, {"n": p, "m": p}), "perfect_ranking")
    assert both.startswith(found + " n ranks all 80 cases correctly")


def test_perfect_ranking_but_for_ties():
    found = text(
        Report.from_predictions([1, 1, 0, 0], {"m": [0.5, 0.9, 0.1, 0.5]}), "perfect_ranking"
    )
    assert found.startswith("m ranks none of 4 cases wrongly, but for ties, so its")


def test_not_perfect_ranking():
    assert "perfect_ranking" not in rules(FAIR_REPORT)
    assert "perfect_ranking" not in rules(one(np.full(900, 0.4)))


def test_too_few_cases():
    report = Report.from_predictions([1, 1, 0, 0, 0], {"m": [0.6, 0.9, 0.1, 0.8, 0.2]})
    found = text(report, "too_few_cases")
    assert found.startswith("The data are too few to bound the Fragility Index of m from above: 0.")
    assert found.endswith("to ∞). Class 1 has 2 cases.")


def test_not_too_few_cases():
    assert "too_few_cases" not in rules(FAIR_REPORT)
