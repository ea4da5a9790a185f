"""Blocks on the machines of a Ray cluster: the second executor of `map_blocks`.

What a block does is one function, whoever runs it. It is put into the cluster once, and each worker process unpacks it
once and keeps it, so that a network is loaded once in each worker and not with each block. Results come back to the
process that asked, which alone writes stores and files; so an interrupted job goes on as it does on one machine.
"""

from __future__ import annotations

import os
import pickle
import time
import traceback
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.registry import require
from fieldmark.settings import Settings, setting
from fieldmark.version import __version__
from fieldmark.work.ray_cluster import answers

B = TypeVar("B")
R = TypeVar("R")

# A block that was lost with its node is worked on again so often.
RETRIES = 3
# How many blocks wait or are worked on, for each that the cluster can work on at once.
AHEAD = 2
# After so many blocks the cluster is asked again how many it can take: nodes come and go.
LOOK_AGAIN = 32
# How long a result is waited for before the cluster is looked at, in seconds.
LOOK_S = 5.0
# How long a cluster whose head is silent, or in which no node is left for blocks, may take to come back. After a minute
# without its head Ray itself would end the process without a word to anybody.
GONE_S = 30.0
# How many functions a worker keeps; each may hold a network.
KEPT_FUNCTIONS = 2

KEPT = "Finished work is kept: run the same command again to continue."


class ClusterError(FieldmarkError):
    """The cluster could not do the work: workers are lost, or are not what they should be."""


@dataclass(frozen=True)
class RayExecutor(Settings):
    """Works on blocks in a Ray cluster that `ray_joining.connect` has joined, on all its nodes alike.

    Args:
        cpus: How many cores each block takes.
        gpus: How many GPUs each block takes; a share (0.25) lets blocks work on one together.
        retries: How often a block is worked on again after its node or its worker was lost.
    """

    cpus: float = setting(1.0, least=0)
    gpus: float = setting(0.0, least=0)
    retries: int = setting(RETRIES, least=0)

    def check_settings(self) -> None:
        if not self.cpus and not self.gpus:
            raise MisuseError("A block takes at least a share of a core or of a GPU: cpus and gpus are both 0.")

    def map(self, fn: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        ray: Any = require("ray", "The engine ray")
        job = _Job(uuid.uuid4().hex, __version__, str(Path.cwd()), bool(self.gpus))
        function = [_put(ray, fn)]  # in a list, so that workers are handed the reference and unpack it once
        remote = ray.remote(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=self.retries,  # of what was lost with a worker or a node; a block's own exception is a result
            scheduling_strategy="SPREAD",  # by default Ray fills half of a node before it takes the next
        )(_work)
        waiting: deque[tuple[int, Any]] = deque()
        most = 0
        try:
            for number, block in enumerate(blocks):
                if number % LOOK_AGAIN == 0:
                    most = AHEAD * self._at_once(ray) or most
                    if most == 0:
                        raise ClusterError(
                            f"No node of the Ray cluster has {self._share} for a block: ask for less, or add nodes."
                        )
                waiting.append((number, remote.remote(job, function, block)))
                while len(waiting) >= most:  # more than one where nodes were lost
                    yield self._result(ray, *waiting.popleft())
            while waiting:
                yield self._result(ray, *waiting.popleft())
        finally:
            if ray.is_initialized():  # else there is nothing to cancel, and Ray would start another cluster for it
                for _, reference in waiting:
                    with suppress(Exception):  # nothing of it is wanted any more, whatever became of it
                        ray.cancel(reference, force=True)

    @property
    def _share(self) -> str:
        """What a block takes, in words."""
        return " and ".join(f"{one:g} {kind}" for kind, one in self._each.items())

    @property
    def _each(self) -> dict[str, float]:
        return {kind: one for kind, one in (("CPU", self.cpus), ("GPU", self.gpus)) if one}

    def _at_once(self, ray: Any) -> int:
        """How many blocks the cluster can work on at once: none where its head does not answer."""
        if not answers(ray.get_runtime_context().gcs_address):  # Ray itself would wait for it
            return 0
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return sum(min(int(node.get(kind, 0) // one) for kind, one in self._each.items()) for node in nodes)

    def _result(self, ray: Any, number: int, reference: Any) -> Any:
        """The result of a block; its own exception is raised as it would be here.

        Raises:
            ClusterError: When every try of the block was lost, or nobody is left who could work on it.
        """
        try:
            self._await(ray, reference)
            done = ray.get(reference)
        except ray.exceptions.RayTaskError as error:  # before our own code was reached
            if isinstance(error.cause, ModuleNotFoundError):
                raise ClusterError(
                    f"A worker of the Ray cluster cannot import {error.cause.name}: install the same version of "
                    "fieldmark, with the same extras, on every node."
                ) from error
            raise ClusterError(f"Block {number + 1} could not be worked on: {error.cause}") from error
        except ray.exceptions.RayError as error:
            why = str(error).strip().splitlines()[0]
            raise ClusterError(
                f"Block {number + 1} was lost with its worker or node, and so was every further try ({why}). {KEPT}"
            ) from error
        if isinstance(done, _Failed):
            if not isinstance(done.error, FieldmarkError):  # a bug of ours: where it was raised helps to find it
                done.error.add_note(f"In a worker of Ray:\n{done.trace}")
            raise done.error
        return done

    def _await(self, ray: Any, reference: Any) -> None:
        """Returns when a block has come to an end, good or bad; Ray alone would wait for nodes for ever."""
        last = None
        while not ray.wait([reference], timeout=LOOK_S)[0]:
            if self._at_once(ray):
                last = None
                continue
            last = last or time.monotonic() + GONE_S
            if time.monotonic() >= last:
                head = ray.get_runtime_context().gcs_address
                gone = f"no node with {self._share} is left" if answers(head) else f"its head {head} does not answer"
                raise ClusterError(f"The Ray cluster is gone: {gone} (for {GONE_S:g} s). {KEPT}")


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
