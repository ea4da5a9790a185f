"""Several small trainings on one GPU: NVIDIA's Multi-Process Service lets them work at the same time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"


@contextmanager
def multi_process_service(folder: Path) -> Iterator[dict[str, str]]:
    """Starts the service for this user and ends it; yields what processes need in their environment to find it.

    Args:
        folder: Where it keeps its pipes and its log.

    Raises:
        RuntimeError: Where it is not installed.
    """
    control = shutil.which(CONTROL)
    if control is None:
        raise RuntimeError(f"{CONTROL} is not installed")
    environment = {f"CUDA_MPS_{what}_DIRECTORY": str(folder / what.lower()) for what in ("PIPE", "LOG")}
    for place in environment.values():
        Path(place).mkdir()
    subprocess.run([control, "-d"], check=True, env={**os.environ, **environment})
    try:
        yield environment
    finally:
        subprocess.run([control], input="quit\n", text=True, check=False, env={**os.environ, **environment})


@contextmanager
def gpu_shared_by_children(folder: Path) -> Iterator[None]:
    """Lets processes that are started meanwhile share the GPU by the service; without it they take turns."""
    if shutil.which(CONTROL) is None:
        yield
        return
    before = dict(os.environ)
    with multi_process_service(folder) as environment:
        os.environ.update(environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
