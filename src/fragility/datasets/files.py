"""Where data files come from: a folder of the user, the cache, or their official source.

A file is used only if its SHA-256 is the recorded one: copies that circulate are often altered.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from .._files import write_whole

__all__ = ["DataFile"]

_TIMEOUT = 60.0


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    folder, name : str
        Where the file is below a data folder; directly in it will do, too.
    sha256 : str
    url : str
        Official source: the file itself, or a ZIP archive that holds it.
    licence : str
    """

    folder: str
    name: str
    sha256: str
    url: str
    licence: str

    def read(self, data_home: str | os.PathLike[str] | None = None) -> bytes:
        """Content of the file, downloaded once if it is not at hand.

        Parameters
        ----------
        data_home : path, optional
            Folder to look in first; by default the environment variable ``FRAGILITY_DATA``.
        """
        own = data_home if data_home is not None else os.environ.get("FRAGILITY_DATA")
        if own is not None:
            for path in self._places(Path(own)):
                if path.is_file():
                    return self._checked(path.read_bytes(), str(path))
            if data_home is not None:
                raise FileNotFoundError(f"{self._places_named(Path(own))} is not there.")
        cached = _cache() / self.folder / self.name
        if cached.is_file():
            return self._checked(cached.read_bytes(), str(cached))
        content = self._checked(self._download(), self.url)
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cached, content)
        return content

    def _places(self, folder: Path) -> Iterator[Path]:
        yield folder / self.folder / self.name
        yield folder / self.name

    def _places_named(self, folder: Path) -> str:
        return " or ".join(str(path) for path in self._places(folder))

    def _checked(self, content: bytes, origin: str) -> bytes:
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise ValueError(
                f"{origin} is not the {self.name} we know: its SHA-256 is {found}, expected "
                f"{self.sha256}. Remove it, and get the file from {self.url}."
            )
        return content

    def _download(self) -> bytes:
        try:
            with urlopen(
                Request(self.url, headers={"User-Agent": "fragility"}), timeout=_TIMEOUT
            ) as r:
                content: bytes = r.read()
        except (URLError, OSError) as error:
            raise OSError(
                f"{self.name} could not be downloaded from {self.url} ({error}). Download it "
                f"yourself and put it at {_cache() / self.folder / self.name}, or into the folder "
                "that the environment variable FRAGILITY_DATA names."
            ) from error
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                inside = [n for n in archive.namelist() if Path(n).name == self.name]
                if not inside:
                    raise OSError(f"The archive at {self.url} holds no {self.name}.")
                return archive.read(inside[0])
        return content


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fragility"
