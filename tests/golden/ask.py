"""Every call of the library that the recorded answers rest on.

Questions are plain values (`sets`, `more_sets`, `files`, `functions`, `programs`, `training`,
`certificates`, `index`) and so are answers, under names of their own. When a public name changes,
this file changes; no recorded number does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import fragility as library
from fragility import (
    KL,
    DROClassifier,
    ERMClassifier,
    PreviousPredictions,
    Report,
    SatisficingClassifier,
    SatisficingClassifierCV,
    SatisficingRegressor,
    Wasserstein,
    certify,
    compare_fragility,
    fragility_index,
    fragility_path,
    fragility_ratio,
    loss_fragility,
    measure_fragility,
    prove,
    shift_distance,
    wasserstein_fragility_index,
    wasserstein_pair_bound,
    wasserstein_pair_index,
    worst_case,
)
from fragility.ambiguity import (
    Box,
    Ellipsoid,
    Huber,
    Mahalanobis,
    Norm,
    Polytope,
    Power,
    Product,
    SquaredNorm,
    Transport,
)
from fragility.calibration import cross_fitted_calibration
from fragility.losses import (
    CrossEntropy,
    Hinge,
    LipschitzLoss,
    MaxLogistic,
    PiecewiseLinear,
    SmoothedHinge,
)

from ..command import Ended
from ..command import fragility as command
from . import index
from .certificates import Case, coefficients, new_sample
from .programs import RADIUS, draw
from .training import Problem, samples

# Reports, policies and files.


def report_of(y: Any, models: Mapping[str, Any], **case: Any) -> Report:
    """Return the report on these predictions; with `correct` in the case, on these answers."""
    if "previous" in case:
        case = {**case, "previous": PreviousPredictions(**case["previous"])}
    if "correct" in case:
        return Report.from_outcomes(case.pop("correct"), models, **case)
    return Report.from_predictions(y, models, **case)


def flat(report: Report) -> dict[str, Any]:
    """Return the figures, tests, policies, worst rows and groups of a report as plain values."""
    return {
        "verdict": {"model": report.verdict.model, "sentences": list(report.verdict.sentences)},
        "models": {model.name: _model(model) for model in report.models},
        "comparisons": {
            f"{pair.a} - {pair.b}": {
                figure: [test.difference, test.standard_error, test.p_value]
                for figure, test in pair.raw.tests.items()
            }
            for pair in report.comparisons
        },
        "groups": {
            f"{group.model} {group.column}={group.group}": {
                figure: _value_and_error(value) for figure, value in (group.figures or {}).items()
            }
            for group in report.groups
        },
    }


POLICY_FIGURES = (
    *("decision", "cost", "automation_rate", "error_rate", "misses", "false_alarms"),
    *("cost_without_review", "cost_review_all", "cost_interval"),
)


def _model(model: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {"raw": _figures(model.raw)}
    if model.calibrated is not None:
        answers |= {"calibrated": _figures(model.calibrated), "map": model.calibration.method}
    if model.policy is not None:
        policy = model.policy.to_dict()
        answers["policy"] = {name: policy[name] for name in POLICY_FIGURES}
    answers["worst_rows"] = [case.row for case in model.worst]
    return answers


def _figures(measurement: Any) -> dict[str, Any]:
    return {figure: _value_and_error(value) for figure, value in measurement.figures.items()}


def _value_and_error(measured: Any) -> list[float | None] | None:
    """Return value, standard error, lower and upper end."""
    if measured is None:
        return None
    return [measured.value, measured.standard_error, *(measured.interval or (None, None))]


def whole(report: Report) -> dict[str, Any]:
    """Return everything that a report says, without when, where and by which version."""
    content = report.to_dict()
    return {name: content[name] for name in content.keys() - {"provenance", "fragility_version"}}


def evaluate_file(path: Path, **asked: Any) -> Ended:
    """Run the command on a file; `asked` says which of its columns are what."""
    options = [
        part
        for name, given in asked.items()
        for value in (given if isinstance(given, tuple) else (given,))
        for part in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [value]))
    ]
    return command("evaluate", path.name, *options, "--json", cwd=path.parent)


#: Functions of labels and scores with one number as answer.
NUMBERS = (
    *("calibration_slope", "calibration_intercept", "observed_expected_ratio"),
    *("integrated_calibration_index", "equal_mass_calibration_error", "confident_error_rate"),
    *("buffered_auc_score", "ranking_error_cvar", "area_under_risk_coverage"),
    *("surest_error_rate", "gini_score", "ks_statistic"),
)


def metrics(y: Any, p: Any, weight: Any) -> dict[str, Any]:
    """Return every figure that has a function of its own."""
    options = {"sample_weight": weight}
    answers = {name: getattr(library, name)(y, p, **options) for name in NUMBERS}
    answers["net benefit"] = library.net_benefit(y, p, 0.3, **options)
    answers["operating points"] = vars(library.operating_points(y, p, [0.2, 0.5, 0.8], **options))
    answers["reliability curve"] = vars(library.reliability_curve(y, p, **options))
    answers["stability"] = library.population_stability_index(p, p**1.2)
    curve = library.risk_coverage_curve(y, p, **options)
    answers["risk and coverage"] = [curve.risk[::20], curve.coverage[::20]]
    return answers


def costs_compared(y: Any, one: Any, other: Any, costs: dict[str, Any], weight: Any) -> Any:
    """Return the paired test of the costs of two models."""
    return library.compare_costs(y, one, other, **costs, sample_weight=weight).to_dict()


def calibrated(y: Any, p: Any) -> Any:
    """Return probabilities after cross-fitted maps."""
    return cross_fitted_calibration(y, p)


def policy(y: Any, p: Any, costs: dict[str, Any]) -> Any:
    """Return the best policy as plain values."""
    return library.best_policy(y, p, **costs).to_dict()


def decisions(y: Any, p: Any, costs: dict[str, Any]) -> list[list[Any]]:
    """Return label, whether the model decides alone, and what that saves, of each case."""
    decided = library.best_policy(y, p, **costs).decide(p)
    columns = (decided.label, decided.automate, decided.saving)
    return [
        list(row) for row in zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    ]


def deferral(y: Any, p: Any, costs: dict[str, Any]) -> Any:
    """Return the cost at every threshold of the confidence."""
    return library.deferral_curve(y, p, **costs).to_dict()


def slices(columns: Any, y: Any, p: Any) -> list[dict[str, Any]]:
    """Return the conditions under which a model is surely wrong."""
    import pandas as pd

    found = library.find_slices(pd.DataFrame(columns), y, p, n_permutations=499)
    return [vars(entry) for entry in found]


def plan(y: Any, scores: Any, asked: dict[str, float]) -> Any:
    """Return how many cases an evaluation needs."""
    predictions = scores if "difference" in asked else scores["m0"]
    return vars(library.plan_evaluation(y, predictions, **asked))


def alarm(errors: list[int], decided: list[int], rate: float) -> Any:
    """Return what the alarm of errors says of several looks."""
    return vars(library.error_alarm(errors, decided, rate))


# Training, certificates and the index.

#: Characters of a message that are kept of an error.
MESSAGE = 160
#: Distances at which worst cases are recorded.
DISTANCES = (0.01, 0.1, 1.0)
#: Ranking errors whose tail is bounded, and levels whose value at risk is.
TAILS, LEVELS = (0.2, 0.6), (0.9, 0.99)
#: Rows of an attribution that are recorded.
ROWS = 5


def model_of(what: dict[str, Any]) -> Any:
    """Return the estimator of one of the 400 programs."""
    norm = {"w2": 2, "w1": 1, "winf": inf}
    kind, _, label = what["ambiguity"].partition(" ")
    ambiguity: Any = KL()
    if kind != "kl":
        ambiguity = Wasserstein(norm=norm[kind], label_cost=1.0 if label else inf)
    penalty = None if what["penalty"] == "none" else what["penalty"]
    shared = {"penalty": penalty, "alpha": 0.01, "fit_intercept": what["intercept"]}
    if what["estimator"] == "dro":
        return DROClassifier(what["loss"], ambiguity, radius=RADIUS, **shared)
    target = {"slack": 0.2} if what["target"] == "slack" else {"target_ratio": 1.1}
    return SatisficingClassifier(what["loss"], ambiguity, **target, **shared)


def ask_program(i: int, **settings: Any) -> dict[str, Any]:
    """Return what is recorded of one of the 400 programs; `settings` change its estimator."""
    X, y, weight, what = draw(i)
    model = model_of(what).set_params(**settings).fit(X, y, sample_weight=weight)
    entry = {"what": what, "coef": model.coef_, "intercept": np.ravel(model.intercept_)}
    for name in ("fragility_", "target_", "erm_loss_", "trivial_loss_"):
        if hasattr(model, name):
            entry[name] = float(getattr(model, name))
    return entry


def ask(problem: Problem, **settings: Any) -> dict[str, Any]:
    """Return what is recorded of a problem: its answer, or the error that refuses it.

    Warnings are recorded by category. Coefficients of several classes are centred, since a common
    change of all classes changes no prediction.
    """
    X, y, weight = samples(problem["data"])
    entry: dict[str, Any] = {"data_sums": [float(X.sum()), float(y.sum())]}
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            model = fitted(problem, X, y, weight, **settings)
        except (ValueError, NotImplementedError, TypeError) as error:
            return entry | {"error": type(error).__name__, "message": str(error)[:MESSAGE]}
    entry["warnings"] = sorted({warning.category.__name__ for warning in issued})
    return entry | _answers(model, centred=problem["estimator"] != "regression")


def fitted(problem: Problem, X: Any, y: Any, weight: Any, **settings: Any) -> Any:
    """Fit the estimator of a problem."""
    return estimator_of(problem).set_params(**settings).fit(X, y, sample_weight=weight)


def estimator_of(problem: Problem) -> Any:
    """Return the estimator that a problem describes."""
    options = dict(problem["options"])
    if isinstance(options.get("class_weight"), dict):
        options["class_weight"] = {int(c): w for c, w in options["class_weight"].items()}
    kind = problem["estimator"]
    if kind == "regression":
        return SatisficingRegressor(ambiguity_of(problem["ambiguity"]), **options)
    loss = loss_of(problem["loss"])
    if kind == "erm":
        return ERMClassifier(loss, **options)
    kinds: dict[str, Any] = {
        "satisficing": SatisficingClassifier,
        "dro": DROClassifier,
        "cv": SatisficingClassifierCV,
    }
    return kinds[kind](loss, ambiguity_of(problem["ambiguity"]), **options)


def _answers(model: Any, centred: bool) -> dict[str, Any]:
    coef, intercept = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    if centred and len(coef) > 1:
        coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
    entry: dict[str, Any] = {"coef": coef, "intercept": intercept}
    names = {
        "fragility": "fragility_",
        "target": "target_",
        "lowest_loss": "erm_loss_",
        "trivial_loss": "trivial_loss_",
        "worst_loss": "worst_loss_",
        "loss": "loss_",
    }
    for name, attribute in names.items():
        if hasattr(model, attribute):
            entry[name] = float(getattr(model, attribute))
    if hasattr(model, "certificate_"):
        entry["attained_loss"] = float(model.certificate_.attained_loss)
    return entry


def loss_of(description: Any) -> Any:
    """Return a loss by its name, or the object that a description makes."""
    if isinstance(description, str):
        return description
    settings = dict(description)
    kind = settings.pop("kind")
    if kind == "lipschitz" and settings["of"] == "distance to the class":
        settings |= {"of": _distance, "slope": _direction}
    kinds: dict[str, Any] = {
        "cross_entropy": CrossEntropy,
        "hinge": Hinge,
        "smoothed_hinge": SmoothedHinge,
        "max_logistic": MaxLogistic,
        "piecewise_linear": PiecewiseLinear,
        "lipschitz": LipschitzLoss,
    }
    return kinds[kind](**settings)


def _away(scores: Any, y: Any) -> Any:
    return scores - np.eye(scores.shape[1])[y]


def _distance(scores: Any, y: Any) -> Any:
    return np.linalg.norm(_away(scores, y), axis=1)


def _direction(scores: Any, y: Any) -> Any:
    return _away(scores, y) / np.maximum(_distance(scores, y), 1e-300)[:, np.newaxis]


def ambiguity_of(description: dict[str, Any]) -> Any:
    """Return the ambiguity that a description makes."""
    settings = dict(description)
    kind = settings.pop("kind")
    if kind == "kl":
        return KL()
    if kind == "wasserstein":
        if "from_noise" in settings:
            return Wasserstein.from_noise(**settings.pop("from_noise"), **settings)
        return Wasserstein(**settings)
    if settings.get("support") is not None:
        settings["support"] = _support_of(settings["support"])
    return Transport(_cost_of(settings.pop("cost")), **settings)


def _cost_of(description: Any) -> Any:
    if not isinstance(description, dict):
        return description
    settings = dict(description)
    kinds: dict[str, Any] = {
        "norm": Norm,
        "mahalanobis": Mahalanobis,
        "squared_norm": SquaredNorm,
        "power": Power,
        "huber": Huber,
    }
    kind: Callable[..., Any] = kinds[settings.pop("kind")]
    if "norm" in settings:
        settings["norm"] = _cost_of(settings["norm"])
    return kind(**settings)


def _support_of(description: dict[str, Any]) -> Any:
    settings = dict(description)
    kind = settings.pop("kind")
    if kind == "product":
        return Product([(columns, _support_of(part)) for columns, part in settings["parts"]])
    return {"box": Box, "polytope": Polytope, "ellipsoid": Ellipsoid}[kind](**settings)


def ask_out_of_fold(problem: Problem, **settings: Any) -> dict[str, Any]:
    """Return how the default target of a problem came about, and the fragility at it."""
    X, y, weight = samples(problem["data"])
    model = fitted(problem, X, y, weight, **settings)
    origin = model.target_origin_
    return {
        "target": model.target_,
        "out_of_fold_loss": origin.out_of_fold_loss,
        "strength": origin.alpha,
        "penalty": origin.penalty,
        "lowest_loss": origin.erm_loss,
        "trivial_loss": origin.trivial_loss,
        "clip": origin.clip,
        "fragility": model.fragility_,
    }


def ask_chosen(problem: Problem, **settings: Any) -> dict[str, Any]:
    """Return what cross-validation chooses for a problem, with the table of mean scores."""
    X, y, weight = samples(problem["data"])
    model = fitted(problem, X, y, weight, **settings)
    name = "slack" if hasattr(model, "slack_") else "target_ratio"
    return {
        name: getattr(model, f"{name}_"),
        "strength": model.alpha_,
        "best_score": model.best_score_,
        "mean_scores": model.mean_scores_,
        "target": model.target_,
        "fragility": model.fragility_,
    }


def ask_path(problem: Problem, **settings: Any) -> dict[str, Any]:
    """Return the path of targets of a problem."""
    X, y, weight = samples(problem["data"])
    path = fragility_path(
        X,
        y,
        loss=loss_of(problem["loss"]),
        ambiguity=ambiguity_of(problem["ambiguity"]),
        sample_weight=weight,
        **{**problem["options"], **settings},
    )
    return {
        "target": path.target,
        "slack": path.slack,
        "fragility": path.fragility,
        "loss": path.loss,
        "lowest_loss": path.erm_loss,
        "trivial_loss": path.trivial_loss,
    }


class GivenModel:
    """A linear model by its coefficients, as any library may have fitted it."""

    def __init__(self, sample: dict[str, Any]) -> None:
        self.coef_, self.intercept_ = coefficients(sample)
        self.classes_ = np.arange(sample["classes"])
        self.n_features_in_ = sample["d"]


def ask_certificate(case: Case) -> dict[str, Any]:
    """Return what is certified of given coefficients, and the worst cases at three distances."""
    X, y, weight = samples(case["data"])
    model, penalty = GivenModel(case["data"]), case.get("penalty", 0.0)
    options: dict[str, Any] = {
        "loss": loss_of(case["loss"]),
        "ambiguity": ambiguity_of(case["ambiguity"]),
        "penalty": penalty,
        "sample_weight": weight,
    }
    attained = certify(model, X, y, target=1e3, **options).attained_loss
    target = attained + case["room"]
    certificate = certify(model, X, y, target=target, radius=case.get("radius"), **options)
    promise = certificate.at(0.1)
    shifts = [worst_case(model, X, y, far, target=target, **options) for far in DISTANCES]
    return {
        "attained_loss": certificate.attained_loss,
        "fragility": certificate.fragility,
        "worst_losses": certificate.worst_loss(np.array(DISTANCES)),
        "violation_bounds": certificate.violation_bound(np.array(DISTANCES)),
        "label_flip_bound": certificate.label_flip_bound(0.05),
        "price": certificate.priced_at(0.1).fragility,
        "promise": {
            "loss": promise.loss,
            "worst_loss": promise.worst_loss,
            "guessing": promise.guessing,
            "vacuous": promise.vacuous,
        },
        "index_bound": _index_bound(certificate.index_bound()),
        "index_bounds": {
            f"{i}|{j}": _index_bound(bound) for (i, j), bound in certificate.index_bounds().items()
        },
        "shifts": [
            {
                "loss_before": one.loss_before,
                "expected_loss": one.expected_loss,
                "distance": one.distance,
                "bound": one.bound,
            }
            for one in shifts
        ],
    }


def _index_bound(bound: Any) -> dict[str, Any]:
    return {
        "kind": bound.kind,
        "target": bound.target,
        "bound": bound.bound,
        "measured": bound.measured,
        "vacuous": bound.vacuous,
    }


def ask_proof(problem: Problem, **settings: Any) -> dict[str, Any]:
    """Return the proof that the model of a problem is the least fragile one."""
    X, y, weight = samples(problem["data"])
    model = fitted(problem, X, y, weight, **settings)
    proof = prove(model, X, y, sample_weight=weight)
    return {
        "lower": proof.lower,
        "upper": proof.upper,
        "target": proof.target,
        "critical_distance": proof.critical_distance,
        "certified_distance": model.certificate_.critical_distance,
        "worst_losses": model.certificate_.worst_loss(np.array(DISTANCES)),
    }


def ask_shift(case: Case) -> dict[str, Any]:
    """Return the distance between two samples."""
    X, y, _ = samples(case["data"])
    new, labels, weight = new_sample(case, X, y)
    if case["ambiguity"]["kind"] == "kl":
        new, labels = X, y
    distance = shift_distance(
        X,
        y,
        new,
        labels,
        ambiguity_of(case["ambiguity"]),
        sample_weight_new=weight,
        max_exact=case.get("max_exact", 1000),
    )
    return {"lower": distance.lower, "upper": distance.upper, "exact": distance.exact}


def ask_index(case: index.Case) -> dict[str, Any]:
    """Return every answer about the index of a case, and the warnings by category."""
    data, options = index.arrays(case), dict(case.get("options", {}))
    weights = data["weights"]
    y, scores = data["y"], data["scores"]
    settings = {**options, "sample_weight": weights}
    without_target = {key: value for key, value in settings.items() if key != "target"}
    without_costs = {key: value for key, value in settings.items() if key != "pair_cost"}
    questions: dict[str, Callable[[], Any]] = {
        "measured": lambda: _measured(
            measure_fragility(y, scores, cluster=data["clusters"], **settings)
        ),
        "index": lambda: fragility_index(y, scores, **settings),
        "ratio": lambda: fragility_ratio(y, scores, **without_target),
        "comparison": lambda: _comparison(
            compare_fragility(y, scores, data["other"], cluster=data["clusters"], **settings)
        ),
        "losses": lambda: _losses(data),
    }
    questions |= _wasserstein(case, data)
    if case["classes"] > 2:
        questions["pairs"] = lambda: fragility_index(y, scores, average=None, **without_costs)
    data_sums = [float(data["codes"].sum()), float(data["logits"].sum())]
    return {"data_sums": data_sums} | {
        name: _asked(question) for name, question in questions.items()
    }


def _asked(question: Callable[[], Any]) -> dict[str, Any]:
    """Return an answer with the warnings it came with, or the error that refuses it."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            answer = question()
        except (ValueError, NotImplementedError, TypeError) as error:
            return {"error": type(error).__name__, "message": str(error)[:MESSAGE]}
    return {"answer": answer, "warnings": sorted({warning.category.__name__ for warning in issued})}


def _measured(measured: Any) -> dict[str, Any]:
    return {
        "value": measured.value,
        "ratio": measured.ratio,
        "target": measured.target,
        "shift": measured.shift,
        "standard_error": measured.standard_error,
        "interval": measured.interval(0.95),
        "interval_by_logarithm": measured.interval(0.95, method="log_wald"),
        "pairs": measured.pairs,
        "labels": measured.labels,
        "support": measured.support,
        "n_infinite_pairs": measured.n_infinite_pairs,
        "finite_mean": measured.finite_mean,
        "median": measured.median,
        "tail_bounds": measured.tail_bound(np.array(TAILS)),
        "var_bounds": [measured.var_bound(level) for level in LEVELS],
        "attribution": [
            {
                "row": sample.index,
                "label": sample.label,
                "weight": sample.weight,
                "lift": sample.lift,
            }
            for sample in measured.attribution(ROWS)
        ],
    }


def _comparison(comparison: Any) -> dict[str, Any]:
    def test(difference: Any) -> dict[str, Any]:
        return {
            "a": difference.a,
            "b": difference.b,
            "difference": difference.difference,
            "standard_error": difference.standard_error,
            "interval": difference.interval,
            "p_value": difference.p_value,
        }

    return {"index": test(comparison), "ratio": test(comparison.ratio)}


def _losses(data: index.Arrays) -> list[float]:
    """Return the index of the losses of log-odds at four targets around their mean."""
    logits, y = data["logits"], data["codes"]
    if logits.ndim == 1:
        losses = np.logaddexp(0.0, np.where(y == 1, -logits, logits))
    else:
        losses = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(y.size), y]
    weights = data["weights"]
    mean = float(np.average(losses, weights=weights))
    return [
        loss_fragility(losses, target=factor * mean, sample_weight=weights)
        for factor in (0.9, 1.05, 1.5, 1e3)
    ]


def _wasserstein(case: index.Case, data: index.Arrays) -> dict[str, Callable[[], Any]]:
    """Return the questions about Wasserstein indices, with fixed and with moving labels."""
    options = case.get("options", {})
    settings = {"target": options.get("target", 0.0), "sample_weight": data["weights"]}
    labelled_scores = data["y"], data["logits"]
    if case["classes"] == 2:

        def index_at(cost: float) -> Any:
            return wasserstein_fragility_index(
                *labelled_scores, weight_norm=1.7, label_cost=cost, **settings
            )

        return {f"label cost {cost:g}": partial(index_at, cost) for cost in (inf, 1.0, 0.2)}
    codes = np.arange(case["classes"])
    norms = np.add.outer(codes, codes) * 0.3 + 1.0
    np.fill_diagonal(norms, 0.0)
    settings |= {"pair_norms": norms, "labels": options.get("labels")}

    def table(question: Callable[..., Any], cost: float) -> Any:
        return question(*labelled_scores, label_cost=cost, **settings)

    names = {"pairs": wasserstein_pair_index, "bounds": wasserstein_pair_bound}
    return {
        f"{name}, label cost {cost:g}": partial(table, question, cost)
        for name, question in names.items()
        for cost in (inf, 1.0)
    }
