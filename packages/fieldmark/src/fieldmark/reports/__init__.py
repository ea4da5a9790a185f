"""Reports: what a run did, as one page that people want to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from fieldmark.registry import require


def report(runs: str | Path | Sequence[str | Path], out: str | Path, *, data: str | Path | None = None) -> Path:
    """Writes one self-contained HTML page about one or more runs of the same benchmark.

    Args:
        runs: Folders written by `fieldmark fit`, or their addresses. All are in the table of scores; the other sections
            are about the first.
        out: The page to write; at an address it is sent when it is complete.
        data: The release, if it has moved.

    Returns:
        The path of the page.

    Raises:
        InputError: When a folder is not that of a run, when the runs answer different questions, or when the release
            is not where the first run found it.
        MissingExtraError: When the extra `report` is not installed.
    """
    # Both before anything is read: sections import late, and a page that fails halfway has wasted the wait.
    for module in ("jinja2", "matplotlib"):
        require(module, "A report")
    page = cast(Any, require("fieldmark.reports.pages.page", "A report"))
    return cast(Path, page.write_page([runs] if isinstance(runs, (str, Path)) else runs, out, data=data))


__all__ = ["report"]
