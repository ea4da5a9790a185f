"""Photos read by processes of their own, as squares or, for a GPU that decodes, as they are.

Threads of one process take turns in its interpreter: on sixteen cores they decode no more than three of them would
(docs/performance.md). Here each core has a process. A thread sends a block to one that is free, and finds the squares
in memory that both share, so that its own interpreter is needed a few times for a whole block.

A process is started as `python -m fieldmark.features.square_readers FD BYTES`: it takes pickled blocks from its
standard input and answers to its standard output until that ends. It never imports the program of the user.
"""

from __future__ import annotations

import mmap
import os
import pickle
import queue
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.features.crops import Box
from fieldmark.features.jpegs import fits_gpu
from fieldmark.features.key_index import KeyIndex, open_index
from fieldmark.features.photo_blocks import BlockReading, PhotoBlock, ReadPhoto
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.resampling import resampler_for_many

# From so many cores and photos on processes are worth their start, which takes two seconds.
MANY_CORES, MANY_PHOTOS = 6, 8192
# Room for the bytes of a photo, on average over a block; where they are more, some go through the pipe.
ENCODED_BYTES = 1 << 20
# Memory that a photo took is kept for the next one: given back and asked for again, it took the kernel 0.5 of 5.5 ms
# for a photo of 500 px.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


def worth_processes(cores: int, photos: int) -> bool:
    """Whether so many cores read so many photos sooner by processes; they need memory that has no name (Linux)."""
    return cores >= MANY_CORES and photos >= MANY_PHOTOS and hasattr(os, "memfd_create")


def can_be_sent(block: PhotoBlock) -> bool:
    """Whether another process can read a block: its reader must be found by name there."""
    try:
        pickle.dumps(block)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return getattr(block.read_medium, "__module__", "") != "__main__"


@dataclass(frozen=True)
class StoredKeys:
    """What a store holds on disk, looked at once in each process.

    Args:
        folder: The folder of the store.
    """

    folder: Path

    def __contains__(self, key: object) -> bool:
        return key in _index_of(self.folder)


@cache
def _index_of(folder: Path) -> KeyIndex:
    return open_index(folder)[1]


@dataclass(frozen=True)
class SquareDecoder:
    """Makes a square of a photo, or of a box of it.

    Args:
        how: Its size, and how it is cut.
    """

    how: Preprocessing

    def __call__(self, data: bytes, box: Box | None = None) -> Any:
        return decode_square(data, self.how, box)


@dataclass(frozen=True)
class EncodedOrSquare:
    """Leaves a photo that a GPU can decode as it is, one row of bytes, and makes a square of any other.

    Args:
        how: The size of the square, and how it is cut.
    """

    how: Preprocessing

    def __call__(self, data: bytes, box: Box | None = None) -> Any:
        if box is None and fits_gpu(data):
            return np.frombuffer(bytearray(data), np.uint8)  # to be written to, as torch asks of what it shares
        return decode_square(data, self.how, box)


class _ReadingProcess:
    """One process, and the memory that it shares with this one."""

    def __init__(self, block_bytes: int) -> None:
        shared = os.memfd_create("fieldmark-squares")
        os.ftruncate(shared, block_bytes)
        self._memory = mmap.mmap(shared, block_bytes)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fieldmark.features.square_readers", str(shared), str(block_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(shared,),
            env={**os.environ, **KEPT_MEMORY, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        os.close(shared)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._to = Connection(os.dup(self.process.stdin.fileno()), readable=False)
        self._from = Connection(os.dup(self.process.stdout.fileno()), writable=False)
        self.process.stdin.close()
        self.process.stdout.close()
        self._started = False

    def wait(self) -> None:
        """Until the process has imported what it needs.

        Raises:
            EOFError, OSError: When it has ended.
        """
        if not self._started:
            self._from.recv()
            self._started = True

    def ask(self, reading: BlockReading, block: PhotoBlock) -> list[ReadPhoto]:
        """What the process makes of a block.

        Raises:
            EOFError, OSError: When the process has ended.
            Exception: What reading a photo raised there.
        """
        self._to.send((reading, block))
        self.wait()
        answer = self._from.recv()
        if isinstance(answer, BaseException):
            raise answer
        # A copy: the process fills this memory with its next block while the network looks at this one.
        ends = [photo.pixels[1] for photo in answer if isinstance(photo.pixels, tuple)]
        copied = np.frombuffer(self._memory, np.uint8, max(ends, default=0)).copy()
        return [
            photo._replace(pixels=copied[slice(*photo.pixels[:2])].reshape(photo.pixels[2]))
            if isinstance(photo.pixels, tuple)
            else photo
            for photo in answer
        ]

    def end(self) -> None:
        """Ends the process, which holds nothing that could be lost."""
        self.process.kill()
        self.process.wait()
        self._to.close()
        self._from.close()
        self._memory.close()


class SquareReaders:
    """Processes that read blocks of photos, one each; to be called from as many threads.

    Args:
        how: How a photo becomes a square.
        stored: The folder of the store: what it holds is not decoded.
        processes: How many there are.
        block_photos: How many photos a block has at most.
    """

    def __init__(self, how: Preprocessing, stored: Path, processes: int, block_photos: int) -> None:
        self._reading = BlockReading(SquareDecoder(how), StoredKeys(stored))
        self._encoded = BlockReading(EncodedOrSquare(how), StoredKeys(stored))
        memory = block_photos * max(how.size_px**2 * 3, ENCODED_BYTES)
        self._all = [_ReadingProcess(memory) for _ in range(processes)]
        # None stands for one that was killed.
        self._free: queue.SimpleQueue[_ReadingProcess | None] = queue.SimpleQueue()
        for reader in self._all:
            self._free.put(reader)
        resampler_for_many.compile_now()  # the processes find what was compiled, and only one says why nothing was

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [reader.process.pid for reader in self._all]

    def wait(self) -> None:
        """Until a process can read."""
        reader = self._free.get()
        try:
            if reader is not None:
                reader.wait()
        except (EOFError, OSError):
            reader = None
        finally:
            self._free.put(reader)

    def __call__(self, block: PhotoBlock) -> list[ReadPhoto]:
        """The photos of a block, read by a process that is free, or here in place of one that was killed."""
        return self._read(self._reading, block)

    def encoded(self, block: PhotoBlock) -> list[ReadPhoto]:
        """The same, with photos that a GPU can decode as they are."""
        return self._read(self._encoded, block)

    def _read(self, reading: BlockReading, block: PhotoBlock) -> list[ReadPhoto]:
        reader = self._free.get()
        try:
            if reader is not None:
                return reader.ask(reading, block)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            reader = None
        finally:
            self._free.put(reader)
        return reading(block)

    def __enter__(self) -> SquareReaders:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._all:
            reader.end()


def serve(shared: int, block_bytes: int) -> None:
    """Answers one block after the other, until nothing more comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides when this one ends
    memory = np.frombuffer(mmap.mmap(shared, block_bytes), np.uint8)
    blocks, answers = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what a library prints is no answer
    answers.send(None)  # it has started
    while True:
        try:
            reading, block = blocks.recv()
        except EOFError:
            return
        try:
            answers.send(_without_squares(reading(block), memory))
        except BrokenPipeError:
            return
        except Exception as error:
            answers.send(error)
        resampler_for_many.compile_now(tell=False)  # after the first answer, which somebody waits for


def _without_squares(photos: list[ReadPhoto], memory: Any) -> list[ReadPhoto]:
    """Puts the pixels into memory, one after the other, and says in their place where; what has no room stays."""
    start, marked = 0, []
    for photo in photos:
        if photo.pixels is not None and start + photo.pixels.size <= len(memory):
            end = start + photo.pixels.size
            memory[start:end] = photo.pixels.reshape(-1)
            photo = photo._replace(pixels=(start, end, photo.pixels.shape))
            start = end
        marked.append(photo)
    return marked


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
