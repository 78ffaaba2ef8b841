"""Losses of the baselines and Adam, one number at a time."""

import math


def softmax(scores):
    total = sum(math.exp(u) for u in scores)
    return [math.exp(u) / total for u in scores]


def cross_entropy(scores, target):
    return -sum(t * math.log(p) for t, p in zip(target, softmax(scores), strict=True))


def generalised_cross_entropy(scores, target, q):
    (label,) = [c for c, t in enumerate(target) if t == 1.0]
    return (1.0 - softmax(scores)[label] ** q) / q


def symmetric_cross_entropy(scores, target, alpha, beta):
    """The authors' code: labels are kept above 1e-4."""
    reverse = -sum(
        p * math.log(min(max(t, 1e-4), 1.0)) for t, p in zip(target, softmax(scores), strict=True)
    )
    return alpha * cross_entropy(scores, target) + beta * reverse


def printed_symmetric_cross_entropy(scores, target, alpha, beta):
    """Appendix C.1 of the paper, to the letter."""
    n_classes = len(scores)
    second = -sum(1.0 / n_classes * math.log(f) for f in softmax(scores))
    return alpha * cross_entropy(scores, target) + beta * second


def adam(start, gradient, steps, learning_rate, weight_decay):
    """Algorithm 1 of Kingma and Ba for one parameter; decay in the gradient, as in PyTorch."""
    theta, m, v = start, 0.0, 0.0
    for t in range(1, steps + 1):
        g = gradient(theta) + weight_decay * theta
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        theta -= learning_rate * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta
