"""Times of jobs that alternate, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def fastest(
    jobs: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The shortest time of each job in seconds, over alternating rounds.

    Args:
        jobs: What is measured, by name.
        rounds: How often each is run.
        clock: `time.process_time` counts the seconds of all processors and leaves out what others do on the machine.
    """
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = clock()
            job()
            best[name] = min(best[name], clock() - start)
    return best
