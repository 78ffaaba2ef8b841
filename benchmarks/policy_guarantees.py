"""Do limits of errors hold in the population as often as they promise? A seeded simulation.

Run with ``python -m benchmarks.policy_guarantees --draws 2000``. Samples are drawn from populations
of two classes whose true errors at any two thresholds are integrals over the logit. A limit is
broken if the true share is above it; at level .95 that may happen in 5 % of the samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from fragility.cases.cases import Cases
from fragility.policies.choose import ChosenPolicy, PolicySearch
from fragility.policies.costs import Costs
from fragility.policies.guarantee import Limits

COSTS = Costs([[0, 1], [5, 0]], review=0.6)
#: Standard deviation and mean of the true logit, and the logit that a model of it says.
KINDS: dict[str, tuple[float, float, Callable[[np.ndarray], np.ndarray]]] = {
    "calibrated": (2.0, 0.0, lambda z: z),
    "overconfident": (2.0, 0.0, lambda z: 2.5 * z),
    "skewed": (2.0, 0.0, lambda z: np.where(z > 0, 2.0 * z, 0.7 * z)),
    "rare": (1.5, -3.5, lambda z: z),
}
LIMITS = {"error_share": 0.02, "error_rate": 0.05, "miss_rate": 0.05, "false_alarm_rate": 0.05}


def population(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, true probabilities and mass of a fine grid of logits."""
    spread, mean, model = KINDS[kind]
    step = np.linspace(-7, 7, 40_001)
    z = mean + spread * step
    mass = np.exp(-0.5 * step**2)
    return expit(model(z)), expit(z), mass / mass.sum()


def shares(policy: ChosenPolicy, kind: str) -> dict[str, float]:
    """True value of every limited share, and the share that is decided alone."""
    score, p, mass = population(kind)
    low, high = score < policy.lower, score >= policy.upper
    missed, alarms = mass @ (p * low), mass @ ((1 - p) * high)
    alone = mass @ (low | high)
    return {
        "error_share": missed + alarms,
        "error_rate": (missed + alarms) / max(alone, 1e-300),
        "miss_rate": missed / (mass @ p),
        "false_alarm_rate": alarms / (mass @ (1 - p)),
        "alone": alone,
    }


def drawn(kind: str, n: int, cluster_size: int, seed: int) -> Cases:
    """Return cases of a sample; those of a cluster share most of their logit."""
    spread, mean, model = KINDS[kind]
    rng = np.random.default_rng([seed, n, cluster_size])
    cluster = np.arange(n) // cluster_size
    shared, each = rng.normal(size=cluster[-1] + 1)[cluster], rng.normal(size=n)
    weight = np.sqrt(0.8) if cluster_size > 1 else 0.0
    z = mean + spread * (weight * shared + np.sqrt(1 - weight**2) * each)
    y = (rng.random(n) < expit(z)).astype(int)
    y[:2] = 0, 1
    return Cases(y, {"m": expit(model(z))}, cluster=cluster if cluster_size > 1 else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--cluster-size", type=int, default=1)
    arguments = parser.parse_args()
    print("| kind | n | limit | broken | decided alone |\n|---|---|---|---|---|")
    for kind in KINDS:
        for n in arguments.sizes:
            for name, limit in LIMITS.items():
                limits = Limits(**{name: limit})
                outcomes = []
                for seed in range(arguments.draws):
                    cases = drawn(kind, n, arguments.cluster_size, seed)
                    policy = PolicySearch(cases, "m", COSTS, limits, random_state=seed).policy()
                    outcomes.append(shares(policy, kind))
                broken = np.mean([outcome[name] > limit for outcome in outcomes])
                alone = np.mean([outcome["alone"] for outcome in outcomes])
                print(f"| {kind} | {n:,} | {name} | {broken:.4f} | {alone:.2f} |", flush=True)


if __name__ == "__main__":
    main()
