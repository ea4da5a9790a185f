"""Times of jobs that alternate, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def fastest(jobs: Mapping[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """The shortest time of each job in seconds, over alternating rounds."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
