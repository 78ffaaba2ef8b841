"""Files of JSON that people may have changed: read strictly, with a reason where that fails."""

from __future__ import annotations

import json
from typing import Any


def strict_json(data: bytes, **hooks: Any) -> Any:
    """Content of strict JSON in UTF-8; `hooks` are those of `json.loads`.

    Raises
    ------
    ValueError
        That says what is wrong with it.
    """
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_not_strict, **hooks)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except json.JSONDecodeError:
        reason = "it is not JSON, or cut off"
    except RecursionError:
        reason = "it is nested too deeply"
    raise ValueError(reason)


def _not_strict(name: str) -> Any:
    raise ValueError(f"{name} is not a number in strict JSON")
