"""The index of data of any size from one pass, in constant memory, with certified bounds."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._names import shown
from .._parameters import check_choice, require
from .._typing import Floats
from .._validation import (
    LabelledScores,
    check_labelled_scores,
    check_labels,
    check_presence,
    positive_index,
)
from ..envelope import Envelope
from .bins import ScoreBins
from .cases import check_agreement, check_scale, check_total
from .layout import Uniform
from .stored import (
    StoredArrays,
    check_head,
    check_stored_labels,
    plain_labels,
    read_bins,
    seal,
)

if TYPE_CHECKING:
    from ..figures.sketch import SketchFragility

_BIN_NUMBERS = [1 << k for k in range(4, 21)]
_MOST_BYTES = 1 << 30
#: In format 1 a score half-way between two centres was in the even bin for classes of even number,
#: and in the odd one for the others. Both bins hold it, so that such sketches merge with new ones.
_ENVELOPE = Envelope(b"fragility-sketch", "FragilitySketch", version=2, earlier=(1,))


class FragilitySketch:
    """Mergeable state that knows the Fragility Index of all scores it has seen.

    Feed it batches, on one machine or many, merge, and ask. It keeps no sample; the answer is an
    interval that holds the exact index, for ordinary probabilities narrower than a millionth of
    it. Merging is exact: any order and any split gives the same bytes.

    Every update touches all bins, so prefer large batches to many small ones. A sketch is not for
    several threads at once: give each its own, and merge.

    Parameters
    ----------
    n_bins : int, default=4096
        Bins of [0, 1], a power of two. The interval narrows with its third power.
    labels : sequence, optional
        All classes, in the order of the columns of the scores. Needed before a batch that lacks a
        class; by default the classes of the first batch.
    pos_label : label, optional
        The positive class of two; by default the second of `labels`. Without `labels`, of an
        ordered categorical in the first batch, the later category.
    multi_class : {"ovo", "ovr"}, default="ovo"
        Every ordered pair of classes, or each class against the rest, which takes less memory.

    Attributes
    ----------
    labels : ndarray of shape (C,) or None
        The classes, once known.
    support : ndarray of shape (C,)
        Samples of positive weight in each class.

    Examples
    --------
    >>> from fragility import FragilitySketch
    >>> monday = FragilitySketch().update([1, 0, 1, 0], [0.6, 0.1, 0.9, 0.8])
    >>> tuesday = FragilitySketch().update([0, 1], [0.3, 0.7])
    >>> (monday + tuesday).fragility()
    Fragility Index  0.111393           target 0
    certified        [0.111393473534, 0.111393473534]
    ratio            0.33418            scale-free: compare models by this too
    AUC              0.777778
    Brier            0.166667
    samples          6                  0: 3, 1: 3
    """

    def __init__(
        self,
        n_bins: int = 4096,
        labels: Sequence[Any] | NDArray[Any] | None = None,
        pos_label: Any = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
    ) -> None:
        check_choice(multi_class, ("ovo", "ovr"), "multi_class")
        if not isinstance(n_bins, (int, np.integer)) or n_bins not in _BIN_NUMBERS:
            raise ValueError(
                f"n_bins must be a power of two from 16 to {1 << 20}; got {shown(n_bins)}."
            )
        self.n_bins, self.multi_class, self.pos_label = int(n_bins), multi_class, pos_label
        self.labels: NDArray[Any] | None = None
        self.support = np.zeros(0, dtype=np.int64)
        self._positive = 1
        self._bins: ScoreBins | None = None
        if labels is not None:
            self._begin(check_labels(labels))

    def _begin(self, labels: NDArray[Any]) -> ScoreBins:
        """Make the state, now that the classes are known."""
        if labels.dtype.kind == "f":  # whole numbers in a column that once had gaps
            labels = labels.astype(np.int64)
        positive = positive_index(labels, self.pos_label)
        self._check_size(labels.size)
        self.labels, self._positive = labels, positive
        self.support = np.zeros(labels.size, dtype=np.int64)
        self._bins = ScoreBins(Uniform(self.n_bins), *_state_shape(labels.size, self.multi_class))
        return self._bins

    def _check_size(self, n_classes: int, weights: Floats | None = None) -> None:
        """Refuse a state that would not fit: weights of many scales take more digits."""
        shape = _state_shape(n_classes, self.multi_class)
        needed = ScoreBins.state_bytes(self.n_bins + 1, *shape, weights)
        if needed <= _MOST_BYTES:
            return
        bins = self.n_bins
        while bins > 16 and ScoreBins.state_bytes(bins + 1, *shape, weights) > _MOST_BYTES:
            bins //= 2
        ways = [f"n_bins={bins}"] + ['multi_class="ovr"'] * (self.multi_class == "ovo")
        of_weights = "" if weights is None else ", with weights of these scales,"
        raise ValueError(
            f"A sketch of {n_classes} classes with {self.n_bins} bins{of_weights} needs "
            f"{needed / 2**30:.1f} GiB, more than 1 GiB. Use {' or '.join(ways)}."
        )

    @np.errstate(under="ignore")  # squares of tiny distances
    def update(
        self, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> FragilitySketch:
        """Add a batch.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities: scores in [0, 1].
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        FragilitySketch
            Itself. A batch that is refused leaves it unchanged.
        """
        if np.size(y_true) == 0 and np.size(y_score) == 0:
            return self
        data = self._check(y_true, y_score, sample_weight)
        if not data.support.any():  # a part of the data may carry no weight, though the whole does
            return self
        if self._bins is None and data.is_binary and data.positive == 0:
            self.pos_label = data.labels.tolist()[0]  # later batches may have lost their order
        bins = self._bins or self._begin(data.labels)
        scores, codes, weights = data.scores, data.codes, data.weights
        if weights is not None and not weights.all():
            carrying = weights > 0.0
            scores, codes, weights = scores[carrying], codes[carrying], weights[carrying]
        if scores.ndim == 1 or self.multi_class == "ovo":
            bins.add(scores, codes, weights)
        else:
            for i in range(data.labels.size):
                bins.add(scores[:, i], codes == i, weights, first=i)
        self.support += data.support
        return self

    def _check(
        self, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None
    ) -> LabelledScores:
        data = check_labelled_scores(
            y_true,
            y_score,
            self.labels,
            self.pos_label,
            sample_weight,
            presence=False,
            weightless=True,
        )
        low, high = float(data.ranges.min()), float(data.ranges.max())
        if low < 0.0 or high > 1.0:
            outside = int(((data.scores < 0.0) | (data.scores > 1.0)).sum())
            raise ValueError(
                f"A sketch takes scores from 0 to 1; {outside} lie outside (they go from {low!r} "
                f"to {high!r}). Give probabilities (rounding errors: through np.clip), or use "
                "measure_fragility for other scores."
            )
        if data.weights is not None and data.support.any():
            check_scale(data.weights, "sample_weight", "weights", "sketch")
            self._check_size(data.labels.size, weights=data.weights[data.weights > 0.0])
        check_total(self.support, data.support, "sketch")
        return data

    def merge(self, other: FragilitySketch) -> FragilitySketch:
        """Add all samples of another sketch; returns itself. A refused merge changes nothing."""
        if not isinstance(other, FragilitySketch):
            raise TypeError(f"A sketch merges with a sketch; got {type(other).__name__}.")
        for name in ("n_bins", "multi_class"):
            check_agreement("sketch", name, getattr(self, name), getattr(other, name))
        labels = self.labels if self.labels is not None else other.labels
        if self.labels is not None and other.labels is not None:
            check_agreement("sketch", "labels", self.labels.tolist(), other.labels.tolist())
        # A sketch that knows no classes yet has a say in which is positive if it was told one.
        told = [part for part in (self, other) if part.pos_label is not None or part._bins]
        for part in told:
            if labels is None:
                check_agreement("sketch", "pos_label", told[0].pos_label, part.pos_label)
            else:
                places = (positive_index(labels, p.pos_label) for p in (told[0], part))
                own, others = (labels.tolist()[place] for place in places)
                check_agreement("sketch", "the positive class", own, others)
        check_total(self.support, other.support, "sketch")
        if told:
            self.pos_label = told[0].pos_label
        if other._bins is not None and other.labels is not None:
            (self._bins or self._begin(other.labels)).merge(other._bins)
            self.support += other.support
        return self

    def __add__(self, other: FragilitySketch) -> FragilitySketch:
        if not isinstance(other, FragilitySketch):
            return NotImplemented
        return deepcopy(self).merge(other)

    def __radd__(self, other: object) -> FragilitySketch:
        # The builtin sum starts from 0.
        return deepcopy(self) if other == 0 and isinstance(other, int) else NotImplemented

    def __copy__(self) -> FragilitySketch:
        return deepcopy(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FragilitySketch):
            return NotImplemented
        (own_head, own_arrays), (head, arrays) = self._content(), other._content()
        return own_head == head and all(map(np.array_equal, own_arrays, arrays))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        seen = "empty" if self.labels is None else f"{int(self.support.sum())} samples"
        return f"<FragilitySketch of {self.n_bins} bins, {seen}>"

    def fragility(self, target: float = 0.0) -> SketchFragility:
        """The index of all samples seen so far.

        Parameters
        ----------
        target : float, default=0.0
            Level that the expected ranking error must meet.

        Returns
        -------
        SketchFragility
        """
        from ..figures.sketch import measured_sketch  # the state comes first, its figures later

        if self._bins is None or self.labels is None:
            raise ValueError("The sketch is empty; update it with samples of two classes first.")
        check_presence(self.labels, self.support)
        return measured_sketch(
            self._bins, self.labels, self.support, self._positive, self.multi_class, target
        )

    def _content(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """All that makes up a sketch, the same for the same samples."""
        arrays = [] if self._bins is None else [self.support, *self._bins.to_arrays()]
        labels = None if self.labels is None else plain_labels(self.labels)
        head = {
            "n_bins": self.n_bins,
            "multi_class": self.multi_class,
            "labels": labels,
            "pos_label": self.pos_label if labels is None else labels[self._positive],
        }
        return head, arrays

    def to_bytes(self) -> bytes:
        """The whole state, with version and checksum; the same bytes for the same samples."""
        return seal(_ENVELOPE, *self._content(), "sketch")

    @classmethod
    def from_bytes(cls, data: bytes) -> FragilitySketch:
        """The sketch that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the bytes are not a sketch, are damaged, or come from another version.
        """
        return _ENVELOPE.open(data, cls._of_content)

    @classmethod
    def _of_content(cls, head: dict[str, Any], arrays: list[NDArray[Any]]) -> FragilitySketch:
        """The sketch with this content, as `_content` gives it; every part of it is checked."""
        check_head(head, cls()._content()[0])
        labels, pos_label = head["labels"], head["pos_label"]
        plain = isinstance(pos_label, (str, int, float, NoneType)) and pos_label == pos_label
        require(plain, f"its positive class is {shown(pos_label)}.")
        if labels is not None:
            check_stored_labels(labels)
        named = pos_label if labels is None or len(labels) == 2 else None
        sketch = cls(head["n_bins"], None, named, head["multi_class"])
        if labels is None:
            require(not arrays, "it has samples but no classes.")
            return sketch
        classes, source = check_labels(labels), StoredArrays(arrays)
        shape = _state_shape(classes.size, sketch.multi_class)
        support = source.support((classes.size,))
        counts = np.column_stack([support.sum() - support, support])
        if shape[1] == classes.size:  # not one-versus-rest
            counts = np.broadcast_to(support, shape)
        stored = read_bins(source, Uniform(sketch.n_bins), counts, _MOST_BYTES)
        source.finish()
        bins = sketch._begin(classes)
        own = sketch._content()[0]
        same = repr(own) == repr({name: head[name] for name in own})
        require(same, "its classes are not written as this library writes them.")
        sketch.support[...] = support
        bins.take_arrays(stored)
        return sketch


def _state_shape(n_classes: int, multi_class: str) -> tuple[int, int]:
    """Columns of scores and groups of samples that must be told apart."""
    if n_classes == 2:
        return 1, 2
    return n_classes, n_classes if multi_class == "ovo" else 2
