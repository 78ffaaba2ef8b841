"""Where data files come from: a folder of the user, the cache, or their official source.

A file is used only if its checksum is the recorded one: copies that circulate are often altered.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from .._files import write_whole

_TIMEOUT = 60.0
_MD5_DIGITS = 32


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    folder, name : str
        Where the file is below a data folder; directly in it will do, too.
    checksum : str
        SHA-256 in hexadecimal digits, or MD5 where the source publishes nothing else.
    url : str
        Official source: the file itself, or a ZIP archive that holds it.
    licence : str
    note : str
        What to know when the file cannot be downloaded; one sentence.
    """

    folder: str
    name: str
    checksum: str
    url: str
    licence: str
    note: str = ""

    def read(self, data_home: str | os.PathLike[str] | None = None) -> bytes:
        """Content of the file, downloaded once if it is not at hand.

        Parameters
        ----------
        data_home : path, optional
            Folder to look in first; by default the environment variable ``FRAGILITY_DATA``.
        """
        own = data_home if data_home is not None else os.environ.get("FRAGILITY_DATA")
        cached = _cache() / self.folder / self.name
        places = [cached] if data_home is None else []
        if own is not None:
            places = [Path(own) / self.folder / self.name, Path(own) / self.name, *places]
        for path in places:
            if path.is_file():
                return self._checked(path.read_bytes(), str(path))
        if data_home is not None:
            raise FileNotFoundError(f"{' or '.join(map(str, places))} is not there.")
        content = self._checked(self._taken_out(self._download()), self.url)
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cached, content)
        return content

    def _checked(self, content: bytes, origin: str) -> bytes:
        kind = "MD5" if len(self.checksum) == _MD5_DIGITS else "SHA-256"
        found = hashlib.new(kind.replace("-", ""), content, usedforsecurity=False).hexdigest()
        if found != self.checksum:
            raise ValueError(
                f"{origin} is not the {self.name} we know: its {kind} is {found}, expected "
                f"{self.checksum}. Remove it, and get the file from {self.url}. "
                f"{self.note}".rstrip()
            )
        return content

    def _download(self) -> bytes:
        try:
            request = Request(self.url, headers={"User-Agent": "fragility"})
            with urlopen(request, timeout=_TIMEOUT) as answer:
                content: bytes = answer.read()
        except (URLError, OSError) as error:
            own = os.environ.get("FRAGILITY_DATA")
            folder = f"{own}, where it is not" if own else "a folder of yours"
            raise OSError(
                f"{self.name} could not be downloaded from {self.url} ({error}). Download it "
                f"yourself and put it at {_cache() / self.folder / self.name}, or into {folder}: "
                f"the one that the environment variable FRAGILITY_DATA names. {self.note}".rstrip()
            ) from error
        return content

    def _taken_out(self, content: bytes) -> bytes:
        """The file itself, out of the archive that was downloaded if it was one."""
        is_archive = zipfile.is_zipfile(io.BytesIO(content))
        if not is_archive or self.name.endswith(".npz"):  # which is an archive itself
            return content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = [n for n in archive.namelist() if Path(n).name == self.name]
            if not inside:
                raise OSError(f"The archive at {self.url} holds no {self.name}.")
            return archive.read(inside[0])


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fragility"
