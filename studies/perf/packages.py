"""The wheel: its size, and how long it takes to install into empty environments and to work there.

The core is installed alone, without a cache, and scores a run; `[vision,report]` is installed and runs the demo. The
latter takes what uv's cache holds, so that gigabytes of torch are not fetched each time. Versions are the pinned ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).parent / "uv")
# The core alone: what a scorer may ask of a machine.
MOST_CORE_MIB = 600


def run() -> dict[str, Any]:
    """Builds the wheel, installs it twice, and uses it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        size = round(wheel.stat().st_size / 2**20, 2)
        core = _installed(folder / "core", f"{wheel}", "--no-cache", "--link-mode", "copy")
        scored = _timed(_score(folder, core["python"]))
        whole = _installed(folder / "whole", f"fieldmark[vision,report] @ {wheel.as_uri()}")
        demo = _timed([whole["python"], "-m", "fieldmark", "demo", "--out", str(folder / "demo")], folder)
        written = (folder / "demo" / "report.html").stat().st_size
    return {
        "wheel_mib": size,
        "core_install_s": core["install_s"],
        "core_size_mib": core["size_mib"],
        "core_distributions": core["distributions"],
        "core_score_s": scored,
        "vision_report_install_s": whole["install_s"],
        "vision_report_size_mib": whole["size_mib"],
        "demo_s": demo,
        "demo_report_mib": round(written / 2**20, 2),
        "core_keeps_limit": core["size_mib"] <= MOST_CORE_MIB,
    }


def build_wheel(folder: Path, name: str = "fieldmark") -> Path:
    """Builds the wheel of a distribution into a folder, with the build backend that is installed here."""
    source = ROOT / "packages" / name
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob(f"{name.replace('-', '_')}-*.whl"))


def clean_environment() -> dict[str, str]:
    """The variables of this process without those that would let this checkout be found."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _installed(place: Path, requirement: str, *options: str) -> dict[str, Any]:
    """An environment of its own with the wheel and what it asks for."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
    python = str(place / "bin" / "python")
    install = [UV, "pip", "install", "--quiet", *options, "--python", python]
    seconds = _timed([*install, "--constraint", str(ROOT / "constraints.txt"), requirement])
    files = [path for path in (place / "lib").rglob("*") if path.is_file()]
    return {
        "python": python,
        "install_s": seconds,
        "size_mib": round(sum(path.stat().st_size for path in files) / 2**20),
        "distributions": len(list((place / "lib").rglob("*.dist-info"))),
    }


def _score(folder: Path, python: str) -> list[str]:
    (folder / "truth.csv").write_text("id,label\n" + "".join(f"{row},{row % 3}\n" for row in range(60)))
    (folder / "run.csv").write_text("id,predicted\n" + "".join(f"{row},{row % 2}\n" for row in range(60)))
    files = [str(folder / "run.csv"), "--truth", str(folder / "truth.csv")]
    return [python, "-m", "fieldmark", "score", "folder", *files]


def _timed(command: list[str], folder: Path | None = None) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=folder, env=clean_environment(), capture_output=True)
    return round(time.perf_counter() - start, 2)
