"""Which engine does the work: this machine, or a cluster.

`working_on("ray", "auto")` holds for everything that is called inside it, so that a verb says it once and the functions
below need not hand it on. Work in blocks asks `cluster()` for the executor; None means this machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.settings import configure
from fieldmark.work.blocks import Executor
from fieldmark.work.ray_blocks import RayExecutor
from fieldmark.work.ray_cluster import connect

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)

_CLUSTER: ContextVar[Executor | None] = ContextVar("_CLUSTER", default=None)


def cluster() -> Executor | None:
    """The executor of the cluster that was chosen, or None where this machine does the work."""
    return _CLUSTER.get()


@contextmanager
def working_on(engine: str | None = None, address: str | None = None) -> Iterator[None]:
    """Has everything inside done by an engine.

    Args:
        engine: "local" for this machine, "ray" for a Ray cluster, or None for what was chosen around this call. With
            "ray:cpus=2,gpus=0.25" each block takes so many cores and GPUs.
        address: Of the cluster (see `ray_joining.connect`).

    Raises:
        MisuseError: When there is no such engine or cluster.
        MissingExtraError: When Ray is not installed.
    """
    name, _, shares = (engine or "").partition(":")
    if name not in ("", *ENGINES):
        raise MisuseError(f"There is no engine called {name!r}. {did_you_mean(name, ENGINES)}")
    if name != RAY and (address is not None or shares):
        raise MisuseError(f"{'An address' if address is not None else shares} goes with engine=ray.")
    if not name:
        yield
        return
    if name == LOCAL:
        with _chosen(None):
            yield
        return
    executor = _ray_executor(shares)
    leave = connect(address)
    try:
        # Ray prints what happens to its nodes; standard output is for answers.
        with _chosen(executor), redirect_stdout(sys.stderr):
            yield
    finally:
        leave()


@contextmanager
def _chosen(executor: Executor | None) -> Iterator[None]:
    token = _CLUSTER.set(executor)
    try:
        yield
    finally:
        _CLUSTER.reset(token)


def _ray_executor(shares: str) -> RayExecutor:
    """The executor for "cpus=2,gpus=0.25"."""
    pairs = [pair.partition("=") for pair in shares.split(",") if pair]
    if not all(equals for _, equals, _ in pairs):
        raise MisuseError(f"engine=ray:{shares}: expected settings such as ray:cpus=2,gpus=0.25.")
    executor: RayExecutor = configure({key.strip(): value.strip() for key, _, value in pairs}, RayExecutor)[0]
    return executor
