"""Functions beside the report answer as they did when these answers were recorded."""

from __future__ import annotations

import warnings

from . import banks
from .compare import differences, relative_above_one
from .functions import questions


def test_answers_are_as_recorded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = banks.shortened(banks.recordable(dict(questions())))
    # Standard errors, intervals and p-values stand among the values.
    assert differences(banks.read("functions"), answers, relative_above_one(1e-8)) == []
