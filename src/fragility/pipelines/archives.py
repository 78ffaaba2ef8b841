"""The bytes of a model file: a ZIP archive of skops, with a page about the model beside it."""

from __future__ import annotations

import io
import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._optional import needed_for
from ..exceptions import ModelFileError
from .fitted import check_pipeline
from .trusted_types import OWN_TYPES, array_files, check_schema

Members = dict[str, bytes]

_FORMAT = 1
_ABOUT, _SCHEMA = "about.json", "schema.json"
#: A file that is larger, or unpacks to more, is not a linear model.
LARGEST = 1 << 30
#: Text of JSON takes twenty times its size in memory.
_LARGEST_JSON = 1 << 26
_CHUNK = 1 << 20
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_VERSION = re.compile(r"[\w.+!-]{1,50}", re.ASCII)
_ENCRYPTED = 1


def packed(pipeline: Pipeline, about: dict[str, Any] | None) -> bytes:
    """A pipeline and what is said about it, as the content of a file."""
    skops = _skops()
    versions = {name: version(name) for name in ("fragility", "scikit-learn", "numpy", "skops")}
    try:
        head = json.dumps({"format": _FORMAT, "versions": versions, "about": about or {}}, indent=2)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"about must be what JSON can hold, but {error}") from error
    with _explained("skops cannot save it"):  # whatever a step of someone else may raise
        content = skops.dumps(pipeline, compression=zipfile.ZIP_DEFLATED)
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, head)
    return file.getvalue()


def opened(content: bytes) -> Members:
    """The members of a file, of plain names and of no more than their sizes say."""
    if not content:
        raise ModelFileError("the file is empty")
    if content[:1] == b"\x80":
        raise ModelFileError(
            "it looks like a pickle, which runs code when it is opened and is never read here"
        )
    if len(content) > LARGEST:
        raise ModelFileError(f"it has more than {LARGEST:,} bytes")
    # zipfile raises whatever a wrong byte leads to
    with (
        _explained("it is damaged, or not a file of skops at all"),
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        _check_members(archive.infolist())
        return {member.filename: _read(archive, member) for member in archive.infolist()}


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    size = sum(member.file_size for member in members)
    if size > LARGEST:
        raise ModelFileError(f"it unpacks to {size:,} bytes, more than {LARGEST:,}")
    if len(set(names)) < len(names):
        raise ModelFileError("it is an archive with several members of one name")
    odd = [name for name in names if not _NAME.fullmatch(name)]
    if odd:
        raise ModelFileError(
            f"it is an archive with a member of the name {odd[0][:100]!r}; in files of skops "
            "members have plain names without folders"
        )
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise ModelFileError("it is encrypted; models are read only as they are written")
    if {member.compress_type for member in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ModelFileError("it is compressed in another way than files of skops are")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member in pieces: at once, one that lies about its size would be unpacked in full."""
    with archive.open(member) as file:
        content = b"".join(iter(lambda: file.read(_CHUNK), b""))
    if len(content) != member.file_size:
        raise ModelFileError(f"its {member.filename} is shorter than it says")
    return content


def unpacked(members: Members, trusted: set[str] | None) -> Pipeline:
    """The pipeline of a file, after an audit of all that it holds.

    Parameters
    ----------
    members : dict of str to bytes
    trusted : set of str, optional
        Full names of types beyond what `train_pipeline` writes; by default all, for one's own
        file.
    """
    skops = _skops()
    schema = _json_member(members, _SCHEMA)
    with _explained("its contents do not fit together"):  # in a damaged file anything may be wrong
        used = check_schema(schema, trusted)
        content = _plain(schema, members)
        with warnings.catch_warnings():  # of versions we warn once for all steps
            warnings.simplefilter("ignore")
            found: Pipeline = skops.loads(content, trusted=[*OWN_TYPES, *used])
            check_pipeline(found)
    return found


def _plain(schema: Any, members: Members) -> bytes:
    """What was audited, and nothing else, as an archive that skops reads as we did."""
    kept: Members = {}
    size = 0
    for name in array_files(schema):
        if name not in members:
            raise ModelFileError(f"its array {name[:100]!r} is missing")
        if name not in kept:
            _check_array(name, members[name])
        kept[name] = members[name]
        size += len(members[name])  # each mention is a copy
        if size > LARGEST:
            raise ModelFileError(f"its arrays unpack to more than {LARGEST:,} bytes")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
        archive.writestr(_SCHEMA, json.dumps(schema))
    return file.getvalue()


def _check_array(name: str, content: bytes) -> None:
    """Refuse an array that asks for more memory than it has bytes."""
    if name.endswith(".npz"):  # a sparse matrix of a trusted step: an archive of arrays
        for inner, part in opened(content).items():
            _check_array(inner.removesuffix(".npz"), part)
        return
    file = io.BytesIO(content)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
    entries = math.prod(shape)
    if entries > len(content) or entries * dtype.itemsize != len(content) - file.tell():
        raise ModelFileError(
            f"its array {name[:100]!r} says that it has the shape {str(shape)[:100]}, which is not "
            "what it holds"
        )


def described(members: Members) -> dict[str, Any]:
    """What a file says of itself; empty for one that skops wrote without us."""
    if _ABOUT not in members:
        return {"format": _FORMAT, "versions": {}, "about": {}}
    written: dict[str, Any] = _json_member(members, _ABOUT)
    if not _is_about(written):
        raise ModelFileError(f"its {_ABOUT} is damaged")
    if written["format"] > _FORMAT:
        raise ModelFileError(
            f"fragility {written['versions'].get('fragility')} wrote it in format "
            f"{written['format']}, and this is fragility {version('fragility')}, which reads up to "
            f"format {_FORMAT}: upgrade fragility"
        )
    return written


def _is_about(written: Any) -> bool:
    if not (isinstance(written, dict) and isinstance(written.get("about"), dict)):
        return False
    number, versions = written.get("format"), written.get("versions")
    if type(number) is not int or not 0 < number < 1_000_000 or not isinstance(versions, dict):
        return False
    return all(isinstance(text, str) and _VERSION.fullmatch(text) for text in versions.values())


def _json_member(members: Members, name: str) -> Any:
    if name not in members:
        raise ModelFileError(f"it is an archive without {name}, so it is not a file of skops")
    if len(members[name]) > _LARGEST_JSON:
        raise ModelFileError(f"its {name} has more than {_LARGEST_JSON:,} bytes")
    with _explained(f"its {name} is damaged"):  # or nested too deep
        return json.loads(members[name])


def _skops() -> Any:
    with needed_for("Models are kept in files of skops", "cli"):
        import skops.io
    return skops.io


@contextmanager
def _explained(words: str) -> Iterator[None]:
    """Any error becomes one of the file; its text may come from the file and is made printable."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        text = "".join(sign if sign.isprintable() else "?" for sign in text)
        why = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise ModelFileError(f"{words} ({why})") from error
