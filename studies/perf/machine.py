"""What a measurement was made on: the machine in words, the versions that matter, and the day."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# So many processes for each core make a machine busy.
BUSY = 2


def about_machine(packages: Sequence[str]) -> dict[str, Any]:
    """Cores, memory and processor of this machine, the versions of Python and of some packages, and the date.

    `load` is how many processes wanted to run at the end, on average over the last minute: times by the clock that were
    measured while it was well above the number of cores say more about the others than about us.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}"
    machine: dict[str, Any] = {"cores": cores, "memory_gib": round(memory_gib), "processor": _processor()}
    machine |= {"system": system, "load": round(os.getloadavg()[0], 1)}
    versions = {"python": platform.python_version(), **{name: _version(name) for name in packages}}
    return {"date": datetime.now(UTC).date().isoformat(), "machine": machine, "versions": versions}


def in_words(result: dict[str, Any]) -> str:
    """One line about where a result comes from.

    >>> in_words({"date": "2026-01-31", "machine": {"cores": 2, "memory_gib": 8}, "versions": {"python": "3.12.1"}})
    '2026-01-31, 2 cores, 8 GiB, python 3.12.1'
    """
    if "machine" not in result:
        return "measured before machine and date were written down"
    machine = result["machine"]
    words = [result["date"], f"{machine['cores']} cores", f"{machine['memory_gib']} GiB"]
    words += [str(name) for name in (result.get("device"), machine.get("processor")) if name]
    if machine.get("load", 0) > BUSY * machine["cores"]:
        words.append(f"on a busy machine (load {machine['load']:.0f})")
    return ", ".join([*words, *(f"{name} {number}" for name, number in result["versions"].items())])


def _processor() -> str:
    """The name of the processor as the kernel gives it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
