"""How many random instances a test takes; FRAGILITY_INSTANCES=100 takes as many as are claimed."""

import os


def instances(default: int) -> int:
    """The number asked for in the environment, or one that a suite can afford."""
    return int(os.environ.get("FRAGILITY_INSTANCES", default))
