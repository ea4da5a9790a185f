"""Blocks on the machines of a Ray cluster: the second executor of `map_blocks`.

What a block does is one function, whoever runs it. It is put into the cluster once, and each worker process unpacks it
once and keeps it, so that a network is loaded once in each worker and not with each block. Results come back to the
process that asked, which alone writes stores and files; so an interrupted job goes on as it does on one machine.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import threading
import traceback
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.foundation.registry import require
from fieldmark.version import __version__

B = TypeVar("B")
R = TypeVar("R")

# A block that was lost with its node is worked on again so often.
RETRIES = 3
# How many blocks wait or are worked on, for each that the cluster can work on at once.
AHEAD = 2
# After so many blocks the cluster is asked again how many it can take: nodes come and go.
LOOK_AGAIN = 32
# How long a head node may take to answer at all, in seconds.
ANSWER_S = 20.0
# How many functions a worker keeps; each may hold a network.
KEPT_FUNCTIONS = 2
# How Ray is told to leave alone what is not its own.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about the work leaves the cluster
    "RAY_TQDM_PATCH_PRINT": "0",  # Python's print stays what it is
}


class ClusterError(FieldmarkError):
    """The cluster could not do the work: workers are lost, or are not what they should be."""


@dataclass(frozen=True)
class RayExecutor:
    """Works on blocks in a Ray cluster that `connected` has joined.

    Args:
        cpus: How many cores each block takes.
        gpus: How many GPUs each block takes; a share (0.25) lets blocks work on one together.
        retries: How often a block is worked on again after its node or its worker was lost.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    retries: int = RETRIES

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "retries"):
            if getattr(self, name) < 0:
                raise MisuseError(f"{name}={getattr(self, name)}: expected no less than 0.")
        if not self.cpus and not self.gpus:
            raise MisuseError("A block takes at least a share of a core or of a GPU: cpus and gpus are both 0.")

    def map(self, fn: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        ray: Any = require("ray", "The engine ray")
        job = _Job(uuid.uuid4().hex, __version__, str(Path.cwd()), bool(self.gpus))
        function = [_put(ray, fn)]  # in a list, so that workers are handed the reference and unpack it once
        # A block's own exception is a result, so that Ray repeats only what was lost with a worker or a node.
        remote = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=self.retries)(_work)
        waiting: deque[tuple[int, Any]] = deque()
        most = 0
        try:
            for number, block in enumerate(blocks):
                if number % LOOK_AGAIN == 0:
                    most = AHEAD * self._at_once(ray)
                waiting.append((number, remote.remote(job, function, block)))
                if len(waiting) > most:
                    yield _result(ray, *waiting.popleft())
            while waiting:
                yield _result(ray, *waiting.popleft())
        finally:
            for _, reference in waiting:
                with suppress(Exception):  # nothing of it is wanted any more, whatever became of it
                    ray.cancel(reference, force=True)

    def _at_once(self, ray: Any) -> int:
        """How many blocks the cluster can work on at once.

        Raises:
            ClusterError: When no node can take a single one.
        """
        each = {"CPU": self.cpus, "GPU": self.gpus}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(min(int(node.get(kind, 0) // one) for kind, one in each.items() if one) for node in nodes)
        if room == 0:
            asked = " and ".join(f"{one:g} {kind}" for kind, one in each.items() if one)
            raise ClusterError(f"No node of the Ray cluster has {asked} for a block: ask for less, or add nodes.")
        return room


class _Job(NamedTuple):
    """What a worker must know about a call of `map`: its function, who asks from which folder, if it has GPUs."""

    token: str
    version: str
    folder: str
    on_gpus: bool


class _Failed(NamedTuple):
    """A block's own exception, and where it was raised."""

    error: BaseException
    trace: str


_FUNCTIONS: OrderedDict[str, Callable[[Any], Any]] = OrderedDict()


def _work(job: _Job, function: list[Any], block: Any) -> Any:
    """One block, in a worker process."""
    try:
        return _function(job, function[0])(block)
    except Exception as error:
        return _Failed(_portable(error), traceback.format_exc())


def _function(job: _Job, reference: Any) -> Callable[[Any], Any]:
    """The function of a job, unpacked at its first block in this process."""
    if job.token not in _FUNCTIONS:
        ray: Any = require("ray", "The engine ray")
        if job.version != __version__:
            host = ray.util.get_node_ip_address()
            asks = f"this is version {job.version}, and Ray's node {host} has {__version__}"
            raise ClusterError(f"Every node needs the same version of fieldmark: {asks}.")
        if Path(job.folder).is_dir():
            os.chdir(job.folder)  # relative paths mean the same as where the work was asked for
        if not job.on_gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # networks would crowd a GPU that nobody has asked for
        _FUNCTIONS[job.token] = ray.get(reference)
        while len(_FUNCTIONS) > KEPT_FUNCTIONS:
            _FUNCTIONS.popitem(last=False)
    return _FUNCTIONS[job.token]


def _portable(error: Exception) -> Exception:
    """The exception, or its words where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _put(ray: Any, fn: Callable[[Any], Any]) -> Any:
    try:
        return ray.put(fn)
    except (TypeError, pickle.PicklingError) as error:
        why = str(error).strip().splitlines()[0]
        raise MisuseError(f"This work cannot be sent to other machines ({why}): leave out engine=ray.") from error


def _result(ray: Any, number: int, reference: Any) -> Any:
    """The result of a block; its own exception is raised as it would be here."""
    try:
        done = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # before our own code was reached
        if isinstance(error.cause, ModuleNotFoundError):
            raise ClusterError(
                f"A worker of the Ray cluster cannot import {error.cause.name}: install the same version of fieldmark, "
                "with the same extras, on every node."
            ) from error
        raise ClusterError(f"Block {number + 1} could not be worked on: {error.cause}") from error
    except ray.exceptions.RayError as error:
        why = str(error).strip().splitlines()[0]
        raise ClusterError(
            f"Block {number + 1} was lost with its worker or node, and so was every further try ({why}). What was done "
            "before is kept: the same command goes on."
        ) from error
    if isinstance(done, _Failed):
        if not isinstance(done.error, FieldmarkError):  # a bug of ours: where it was raised helps to find it
            done.error.add_note(f"In a worker of Ray:\n{done.trace}")
        raise done.error
    return done


def connect(address: str | None = None) -> Callable[[], None]:
    """Joins a Ray cluster, or starts one on this machine; returns the function that leaves it again.

    Args:
        address: Of the head node; "auto" for the one that `ray start` has started on this machine; None for
            RAY_ADDRESS, or else a cluster of this machine alone that ends with the work.

    Raises:
        MissingExtraError: When Ray is not installed.
        MisuseError: When there is no cluster at the address.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray: Any = require("ray", "The engine ray")
    if ray.is_initialized():
        return lambda: None
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    started = {"include_dashboard": False} if where == "local" else {}
    on_end = signal.getsignal(signal.SIGTERM)
    try:
        _check_reachable(where)
        ray.init(address=where, logging_level=logging.ERROR, log_to_driver=False, **started)
    except (OSError, ValueError, RuntimeError) as error:
        hint = "Start one with `ray start --head`, or leave out the address to use this machine alone."
        raise MisuseError(f"There is no Ray cluster at address={where} that can be joined. {hint}") from error

    def leave() -> None:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_end)  # Ray has put its own in place

    return leave


def _check_reachable(address: str) -> None:
    """Raises OSError where nobody answers at HOST:PORT; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "://" not in address:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
