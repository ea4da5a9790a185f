"""Studies that run in parts: one lists photos here, one trains on a machine with an accelerator, one scores."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path


def run_part(about: str | None, parts: Mapping[str, Callable[..., None]]) -> None:
    """Runs the part that the command line names, with the paths behind its name.

    Args:
        about: What `--help` says: the docstring of the study.
        parts: The parts by name; each takes paths.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(parts))
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    parts[arguments.part](*arguments.paths)
