"""Private names of scikit-learn that the library needs: the only place that imports them.

`make test` runs on the newest version of scikit-learn, `make test-oldest` on the oldest supported.
"""

from __future__ import annotations

from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils.metadata_routing import _raise_for_params as raise_for_params
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y

__all__ = [
    "check_method_params",
    "check_sample_weight",
    "check_y",
    "raise_for_params",
    "routing_enabled",
    "take_rows",
]
