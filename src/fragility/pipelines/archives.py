"""The bytes of a model file: a ZIP archive of skops, with a page about the model beside it."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._labels import listed
from ..exceptions import ModelFileError
from .trusted_types import OWN_TYPES, check_schema

__all__ = ["described", "packed", "unpacked"]

_FORMAT = 1
_ABOUT, _SCHEMA = "about.json", "schema.json"
#: A file that unpacks to more is no linear model.
_LARGEST = 1 << 30


def packed(pipeline: Pipeline, about: dict[str, Any] | None) -> bytes:
    """A pipeline and what is said about it, as the content of a file."""
    skops = _skops()
    versions = {name: version(name) for name in ("fragility", "scikit-learn", "numpy", "skops")}
    try:
        head = json.dumps({"format": _FORMAT, "versions": versions, "about": about or {}}, indent=2)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"about must be what JSON can hold, but {error}") from error
    try:
        content = skops.dumps(pipeline, compression=zipfile.ZIP_DEFLATED)
    except Exception as error:  # whatever a step of someone else may raise
        raise ModelFileError(f"skops cannot save it ({_in_a_line(error)})") from error
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, head)
    return file.getvalue()


def unpacked(content: bytes) -> Pipeline:
    """The pipeline of a file, after an audit of all that it holds."""
    skops = _skops()
    check_schema(_json_member(content, _SCHEMA))
    try:
        foreign = sorted(set(skops.get_untrusted_types(data=content)) - set(OWN_TYPES))
    except Exception as error:
        raise ModelFileError(f"its contents cannot be read ({_in_a_line(error)})") from error
    if foreign:
        raise ModelFileError(f"it holds types that are not known to be safe: {listed(foreign, 5)}")
    try:
        with warnings.catch_warnings():  # of versions we warn once for all steps
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            found = skops.loads(content, trusted=list(OWN_TYPES))
            _check_classifier(found)
    except ModelFileError:
        raise
    except Exception as error:  # in a damaged file anything may be wrong
        raise ModelFileError(f"its contents do not fit together ({_in_a_line(error)})") from error
    return found


def _check_classifier(found: Any) -> None:
    """Refuse all but a fitted Pipeline of a classifier with probabilities."""
    if type(found) is not Pipeline:
        raise ModelFileError(f"it holds a {type(found).__name__}, not a Pipeline")
    classifier = found[-1]
    classes = getattr(classifier, "classes_", None)
    if not (hasattr(classifier, "predict_proba") and isinstance(classes, np.ndarray)):
        raise ModelFileError(
            f"the last step of its Pipeline, {type(classifier).__name__}, is no fitted classifier "
            "with probabilities"
        )
    check_is_fitted(classifier)
    found.memory = None  # a folder that the file names would be read from in a later fit


def described(content: bytes) -> dict[str, Any]:
    """What a file says of itself; empty for one that skops wrote without us."""
    with _archive(content) as archive:
        named = _ABOUT in archive.namelist()
    if not named:
        return {"format": _FORMAT, "versions": {}, "about": {}}
    written: dict[str, Any] = _json_member(content, _ABOUT)
    known = isinstance(written, dict) and isinstance(written.get("format"), int)
    if not (known and isinstance(written.get("versions"), dict)):
        raise ModelFileError(f"its {_ABOUT} is damaged")
    if written["format"] > _FORMAT:
        raise ModelFileError(
            f"fragility {written['versions'].get('fragility')} wrote it in format "
            f"{written['format']}, and this is fragility {version('fragility')}, which reads up to "
            f"format {_FORMAT}: upgrade fragility"
        )
    return written


def _archive(content: bytes) -> zipfile.ZipFile:
    if not content:
        raise ModelFileError("the file is empty")
    if content[:1] == b"\x80":
        raise ModelFileError(
            "it looks like a pickle, which runs code when it is opened and is never read here"
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise ModelFileError("it is damaged, or no file of skops at all") from error
    size = sum(member.file_size for member in archive.infolist())
    if size > _LARGEST:
        raise ModelFileError(f"it unpacks to {size:,} bytes, more than {_LARGEST:,}")
    return archive


def _json_member(content: bytes, name: str) -> Any:
    with _archive(content) as archive:
        if name not in archive.namelist():
            raise ModelFileError(f"it is an archive without {name}, hence no file of skops")
        try:
            return json.loads(archive.read(name))
        except Exception as error:  # damaged, encrypted, or nested too deep
            raise ModelFileError(f"its {name} is damaged ({_in_a_line(error)})") from error


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "Models are kept in files of skops, which is not installed: "
            'pip install "fragility[cli]"'
        ) from error
    return skops.io


def _in_a_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
