"""Measure, train against and decide with the tail risk of confident mistakes.

A name is imported when it is first used: a command that needs little starts at once, and Ctrl-C is
heard before anything slow begins.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._typing import Interval
    from .ambiguity import KL, Wasserstein
    from .certificates import Certificate, certify
    from .deferral import (
        BestThreshold,
        Costs,
        Decisions,
        DeferralClassifier,
        DeferralCurve,
        DeferralDisplay,
        best_threshold,
        deferral_curve,
    )
    from .exceptions import AbsentClassWarning
    from .index.attribution import AttributedSample
    from .index.fragility import Fragility
    from .index.inference import PairedDifference
    from .linear_model import (
        DROClassifier,
        ERMClassifier,
        FragilityPath,
        FragilityPathDisplay,
        SatisficingClassifier,
        SatisficingClassifierCV,
        fragility_path,
    )
    from .metrics import (
        ConfidenceDisplay,
        FragilityComparison,
        PairwiseFragilityDisplay,
        RankingErrorDisplay,
        area_under_risk_coverage,
        buffered_auc_score,
        compare_fragility,
        confident_error_rate,
        equal_mass_calibration_error,
        fragility_index,
        fragility_ratio,
        loss_fragility,
        measure_fragility,
        neg_fragility_index_scorer,
        neg_fragility_ratio_scorer,
        ranking_error_cvar,
        wasserstein_fragility_index,
    )
    from .report import Report
    from .scores.sketch import FragilitySketch, SketchFragility
    from .scores.state import ScoreState

    __version__: str

__all__ = [
    "KL",
    "AbsentClassWarning",
    "AttributedSample",
    "BestThreshold",
    "Certificate",
    "ConfidenceDisplay",
    "Costs",
    "DROClassifier",
    "Decisions",
    "DeferralClassifier",
    "DeferralCurve",
    "DeferralDisplay",
    "ERMClassifier",
    "Fragility",
    "FragilityComparison",
    "FragilityPath",
    "FragilityPathDisplay",
    "FragilitySketch",
    "Interval",
    "PairedDifference",
    "PairwiseFragilityDisplay",
    "RankingErrorDisplay",
    "Report",
    "SatisficingClassifier",
    "SatisficingClassifierCV",
    "ScoreState",
    "SketchFragility",
    "Wasserstein",
    "area_under_risk_coverage",
    "best_threshold",
    "buffered_auc_score",
    "certify",
    "compare_fragility",
    "confident_error_rate",
    "deferral_curve",
    "equal_mass_calibration_error",
    "fragility_index",
    "fragility_path",
    "fragility_ratio",
    "loss_fragility",
    "measure_fragility",
    "neg_fragility_index_scorer",
    "neg_fragility_ratio_scorer",
    "ranking_error_cvar",
    "wasserstein_fragility_index",
]

#: Module of each name; what type checkers read above, the interpreter reads here.
_MODULES = {
    name: module
    for module, names in {
        "ambiguity": ("KL", "Wasserstein"),
        "certificates": ("Certificate", "certify"),
        "deferral": (
            "BestThreshold",
            "Costs",
            "Decisions",
            "DeferralClassifier",
            "DeferralCurve",
            "DeferralDisplay",
            "best_threshold",
            "deferral_curve",
        ),
        "exceptions": ("AbsentClassWarning",),
        "index.attribution": ("AttributedSample",),
        "index.fragility": ("Fragility",),
        "_typing": ("Interval",),
        "index.inference": ("PairedDifference",),
        "scores.sketch": ("FragilitySketch", "SketchFragility"),
        "scores.state": ("ScoreState",),
        "linear_model": (
            "DROClassifier",
            "ERMClassifier",
            "FragilityPath",
            "FragilityPathDisplay",
            "SatisficingClassifier",
            "SatisficingClassifierCV",
            "fragility_path",
        ),
        "metrics": (
            "ConfidenceDisplay",
            "FragilityComparison",
            "PairwiseFragilityDisplay",
            "RankingErrorDisplay",
            "area_under_risk_coverage",
            "buffered_auc_score",
            "compare_fragility",
            "confident_error_rate",
            "equal_mass_calibration_error",
            "fragility_index",
            "fragility_ratio",
            "loss_fragility",
            "measure_fragility",
            "neg_fragility_index_scorer",
            "neg_fragility_ratio_scorer",
            "ranking_error_cvar",
            "wasserstein_fragility_index",
        ),
        "report": ("Report",),
    }.items()
    for name in names
}


#: Parts of the library that have names of their own to offer.
_PARTS = (
    "ambiguity",
    "calibration",
    "certificates",
    "datasets",
    "deferral",
    "exceptions",
    "index",
    "linear_model",
    "losses",
    "metrics",
    "pipelines",
    "report",
    "scores",
    "tables",
    "torch",
)


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.metadata import version

    value: Any
    if name == "__version__":
        value = version("fragility")
    elif name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    elif name in _PARTS:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS, "__version__"})
