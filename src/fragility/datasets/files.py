"""Where data files come from: a folder of the user, the cache, or their official source.

A file is used only if its checksum is the recorded one: copies that circulate are often altered.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._optional import needed_for

_TIMEOUT = 60.0
_MD5_DIGITS = 32


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    folder, name : str
        Where the file is below a data folder. It may also lie in the data folder itself.
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
        """Content of the file, downloaded once if it is not there yet.

        Parameters
        ----------
        data_home : path, optional
            Folder to look in first; by default the environment variable ``FRAGILITY_DATA``.
        """
        own = data_home if data_home is not None else os.environ.get("FRAGILITY_DATA")
        places = [] if own is None else [Path(own) / self.folder / self.name, Path(own) / self.name]
        for path in places:
            if path.is_file():
                content = path.read_bytes()
                algorithm = self._kind.replace("-", "")
                found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
                if found != self.checksum:
                    raise self._altered(
                        str(path), f"its {self._kind} is {found}, expected {self.checksum}"
                    )
                return content
        if data_home is not None:
            raise FileNotFoundError(f"{' or '.join(map(str, places))} is not there.")
        return self._cached().read_bytes()

    @property
    def _kind(self) -> str:
        """Which checksum is recorded."""
        return "MD5" if len(self.checksum) == _MD5_DIGITS else "SHA-256"

    def _altered(self, origin: str, how: str) -> ValueError:
        return ValueError(
            f"{origin} is not the {self.name} we know: {how}. Remove it, and get the file from "
            f"{self.url}. {self.note}".rstrip()
        )

    def _cached(self) -> Path:
        """The file in the cache of the user, downloaded if it is not there or was altered."""
        pooch = _pooch()
        cache = Path(pooch.os_cache("fragility")) / self.folder
        known = f"{self._kind.replace('-', '').lower()}:{self.checksum}"
        try:
            return Path(
                pooch.retrieve(self.url, known, self.name, cache, downloader=self._download)
            )
        except OSError as error:
            own = os.environ.get("FRAGILITY_DATA")
            folder = f"{own}, where it is not" if own else "a folder of yours"
            raise OSError(
                f"{self.name} could not be downloaded from {self.url} ({error}). Download it "
                f"yourself ({self._kind} {self.checksum}) and put it at {cache / self.name}, "
                f"or into {folder}: the one that the environment variable FRAGILITY_DATA names. "
                f"{self.note}".rstrip()
            ) from error
        except ValueError as error:  # pooch refuses a wrong checksum, and keeps nothing
            raise self._altered(self.url, " ".join(str(error).split()).rstrip(".")) from error

    def _download(self, url: str, output: str, pooch: Any) -> None:
        """Download the file, and take it out of the archive if the source gives one."""
        headers = {"User-Agent": "fragility"}
        _pooch().HTTPDownloader(timeout=_TIMEOUT, headers=headers)(url, output, pooch)
        if not zipfile.is_zipfile(output) or self.name.endswith(".npz"):  # an archive itself
            return
        with zipfile.ZipFile(output) as archive:
            inside = [name for name in archive.namelist() if Path(name).name == self.name]
            if not inside:
                raise OSError(f"The archive at {url} holds no {self.name}.")
            content = archive.read(inside[0])
        Path(output).write_bytes(content)


def _pooch() -> Any:
    with needed_for("Data files are downloaded with pooch", "datasets"):
        import pooch
    return pooch
