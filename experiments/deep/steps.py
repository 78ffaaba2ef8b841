"""One epoch of optimiser steps: one by one, or replayed as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from experiments.deep.recipe import Objective

__all__ = ["EagerSteps", "GraphedSteps", "batch_sizes"]


def batch_sizes(n_samples: int, batch_size: int) -> list[int]:
    """Sizes of the batches of an epoch; a last batch of one sample is left out.

    Batch statistics of one sample do not exist. The order changes in each epoch, so that every
    sample has its turn.

    Examples
    --------
    >>> batch_sizes(10, 4), batch_sizes(9, 4), batch_sizes(3, 4)
    ([4, 4, 2], [4, 4], [3])
    """
    whole, rest = divmod(n_samples, batch_size)
    return [batch_size] * whole + ([rest] if rest > 1 or (rest == 1 and not whole) else [])


class EagerSteps:
    """Steps one after the other.

    Parameters
    ----------
    objective : Objective
        From inputs and labels to the loss.
    optimizer : Optimizer
    inputs, labels : Tensor
        All training data, on the device.
    batch_size : int
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        inputs: Tensor,
        labels: Tensor,
        batch_size: int,
    ) -> None:
        self.objective, self.optimizer = objective, optimizer
        self.inputs, self.labels = inputs, labels
        self.sizes = batch_sizes(len(inputs), batch_size)

    def epoch(self, order: Tensor) -> Tensor:
        """One pass in this order; returns the mean loss, still on the device."""
        self.objective.train()
        total = torch.zeros((), dtype=torch.float64, device=self.inputs.device)
        for rows in _batches(order.to(self.inputs.device), self.sizes):
            total += len(rows) * self.step(rows).double()
        return total / sum(self.sizes)

    def step(self, rows: Tensor) -> Tensor:
        """One step on these samples; returns their loss."""
        loss: Tensor = self.objective(self.inputs[rows], self.labels[rows])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.objective.after_step()
        return loss.detach()


class GraphedSteps(EagerSteps):
    """The same steps, recorded once for each batch size and replayed: small networks gain most.

    The optimiser must be able to be recorded (``capturable=True``, its learning rate a tensor), and
    objective and optimiser must be loaded before: what they hold is kept where it lies.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        inputs: Tensor,
        labels: Tensor,
        batch_size: int,
    ) -> None:
        super().__init__(objective, optimizer, inputs, labels, batch_size)
        device = inputs.device
        self.order = torch.arange(len(inputs), device=device)
        self.places = torch.arange(max(self.sizes), device=device)
        self.start = torch.zeros((), dtype=torch.long, device=device)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        put_back = _remembered(objective, optimizer)
        objective.train()
        sizes = sorted(set(self.sizes))
        # Libraries choose their algorithms in the first steps, which cannot be recorded.
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for size in sizes * 3:
                self.start.zero_()
                self._next(size)
        torch.cuda.current_stream(device).wait_stream(side)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        for size in sizes:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._next(size)
            self.graphs[size] = graph
        put_back()

    def _next(self, size: int) -> None:
        rows = self.order[self.start + self.places[:size]]
        self.total += size * self.step(rows).double()
        self.start += size

    def epoch(self, order: Tensor) -> Tensor:
        self.objective.train()
        self.order.copy_(order)
        self.start.zero_()
        self.total.zero_()
        for size in self.sizes:
            self.graphs[size].replay()
        return self.total / sum(self.sizes)


def _batches(order: Tensor, sizes: list[int]) -> Iterator[Tensor]:
    start = 0
    for size in sizes:
        yield order[start : start + size]
        start += size


def _remembered(objective: Objective, optimizer: torch.optim.Optimizer) -> Callable[[], None]:
    """What puts objective and optimiser back as they are now, in place."""
    values = {name: value.clone() for name, value in objective.state_dict().items()}
    moments = {
        parameter: {name: value.clone() for name, value in state.items()}
        for parameter, state in optimizer.state.items()
    }

    def put_back() -> None:
        with torch.no_grad():
            for name, value in objective.state_dict().items():
                value.copy_(values[name])
            for parameter, state in optimizer.state.items():
                for name, value in state.items():
                    if parameter in moments:
                        value.copy_(moments[parameter][name])
                    else:  # what Adam starts from
                        value.zero_()

    return put_back
