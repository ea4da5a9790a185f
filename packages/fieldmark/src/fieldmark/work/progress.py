"""Progress of long work: a bar on a terminal or in a notebook, plain lines elsewhere, always on standard error."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Tick = Callable[[int], None]

# Without a terminal a line is written at most this often, so that logs stay readable.
SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_BARS = 0.2
_HIDDEN: ContextVar[bool] = ContextVar("hidden", default=False)


@contextmanager
def no_progress() -> Iterator[None]:
    """Hides the progress of steps that are part of a longer one."""
    before = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(before)


@contextmanager
def progress(what: str, total: int) -> Iterator[Tick]:
    """Shows how far a long step has come.

    Args:
        what: The step, as a person would say it ("reading photos").
        total: How many units of work there are; nothing is shown for 0.

    Yields:
        A function to call with the number of units done since the last call.
    """
    if total <= 0 or _HIDDEN.get():
        yield lambda done: None
    elif in_notebook():
        yield _notebook_bar(what, total)
    elif sys.stderr.isatty():
        with _bar(what, total) as tick:
            yield tick
    else:
        yield _plain_lines(what, total)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Tick]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook, where something better than lines can be shown."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def _notebook_bar(what: str, total: int) -> Tick:
    """A bar that is drawn once and changed in place."""
    shell: Any = sys.modules["IPython"]
    make, display = shell.display.HTML, shell.display.display

    def shown(done: int) -> Any:
        share = f"<progress value='{done}' max='{total}' style='width:16em;vertical-align:middle'></progress>"
        return make(f"<div>{share} {html.escape(what)} {done:,} of {total:,}</div>")

    seen, last = 0, time.monotonic()
    handle = display(shown(0), display_id=True)

    def tick(done: int) -> None:
        nonlocal seen, last
        seen += done
        now = time.monotonic()
        if seen >= total or now - last >= SECONDS_BETWEEN_BARS:
            handle.update(shown(seen))
            last = now

    return tick


def _plain_lines(what: str, total: int) -> Tick:
    start = last = time.monotonic()
    seen = 0

    def tick(done: int) -> None:
        nonlocal seen, last
        if done == 0 and seen >= total:
            return  # the end has been told
        seen += done
        now = time.monotonic()
        finished = seen >= total
        if finished or now - last >= SECONDS_BETWEEN_LINES:
            left = f", about {(now - start) / seen * (total - seen):.0f} s left" if seen and not finished else ""
            print(f"{what}: {seen}/{total}{left}", file=sys.stderr, flush=True)
            last = now

    return tick


def say(line: str) -> None:
    """A line about long work, for the person who waits for it."""
    print(line, file=sys.stderr, flush=True)
