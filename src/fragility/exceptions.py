"""Warnings and errors of the library, so that callers can catch each by name."""

from __future__ import annotations

__all__ = ["AbsentClassWarning"]


class AbsentClassWarning(UserWarning):
    """A class named in ``labels`` has no sample: every pair with it is left out."""
