"""A Ray cluster of two nodes on this machine, with one core each; the second says that it has a GPU too."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fieldmark.work.ray_cluster import ENVIRONMENT, connect

# A node is taken for lost after a second without an answer, not after half a minute.
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
STORE_BYTES = 80 << 20


class TwoNodes:
    """The cluster: the tests work on the first node and may kill the second."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.second = cluster, _second_node(cluster)

    @property
    def second_raylet(self) -> int:
        """The process of the second node that has started its workers."""
        return int(self.second.all_processes["raylet"][0].process.pid)

    def kill_second(self) -> None:
        """Kills the second node, with all that runs on it, as a machine that loses its power."""
        for process in (self.second_raylet, *children(self.second_raylet)):
            os.kill(process, signal.SIGKILL)
        self.forget_second()

    def forget_second(self) -> None:
        """Clears away what is left of the second node after it was killed."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def whole(self) -> TwoNodes:
        """The cluster with both its nodes."""
        if self.second is None:
            self.second = _second_node(self.cluster)
        return self


def _second_node(cluster: Any) -> Any:
    return _started(lambda: cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=STORE_BYTES))


def _started(start: Callable[[], Any]) -> Any:
    """Starts a node, if need be a second time: Ray gives it 30 s, and the machine may be full of other work."""
    try:
        return start()
    except Exception as error:
        if "timed out during startup" not in str(error):
            raise
        return start()


def children(process: int) -> list[int]:
    """The processes that a process has started; the workers of a node are those of its raylet."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@contextmanager
def two_node_cluster() -> Iterator[TwoNodes]:
    """Starts the cluster, and joins it."""
    os.environ.update(ENVIRONMENT)  # before Ray is imported
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False, "_system_config": QUICK}
    cluster = _started(lambda: Cluster(initialize_head=True, head_node_args=head))
    try:
        nodes = TwoNodes(cluster)
        leave = connect(cluster.address)
        try:
            yield nodes
        finally:
            leave()
    finally:
        cluster.shutdown()
