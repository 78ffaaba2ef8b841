"""MedMNIST: small medical images with official splits."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

import numpy as np
from sklearn.utils import Bunch

from fragility._labels import listed
from fragility.datasets.files import DataFile

_RECORD = "https://zenodo.org/records/10519652/files/"
_ORGANS = (
    "bladder", "femur-left", "femur-right", "heart", "kidney-left", "kidney-right", "liver",
    "lung-left", "lung-right", "pancreas", "spleen",
)  # fmt: skip
_SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class _Images:
    checksum: str
    sizes: tuple[int, int, int]
    target_names: tuple[str, ...]


# SHA-256 of the files that could be checked here; the others have the MD5 that the medmnist
# package (3.0.2) records.
_SETS = {
    "bloodmnist": _Images(
        "062023e186f537e26b3c21ea3b2614ddfc475e8a14825dfd20663bbb7e37bddc",
        (11959, 1712, 3421),
        (
            "basophil", "eosinophil", "erythroblast", "immature granulocytes", "lymphocyte",
            "monocyte", "neutrophil", "platelet",
        ),
    ),
    "breastmnist": _Images(
        "3a22d2a4625e7dd8903f0f59030e81a3d0c222bece2e5e10927456cb50efdec1",
        (546, 78, 156),
        ("malignant", "normal, benign"),
    ),
    "organamnist": _Images("68e3f8846a6bd62f0c9bf841c0d9eacc", (34561, 6491, 17778), _ORGANS),
    "organcmnist": _Images("b9ceb9546e10131b32923c5bbeaea2b1", (12975, 2392, 8216), _ORGANS),
    "organsmnist": _Images("9ab87b696fb54e2a387ebe992d6ed5f1", (13932, 2452, 8827), _ORGANS),
    "pathmnist": _Images(
        "a8b06965200029087d5bd730944a56c1",
        (89996, 10004, 7180),
        (
            "adipose", "background", "debris", "lymphocytes", "mucus", "smooth muscle",
            "normal colon mucosa", "cancer-associated stroma",
            "colorectal adenocarcinoma epithelium",
        ),
    ),
    "pneumoniamnist": _Images(
        "e1792d3f03751cb101e99f19a63b3c1941436c988665f47853417b05be250cd8",
        (4708, 524, 624),
        ("normal", "pneumonia"),
    ),
    "retinamnist": _Images(
        "254915f5f0a2074665c4676356824cf4ef4a3bcab233894b4bafcaf48962bd69",
        (1080, 120, 400),
        ("grade 0", "grade 1", "grade 2", "grade 3", "grade 4"),
    ),
    "tissuemnist": _Images(
        "ebe78ee8b05294063de985d821c1c34b",
        (165466, 23640, 47280),
        (
            "collecting duct, connecting tubule", "distal convoluted tubule",
            "glomerular endothelial cells", "interstitial endothelial cells", "leukocytes",
            "podocytes", "proximal tubule segments", "thick ascending limb",
        ),
    ),
}  # fmt: skip


def load_medmnist(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Small medical images (MedMNIST v2, 28 x 28 pixels) with their official splits.

    The nine sets of the paper: "blood", "breast", "organa", "organc", "organs", "path",
    "pneumonia", "retina" and "tissue".

    Parameters
    ----------
    name : str
        Such as "breast" or "BreastMNIST".
    data_home : path, optional
        Folder that holds the file, such as ``breastmnist.npz``, or ``medmnist/`` with it; by
        default that of the environment variable ``FRAGILITY_DATA``, else the cache, else the file
        is downloaded. Its checksum must be the recorded one.

    Returns
    -------
    Bunch
        With ``train``, ``val`` and ``test``, each a Bunch of ``data`` (n, 28, 28) or
        (n, 28, 28, 3), whole numbers from 0 to 255, and ``target`` (n,); ``target_names`` and
        ``DESCR``.

    Examples
    --------
    >>> from experiments.data import load_medmnist
    >>> load_medmnist("breast").train.data.shape  # doctest: +SKIP
    (546, 28, 28)
    """
    key = str(name).lower().removesuffix("mnist") + "mnist"
    if key not in _SETS:
        raise ValueError(
            f"There is no data set {name!r} here; there are "
            f"{listed(known.removesuffix('mnist') for known in _SETS)}."
        )
    about = _SETS[key]
    file = DataFile("medmnist", f"{key}.npz", about.checksum, f"{_RECORD}{key}.npz", "CC BY 4.0")
    splits = {}
    with np.load(io.BytesIO(file.read(data_home)), allow_pickle=False) as arrays:
        for split, size in zip(_SPLITS, about.sizes, strict=True):
            images = arrays[f"{split}_images"]
            target = arrays[f"{split}_labels"].astype(np.int64)[:, 0]
            if len(images) != size or len(target) != size:
                raise ValueError(f"{file.name} has {len(images)} {split} images; expected {size}.")
            splits[split] = Bunch(data=images, target=target)
    return Bunch(
        **splits,
        target_names=list(about.target_names),
        DESCR=f"MedMNIST v2, {key}, {file.url}, {file.licence}.",
    )
