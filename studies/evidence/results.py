"""Where results go, and real data come from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldmark.storage.files import write_json
from fieldmark.version import __version__

if TYPE_CHECKING:  # a machine with a GPU may have nothing else
    from fieldmark.scoring import Scorecard

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies" / "results"


def write_result(name: str, result: dict[str, Any], command: str = "") -> Path:
    """Writes one result with the command and the code that made it; the command follows from the name as a rule."""
    package = f"studies.{'perf' if name.startswith('perf-') else 'evidence'}"
    command = command or f"python -m {package} {name.removeprefix('perf-')}"
    path = RESULTS / f"{name}.json"
    write_json(path, {"command": command, "code_version": __version__, **result})
    return path.relative_to(ROOT)


def read_result(name: str) -> dict[str, Any] | None:
    """Reads one result, None where there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def real_data(name: str) -> Path | None:
    """The folder of a real data set, None (with a word about it) where it is not given."""
    root = os.environ.get("FIELDMARK_REAL_DATA")
    if root and Path(root, name).is_dir():
        return Path(root, name)
    print(f"skipped: set FIELDMARK_REAL_DATA to a folder that holds {name}")
    return None


def rounded(card: Scorecard) -> dict[str, list[float | None]]:
    """Value, low and high of each metric, to four digits."""
    return {
        name: [None if number is None else round(number, 4) for number in (score.value, score.low, score.high)]
        for name, score in card.metrics.items()
    }
