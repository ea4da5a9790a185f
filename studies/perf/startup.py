"""How long commands take from the shell, beside an empty Python and beside `import torch`, in one run.

Each command runs in a process of its own, all of them in turn, several times; the quickest time counts, since a busy
machine can only be slower. With FIELDMARK_BEFORE=SRC the commands run once more with the sources in that folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fieldmark

ROUNDS = 4
Renew = Callable[[], None]
COMMAND = "import sys; from fieldmark.cli.main import main; main()"
# A process tells its own peak: what the kernel says of a child begins with the peak of its parent.
TELL_PEAK = (
    "import atexit, os, pathlib; atexit.register(lambda: pathlib.Path(os.environ['PEAK_FILE'])"
    ".write_text(pathlib.Path('/proc/self/status').read_text())); "
)
# What the commands must keep to on two cores with nothing else to do, in seconds and GiB.
LIMITS_S = {"list": 0.7, "score": 0.7, "compare": 0.7, "identify": 3.0}
LIMIT_GIB = 1.5


@dataclass
class Spent:
    """The least that a process took: seconds on the clock, seconds of processors, and memory."""

    wall_s: float = float("inf")
    cpu_s: float = float("inf")
    peak_gib: float = float("inf")

    def count(self, code: str, arguments: Sequence[str], environment: Mapping[str, str], renew: Renew) -> None:
        """Runs code in a process of its own, once for its times and once for its peak, with a new photo each."""
        renew()
        self._time([sys.executable, "-c", code, *arguments], environment)
        renew()
        with tempfile.NamedTemporaryFile("r") as told:
            command = [sys.executable, "-c", TELL_PEAK + code, *arguments]
            subprocess.run(command, capture_output=True, env={**environment, "PEAK_FILE": told.name}, check=True)
            peak_kib = next(int(line.split()[1]) for line in told if line.startswith("VmHWM"))
        self.peak_gib = min(self.peak_gib, peak_kib / 2**20)

    def _time(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{command} ended with {process.returncode}")
        self.wall_s = min(self.wall_s, wall)
        self.cpu_s = min(self.cpu_s, used.ru_utime + used.ru_stime)


def run() -> dict[str, Any]:
    """Seconds and ratios of the commands, and whether they keep to their limits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "FIELDMARK_CACHE": str(folder / "cache")}
        commands = _commands(folder, environment)
        plain = {"python -c pass": "pass", "import numpy": "import numpy", "import torch": "import torch"}
        spent = {name: Spent() for name in (*plain, *commands)}
        before = {name: Spent() for name in commands} if "FIELDMARK_BEFORE" in os.environ else {}
        earlier = {**environment, "PYTHONPATH": os.environ.get("FIELDMARK_BEFORE", "")}
        seeds = count(1)

        def renew() -> None:  # a photo that no store has seen
            _new_photo(folder, next(seeds))

        for _ in range(ROUNDS):
            for what, code in plain.items():
                spent[what].count(code, (), environment, renew)
            for what, arguments in commands.items():
                spent[what].count(COMMAND, arguments, environment, renew)
                if what in before:
                    before[what].count(COMMAND, arguments, earlier, renew)
    return _told(spent, before)


def _told(spent: Mapping[str, Spent], before: Mapping[str, Spent]) -> dict[str, Any]:
    least, torch = spent["python -c pass"].cpu_s, spent["import torch"].cpu_s
    rows: dict[str, Any] = {}
    for name, one in spent.items():
        rows[name] = {
            "wall_s": round(one.wall_s, 2),
            "cpu_s": round(one.cpu_s, 2),
            "peak_gib": round(one.peak_gib, 2),
            "cpu_over_empty_python": round(one.cpu_s / least, 1),
            "cpu_over_import_torch": round(one.cpu_s / torch, 2),
        }
        if name in before:
            rows[name] |= {"before_wall_s": round(before[name].wall_s, 2), "before_cpu_s": round(before[name].cpu_s, 2)}
        if name in LIMITS_S:
            rows[name] |= {"limit_s": LIMITS_S[name], "keeps_limit": one.wall_s < LIMITS_S[name]}
    return {"rounds": ROUNDS, "cores": os.cpu_count(), "limit_gib": LIMIT_GIB, "commands": rows}


def _commands(folder: Path, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """The commands by name, with the runs and the model that they read."""
    world = folder / "world"
    fieldmark.world("folder", world, size="tiny")
    _new_photo(folder, 0)
    data, runs = ["--data", str(world)], {name: str(folder / name) for name in ("linear", "centroid")}
    fit = ["fit", "folder", *data]
    made = [[*fit, "--method", name, "--out", out] for name, out in runs.items()]
    for arguments in [*made, ["truth", "folder", *data, "--out", str(folder / "truth")]]:
        subprocess.run([sys.executable, "-c", COMMAND, *arguments], env=environment, check=True, capture_output=True)
    tables = ["--truth", str(folder / "truth" / "truth.csv"), "--classes", str(folder / "truth" / "classes.csv")]
    return {
        "list": ["list"],
        "score": ["score", "folder", f"{runs['linear']}/run.csv", *tables],
        "compare": ["compare", *runs.values()],
        "identify": ["identify", str(folder / "new.jpg"), "--model", runs["linear"]],
        "fit with cached features": [*fit, "--method", "centroid", "--out", str(folder / "again"), "--overwrite"],
    }


def _new_photo(folder: Path, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 255, (900, 1200, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "new.jpg", quality=90)
