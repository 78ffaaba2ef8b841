"""What all Displays share: axes that are given or new, and what is kept of them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from .figure import pyplot

_NUMBERS = {1: "one", 2: "two"}


class Display:
    """A picture: data in attributes, `plot` draws them on axes that are given or on new ones.

    A subclass says how many axes it needs and how a new figure looks, and draws in `_draw`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, or the first of several.
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    """

    #: Rows and columns of axes, and the heights of the rows relative to each other.
    _grid: ClassVar[tuple[int, int]] = (1, 1)
    _heights: ClassVar[tuple[float, ...] | None] = None
    _share_x: ClassVar[bool] = False
    #: What several axes are for, in a message to whom gave another number of them.
    _axes_for: ClassVar[str] = ""
    #: Width and height of a new figure in inches.
    _size: ClassVar[tuple[float, float]] = (6.4, 4.2)

    ax_: Any
    axes_: Any
    figure_: Any

    def _new_size(self) -> tuple[float, float]:
        """Size of a new figure."""
        return self._size

    def _draw(self, axes: Any) -> None:
        """Draw on an array of axes."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on those of a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of them, optional
            As many as the picture has.

        Returns
        -------
        Display
            Itself.
        """
        rows, columns = self._grid
        if ax is None:
            _, axes = pyplot().subplots(
                rows,
                columns,
                figsize=self._new_size(),
                layout="constrained",
                sharex=self._share_x,
                height_ratios=self._heights,
                squeeze=False,
            )
        else:
            axes = np.asarray(ax, dtype=object)
        axes = axes.ravel()
        count = rows * columns
        if axes.size != count:
            raise ValueError(
                f"ax must be {_NUMBERS.get(count, count)} matplotlib Axes{self._axes_for}; got "
                f"{axes.size}. Give those of plt.subplots({rows}, {columns})."
            )
        self.axes_, self.ax_, self.figure_ = axes, axes[0], axes[0].figure
        self._draw(axes)
        return self
