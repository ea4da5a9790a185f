"""Where examples come from, and how the batches of an epoch are read ahead of the network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.training.draws import Draws, Seeds, example_seeds
from fieldmark.training.gpu_jpegs import decode_on, decodes_itself
from fieldmark.training.objectives import Objective, Prepared, StrongView
from fieldmark.training.packs import EncodedSquares, KeptSquares
from fieldmark.work.blocks import LocalExecutor, all_cores, map_blocks

Tensor = Any

# One waits for the decoder of the device while the other gets its files ready.
DECODING_THREADS = 2


class ProcessShare(NamedTuple):
    """Which process this is, of how many."""

    rank: int = 0
    processes: int = 1


class Source(Protocol):
    """Examples to learn from or to answer."""

    @property
    def labels(self) -> NDArray[Any]:
        """What each example is counted and sampled by, held in memory for all of them.

        The class of each (int32, -1 for an unlabeled one), one row of 0/1 over the classes, or for masks the pixels of
        each class (see `objectives.pixels_of_classes`).
        """
        ...

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """What each example belongs to (its observation), None where that is not known."""
        ...

    def __len__(self) -> int: ...

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any] | KeptSquares, ...]:
        """The raw arrays of some examples, stacked; with draws for training, None for evaluation."""
        ...

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[Any]:
        """The right answers for some examples: their labels, or an array for each.

        An array that belongs to a picture (a mask) is cropped and mirrored here as the same draws crop and mirror the
        picture.
        """
        ...


class Transform(Protocol):
    """Turns the raw arrays of a batch into what the network takes, on the device."""

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor: ...


@dataclass(frozen=True)
class WeakAndStrong:
    """A transform for two views: `strong` for the second view of an example, `weak` for all else."""

    weak: Transform
    strong: Transform

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor:
        transform = self.strong if draws is not None and draws.strong else self.weak
        return transform(raw, draws)


class Batch:
    """A batch as the reading threads hand it over.

    Args:
        source: The examples.
        rows: Which of them.
        seeds: Their seeds in training, None for evaluation.
        objective: What is to be learned or measured; without one, no targets are read.
        device: Where the batch is going: tensors are put where a GPU can fetch them.
        keep_encoded: Whether JPEGs are left to that device.
    """

    def __init__(
        self,
        source: Source,
        rows: NDArray[np.int64],
        seeds: Seeds | None,
        objective: Objective | None,
        *,
        device: Any,
        keep_encoded: bool = False,
    ) -> None:
        self.rows, self.objective = rows, objective
        self.draws = None if seeds is None else Draws(seeds)
        self.raw = [_read(one, device, keep_encoded) for one in source.read(rows, self.draws)]
        self.targets: Tensor = None
        self.strong: tuple[list[Any], Draws, Tensor] | None = None
        if objective is None:
            return
        targets = source.read_targets(rows, self.draws)
        self.targets = _tensor(targets, device)
        if self.draws is not None and len(again := objective.shown_again(targets)):
            draws = self.draws.of_strong_view(again)
            raw = [_read(one, device, keep_encoded) for one in source.read(rows[again], draws)]
            self.strong = raw, draws, _tensor(again, device)

    @property
    def is_encoded(self) -> bool:
        """Whether it holds photos that the device is to decode."""
        return any(isinstance(one, EncodedSquares) for one in self.raw)

    def decode(self, device: Any) -> Batch:
        """The batch with its photos on the device, decoded there."""
        self.raw = _decoded(self.raw, device)
        if self.strong is not None:
            self.strong = _decoded(self.strong[0], device), *self.strong[1:]
        return self

    def prepare(self, transform: Transform, device: Any) -> Prepared:
        """The batch on a device, transformed."""
        inputs = transform(_moved(self.raw, device), self.draws)
        targets = None if self.objective is None else self.objective.targets(*_moved([self.targets], device))
        if self.strong is None:
            return Prepared(inputs, targets, self.draws)
        raw, draws, places = self.strong
        strong = StrongView(transform(_moved(raw, device), draws), *_moved([places], device))
        return Prepared(inputs, targets, self.draws, strong)


def _read(raw: NDArray[Any] | KeptSquares, device: Any, keep_encoded: bool) -> Tensor | EncodedSquares:
    if isinstance(raw, np.ndarray):
        return _tensor(raw, device)
    if isinstance(raw, EncodedSquares) and keep_encoded:
        return raw
    # Straight into memory that a GPU can fetch, and that is used again: fresh memory costs as much as the copy.
    squares = torch.empty(raw.shape, dtype=torch.uint8, pin_memory=device.type == "cuda")
    raw.fill(squares.numpy())
    return squares


def _tensor(array: NDArray[Any], device: Any) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory() if device.type == "cuda" else tensor


def _decoded(raw: Sequence[Tensor | EncodedSquares], device: Any) -> list[Tensor]:
    return [decode_on(device, one) if isinstance(one, EncodedSquares) else one for one in raw]


def _moved(tensors: Sequence[Tensor], device: Any) -> list[Tensor]:
    for tensor in tensors:
        if tensor.is_cuda:  # decoded on another stream than the one that goes on with it
            tensor.record_stream(torch.cuda.current_stream(device))
    return [tensor.to(device, non_blocking=True) for tensor in tensors]


def training_batches(
    source: Source,
    order_of: Callable[[int], NDArray[np.int64]],
    epochs: range,
    *,
    objective: Objective,
    seed: int,
    batch: int,
    accumulate: int,
    share: ProcessShare,
    first_step: int,
    workers: int,
    device: Any,
) -> Iterator[Batch]:
    """This process's share of all epochs: `accumulate` batches for every step.

    Reading ahead does not stop where an epoch ends: while val is answered, the next epoch begins to arrive. A step
    covers `batch` examples of the order; examples that do not fill a last step are left for another epoch.

    Args:
        source: The examples.
        order_of: The examples of an epoch, in order.
        epochs: Which epochs, counted from 0.
        objective: What is to be learned.
        seed: The seed of the training; draws are a function of it, of the epoch and of the place in the order.
        batch: Examples per step, over all processes.
        accumulate: How many batches this process makes of its share of a step.
        share: Which process this is, of how many.
        first_step: Steps of the first epoch that were taken before.
        workers: Threads, 0 for one per core.
        device: Where the batches are going.
    """
    own = batch // share.processes

    def blocks() -> Iterator[tuple[NDArray[np.int64], Seeds]]:
        for epoch in epochs:
            order = order_of(epoch)
            seeds = example_seeds(seed, epoch, np.arange(len(order)))
            for step in range(first_step if epoch == epochs.start else 0, len(order) // batch):
                for part in np.split(step * batch + share.rank * own + np.arange(own), accumulate):
                    yield order[part], seeds[part]

    threads = _threads(workers)
    keep = decodes_itself(device, threads.workers)
    return map_blocks(
        lambda block: Batch(source, *block, objective, device=device, keep_encoded=keep), blocks(), threads
    )


def prepared(batches: Iterable[Batch], transform: Transform, device: Any) -> Iterator[Prepared]:
    """Batches on a device, transformed. On a GPU the next one is prepared beside the work on the one before."""
    if device.type != "cuda":
        yield from (batch.prepare(transform, device) for batch in batches)
        return
    beside, waiting = torch.cuda.Stream(device), None
    for batch in _decoded_ahead(batches, device):
        with torch.cuda.stream(beside):
            upcoming = batch.prepare(transform, device), beside.record_event()
        if waiting is not None:
            yield _handed_over(*waiting)
        waiting = upcoming
    if waiting is not None:
        yield _handed_over(*waiting)


def _decoded_ahead(batches: Iterable[Batch], device: Any) -> Iterator[Batch]:
    """Batches whose photos the device has decoded, where it can, beside everything else it does."""
    coming = iter(batches)
    first = next(coming, None)
    if first is None:
        return
    everything = itertools.chain([first], coming)
    if first.is_encoded:
        yield from map_blocks(lambda batch: batch.decode(device), everything, LocalExecutor(DECODING_THREADS, "thread"))
    else:
        yield from everything


def _handed_over(batch: Prepared, done: Any) -> Prepared:
    """Lets the stream that trains wait for a batch, and keeps its memory until that stream is done with it."""
    stream = torch.cuda.current_stream()
    stream.wait_event(done)
    for tensor in (batch.inputs, batch.targets, *(batch.strong or ())):
        if tensor is not None:
            tensor.record_stream(stream)
    return batch


def evaluation_batches(
    source: Source,
    rows: NDArray[np.int64],
    *,
    batch: int,
    workers: int,
    device: Any,
    objective: Objective | None = None,
) -> Iterator[Batch]:
    """Examples in the given order, without draws; with targets where an objective is to measure something."""
    blocks = (rows[start : start + batch] for start in range(0, len(rows), batch))
    threads = _threads(workers)
    keep = decodes_itself(device, threads.workers)
    return map_blocks(
        lambda block: Batch(source, block, None, objective, device=device, keep_encoded=keep), blocks, threads
    )


def _threads(workers: int) -> LocalExecutor:
    return LocalExecutor(workers, "thread") if workers else all_cores("thread")
