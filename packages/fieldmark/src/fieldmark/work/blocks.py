"""Batch work over many blocks, by one call whatever does the work.

`map_blocks(fn, blocks, executor)` is the only way in which Fieldmark spreads work over cores. The executors below use
this machine; `ray_blocks.RayExecutor` has the same `map` for a cluster.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor as PoolExecutor
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Literal, Protocol, TypeVar

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")


class Executor(Protocol):
    """Whatever can apply a function to blocks and hand the results back in the order of the blocks."""

    def map(self, fn: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]: ...


@dataclass(frozen=True)
class LocalExecutor:
    """Works on this machine, one block after the other or in a pool.

    Args:
        workers: How many blocks are worked on at once; 1 works in the calling thread.
        kind: "process" for work in Python, "thread" for work that releases the interpreter (decoding, reading).
    """

    workers: int = 1
    kind: Literal["process", "thread"] = "process"

    def map(self, fn: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        if self.workers <= 1:
            yield from map(fn, blocks)
            return
        with self._pool() as pool:
            waiting: deque[Future[R]] = deque()
            try:
                # Only a few blocks are in flight, so that results which nobody has read yet do not fill the memory.
                for block in blocks:
                    waiting.append(pool.submit(fn, block))
                    if len(waiting) > 2 * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _pool(self) -> PoolExecutor:
        if self.kind == "thread":
            return ThreadPoolExecutor(self.workers)
        # A fresh interpreter per worker: a forked one inherits locks of threads that do not exist in it.
        return ProcessPoolExecutor(self.workers, mp_context=get_context("forkserver"))


def all_cores(kind: Literal["process", "thread"] = "process") -> LocalExecutor:
    """Returns an executor that uses every core this process may run on."""
    return LocalExecutor(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, kind
    )


def map_blocks(fn: Callable[[B], R], blocks: Iterable[B], executor: Executor | None = None) -> Iterator[R]:
    """Applies `fn` to every block and yields the results in the order of the blocks.

    >>> list(map_blocks(sum, [[1, 2], [3]]))
    [3, 3]
    """
    return (executor or LocalExecutor()).map(fn, blocks)


def blocks_of(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cuts a sequence into blocks of at most `size`.

    >>> list(blocks_of([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    return (items[start : start + size] for start in range(0, len(items), size))


def reader_of(read: Callable[[str], R], media_ids: Sequence[str]) -> Callable[[str], R]:
    """What reads some media and no others, where the reader, or what it is a method of, can be cut down (`only`).

    A block then carries the paths of its own media and not those of a million others.
    """
    itself = getattr(read, "only", None)
    only = itself or getattr(getattr(read, "__self__", None), "only", None)
    if only is None:
        return read
    own: Callable[[str], R] = only(media_ids) if itself else getattr(only(media_ids), read.__name__)
    return own
