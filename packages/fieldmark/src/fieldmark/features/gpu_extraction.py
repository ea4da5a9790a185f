"""Extraction by a network on a GPU: decoding on the GPU and on the CPU at once, and nothing waits for the store.

```
blocks ─▶ processes: read, hash ─▶ threads: decode and resize on the GPU ─┐
   └────▶ processes: read, hash, decode and resize on the CPU ────────────┴─▶ thread: network ─▶ in order ─▶ store
```

Whoever is free takes the next block, so that the split between GPU and CPU is what both can do. Processes are there
where photos are enough to be worth their start (`square_readers`); until they have started, and for fewer photos,
threads of this process read, which take turns in its interpreter.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.features.extraction import BLOCK_PHOTOS, LOOKS
from fieldmark.features.gpu_photos import decoded, looks_of, resized_squares
from fieldmark.features.photo_blocks import BlockReading, PhotoBlock, ReadPhoto
from fieldmark.features.photos import PhotoError, Preprocessing, decode_square
from fieldmark.features.square_readers import EncodedOrSquare, SquareReaders
from fieldmark.features.store import Key

# Photos that the network looks at together, and blocks that the GPU decodes together.
BATCH, BLOCKS_AT_ONCE = 256, 4
# Threads that wait for photos to be read, for the decoder, and resize.
THREADS = 4
# Pieces of work that may wait for the network, each up to `BATCH` squares.
WAITING = 6
# From so many photos on the network is recorded once and replayed, and compiled, which takes ten to twenty seconds.
RECORDED_FROM, COMPILED_FROM = 2_048, 200_000

Network = Callable[[Any], dict[str, Any]]
Reading = Callable[[PhotoBlock], list[ReadPhoto]]


class FinishedBlock(NamedTuple):
    """The photos of a block as they were read, and what the network made of those that are new."""

    photos: list[ReadPhoto]
    outputs: dict[str, NDArray[Any]]


@dataclass
class _Piece:
    """Blocks that were decoded together: squares of the photos that are new, and their outputs as they come."""

    blocks: list[tuple[int, list[ReadPhoto]]]
    squares: Any
    outputs: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    missing: int = 0

    def __post_init__(self) -> None:
        self.missing = 0 if self.squares is None else len(self.squares)

    def finished(self) -> Iterator[tuple[int, FinishedBlock]]:
        whole = {name: np.concatenate([one[name] for one in self.outputs]) for name in (self.outputs or [{}])[0]}
        start = 0
        for number, photos in self.blocks:
            end = start + sum(photo.pixels is not None for photo in photos)
            yield number, FinishedBlock(photos, {name: rows[start:end] for name, rows in whole.items()})
            start = end


@dataclass(frozen=True)
class GpuExtraction:
    """Runs a network over blocks of photos on a device.

    Args:
        network: Makes outputs (tensors) of squares of bytes on the device, photos x 3 x side x side.
        how: How photos become squares.
        stored: What need not be computed.
        device: "cuda", or "cpu" for a rehearsal.
        processes: How many processes decode on the CPU beside it.
        folder: The folder of the store, for those processes.
    """

    network: Network
    how: Preprocessing
    stored: Container[Key]
    device: str = "cuda"
    processes: int = 0
    folder: Path | None = None

    def __call__(self, blocks: Iterable[PhotoBlock], photos: int) -> Iterator[FinishedBlock]:
        """The blocks in their order.

        Args:
            blocks: What is to be done.
            photos: How many photos that are at most.
        """
        with ExitStack() as stack:
            readers = None
            if self.processes:  # they start while the network is recorded
                assert self.folder is not None
                readers = stack.enter_context(SquareReaders(self.how, self.folder, self.processes, BLOCK_PHOTOS))
            network = recorded(self.network, self.how.size_px, photos) if self.device == "cuda" else self.network
            yield from _Flow(self, network, blocks, readers).results()

    def piece(self, blocks: Sequence[tuple[int, PhotoBlock]], reading: Reading) -> _Piece:
        """Blocks read, and decoded on the GPU where they were left as they are."""
        read = [(number, reading(block)) for number, block in blocks]
        contents = [photo.pixels for _, photos in read for photo in photos if _encoded(photo.pixels)]
        try:
            squares = resized_squares(decoded(contents, self.device), self.how) if contents else None
        except RuntimeError:  # one of them is damaged, or has a form that the decoder does not know
            return _piece([(number, [self._by_cpu(photo) for photo in photos]) for number, photos in read], self.device)
        return _piece(read, self.device, squares)

    def _by_cpu(self, photo: ReadPhoto) -> ReadPhoto:
        if not _encoded(photo.pixels):
            return photo
        try:
            return photo._replace(pixels=decode_square(photo.pixels.tobytes(), self.how))
        except PhotoError as error:
            return photo._replace(pixels=None, problem=str(error))


def _encoded(pixels: NDArray[np.uint8] | None) -> bool:
    """Whether a photo was left as it is, a row of bytes."""
    return pixels is not None and pixels.ndim == 1


def _piece(blocks: list[tuple[int, list[ReadPhoto]]], device: str, on_device: Any = None) -> _Piece:
    """Squares of all photos with pixels, in their order: those on the device already, and those of the CPU."""
    pixels = [photo.pixels for _, photos in blocks for photo in photos if photo.pixels is not None]
    by_cpu = [number for number, one in enumerate(pixels) if not _encoded(one)]
    if not by_cpu:
        return _Piece(blocks, on_device)
    sent = torch.from_numpy(np.stack([pixels[number] for number in by_cpu])).to(device).permute(0, 3, 1, 2)
    if on_device is None:
        return _Piece(blocks, sent)
    squares = torch.empty((len(pixels), *sent.shape[1:]), dtype=torch.uint8, device=device)
    by_gpu = [number for number, one in enumerate(pixels) if _encoded(one)]
    squares[torch.tensor(by_gpu, device=device)] = on_device
    squares[torch.tensor(by_cpu, device=device)] = sent
    return _Piece(blocks, squares)


class _Flow:
    """One extraction on its way: threads that share blocks, pieces and results, and end together."""

    def __init__(
        self, work: GpuExtraction, network: Network, blocks: Iterable[PhotoBlock], readers: SquareReaders | None
    ) -> None:
        self._work, self._network, self._readers = work, network, readers
        self._blocks, self._taking = iter(enumerate(blocks)), threading.Lock()
        self._pieces: queue.Queue[_Piece | None] = queue.Queue(WAITING)
        self._done: queue.SimpleQueue[tuple[int, FinishedBlock] | BaseException | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._decoding = 0
        self._reading: Reading = BlockReading(EncodedOrSquare(work.how), work.stored)
        self._gpu_threads, self._gpu_ended = THREADS, threading.Event()

    def results(self) -> Iterator[FinishedBlock]:
        """What the threads make, in the order of the blocks; raises what any of them raised."""
        decoders = [self._decode_on_gpu] * THREADS + ([self._with_processes] if self._readers else [])
        self._decoding = len(decoders)
        threads = [threading.Thread(target=self._guarded, args=(each,), daemon=True) for each in decoders]
        threads.append(threading.Thread(target=self._guarded, args=(self._compute,), daemon=True))
        for thread in threads:
            thread.start()
        early: dict[int, FinishedBlock] = {}
        turn = 0
        try:
            while (one := self._done.get()) is not None:
                if isinstance(one, BaseException):
                    raise one
                early[one[0]] = one[1]
                while turn in early:
                    yield early.pop(turn)
                    turn += 1
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._stopped.set()
            self._gpu_ended.set()
            self._done.put(error)

    def _take(self, number: int) -> list[tuple[int, PhotoBlock]]:
        with self._taking:
            return [] if self._stopped.is_set() else [one for _, one in zip(range(number), self._blocks, strict=False)]

    def _put(self, piece: _Piece | None) -> None:
        while not self._stopped.is_set():
            try:
                self._pieces.put(piece, timeout=0.1)
            except queue.Full:
                continue
            return

    def _decoder_ends(self) -> None:
        with self._taking:
            self._decoding -= 1
            last = self._decoding == 0
        if last:
            self._put(None)

    def _decode_on_gpu(self) -> None:
        with _own_stream(self._work.device):
            while blocks := self._take(BLOCKS_AT_ONCE):
                piece = self._work.piece(blocks, self._reading)
                if self._work.device == "cuda":
                    torch.cuda.current_stream().synchronize()
                self._put(piece)
        with self._taking:
            self._gpu_threads -= 1
            if not self._gpu_threads:
                self._gpu_ended.set()
        self._decoder_ends()

    def _with_processes(self) -> None:
        """Lets processes that have started read for the threads of the GPU, and decode on the CPU beside them."""
        work, read = self._work, self._readers
        assert read is not None
        read.wait()
        with ExitStack() as stack:
            self._reading = read.encoded
            stack.callback(self._gpu_ended.wait)  # its threads may still ask for blocks

            def serve() -> None:
                with _own_stream(work.device):
                    while blocks := self._take(1):
                        number, block = blocks[0]
                        self._put(_piece([(number, read(block))], work.device))

            threads = [
                threading.Thread(target=self._guarded, args=(serve,), daemon=True)
                for _ in range(max(1, work.processes - THREADS))
            ]
            for thread in threads:
                thread.start()
                stack.callback(thread.join)
        self._decoder_ends()

    def _compute(self) -> None:
        """Gathers batches, runs the network, and fetches the outputs of one batch while it computes the next."""
        parts: deque[tuple[_Piece, int, int]] = deque()  # rows of pieces that wait
        waiting, flying, ended = 0, deque[_BatchInFlight](), False
        while not self._stopped.is_set() and (parts or flying or not ended):
            while not ended and waiting < BATCH:
                try:
                    piece = self._pieces.get(timeout=0.1)
                except queue.Empty:
                    break
                if piece is None:
                    ended = True
                elif piece.missing:
                    parts.append((piece, 0, piece.missing))
                    waiting += piece.missing
                else:
                    self._finish(piece)
            if waiting >= BATCH or (ended and waiting):
                batch = _cut(parts, min(waiting, BATCH))
                waiting -= sum(end - start for _, start, end in batch)
                flying.append(_BatchInFlight.start(self._network, batch, self._work.device))
            if flying and (len(flying) > 1 or not waiting):
                for piece in flying.popleft().land():
                    self._finish(piece)
        self._done.put(None)

    def _finish(self, piece: _Piece) -> None:
        piece.squares = None
        for one in piece.finished():
            self._done.put(one)


@contextmanager
def _own_stream(device: str) -> Iterator[None]:
    """Work of this thread goes beside that of others."""
    with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext():
        yield


def _in_memory(network: Network, squares: Any) -> dict[str, Any]:
    """What a network makes of a batch, in halves where the memory of the device is too small for it."""
    try:
        return network(squares)
    except torch.OutOfMemoryError:
        if len(squares) == 1:
            raise
    torch.cuda.empty_cache()
    halves = [_in_memory(network, half) for half in squares.chunk(2)]
    return {name: torch.cat([half[name] for half in halves]) for name in halves[0]}


def _cut(parts: deque[tuple[_Piece, int, int]], number: int) -> list[tuple[_Piece, int, int]]:
    """The first so many rows of what waits."""
    batch = []
    while number:
        piece, start, end = parts.popleft()
        taken = min(number, end - start)
        batch.append((piece, start, start + taken))
        number -= taken
        if start + taken < end:
            parts.appendleft((piece, start + taken, end))
    return batch


@dataclass
class _BatchInFlight:
    """A batch on the device, whose outputs are on their way."""

    batch: list[tuple[_Piece, int, int]]
    outputs: dict[str, Any]
    arrived: Any

    @classmethod
    def start(cls, network: Network, batch: list[tuple[_Piece, int, int]], device: str) -> _BatchInFlight:
        with torch.inference_mode():
            squares = torch.cat([piece.squares[start:end] for piece, start, end in batch])
            if device == "cuda":
                for piece, _, _ in batch:  # made on another stream: not to be reused before this one has read it
                    piece.squares.record_stream(torch.cuda.current_stream())
            outputs = {**_in_memory(network, squares), LOOKS: looks_of(squares)}
            if device != "cuda":
                return cls(batch, outputs, None)
            fetched = {name: torch.empty_like(each, device="cpu", pin_memory=True) for name, each in outputs.items()}
            for name, each in outputs.items():
                fetched[name].copy_(each, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            return cls(batch, fetched, arrived)

    def land(self) -> Iterator[_Piece]:
        """Hands the outputs to their pieces, and yields those that have all of them."""
        if self.arrived is not None:
            self.arrived.synchronize()
        arrays, row = {name: each.numpy() for name, each in self.outputs.items()}, 0
        for piece, start, end in self.batch:
            piece.outputs.append({name: array[row : row + end - start] for name, array in arrays.items()})
            row += end - start
            piece.missing -= end - start
            if not piece.missing:
                yield piece


def recorded(network: Network, size_px: int, photos: int) -> Network:
    """A network for batches of `BATCH` and fewer: recorded as one graph, and compiled for very many photos."""
    if photos < RECORDED_FROM:
        return network
    held = torch.zeros((BATCH, 3, size_px, size_px), dtype=torch.uint8, device="cuda")
    computed = torch.compile(network, dynamic=False) if photos >= COMPILED_FROM else network
    with torch.inference_mode():
        for each in (computed, network) if computed is not network else (network,):
            try:
                graph, outputs = _graph(each, held)
            except Exception:  # a network that decides on the CPU what comes next, or cannot be compiled here
                torch.cuda.synchronize()
                continue

            def replay(squares: Any, graph: Any = graph, outputs: dict[str, Any] = outputs) -> dict[str, Any]:
                held[: len(squares)].copy_(squares)
                graph.replay()
                return {name: each[: len(squares)].clone() for name, each in outputs.items()}

            return replay
    return network


def _graph(network: Network, held: Any) -> tuple[Any, dict[str, Any]]:
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            network(held)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        outputs = network(held)
    return graph, outputs
