"""The editions of one challenge side by side: what each asks, takes and ranks by, and what changed between years."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.tables.labels import Labels

EDITION = re.compile(r"(?P<challenge>.+)-(?P<year>\d{4})")


@dataclass(frozen=True)
class Edition:
    """One year of a challenge.

    Args:
        benchmark: Its name here.
        year: When it ran.
        asks: Whose answers are wanted, and of which kind.
        run: How a run file begins.
        ranks_by: The metric that decides.
        reported: The best result of that metric that was published, as far as declared.
        changed: What is not as in the edition before.
        provisional: What of it rests on nothing that organizers published.
        not_known: What else is not known.
    """

    benchmark: str
    year: int
    asks: str
    run: str
    ranks_by: str
    reported: str
    changed: tuple[str, ...]
    provisional: str
    not_known: tuple[str, ...]


def challenges() -> dict[str, list[str]]:
    """The benchmarks that are editions of a challenge, by its name, in the order of years."""
    found: dict[str, list[str]] = {}
    for name in BENCHMARKS:
        matched = EDITION.fullmatch(name)
        if matched:
            found.setdefault(matched["challenge"], []).append(name)
    return {challenge: sorted(names) for challenge, names in sorted(found.items())}


def editions(challenge: str) -> list[Edition]:
    """The editions of a challenge, oldest first.

    Raises:
        MisuseError: When there is no challenge of that name.
    """
    known = challenges()
    if challenge not in known:
        raise MisuseError(f"There is no challenge called {challenge!r}. {did_you_mean(challenge, known)}")
    return list(_in_order(known[challenge]))


def _in_order(names: list[str]) -> Iterator[Edition]:
    before: dict[str, str] = {}
    for name in names:
        benchmark = BENCHMARKS[name]
        now = {
            "question": _question(benchmark),
            "run": _header(benchmark),
            "metric": benchmark.task.deciding.title,
        }
        changed = tuple(what for what, said in now.items() if before and before[what] != said)
        yield Edition(
            benchmark=name,
            year=int(name[-4:]),
            asks=now["question"],
            run=now["run"],
            ranks_by=now["metric"],
            reported=_best(benchmark),
            changed=changed,
            provisional=benchmark.provisional,
            not_known=benchmark.not_known,
        )
        before = now


def _question(benchmark: Benchmark) -> str:
    answer = benchmark.task.answer
    return f"{answer.wants} for each {benchmark.task.items.noun}"


def _header(benchmark: Benchmark) -> str:
    """How a run begins: the first line of one that is drawn at random, its classes cut off."""
    task = benchmark.task
    items = ("recording/0", "recording/5") if task.items.noun == "segment" else ("1", "2")
    labels = Labels(("class1", "class2"))
    sample = task.answer.sample(items, labels, np.random.default_rng(0), dense=task.run.dense)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / task.run.file_name
        task.run.write(path, sample)
        line = path.read_text(encoding="utf-8").splitlines()[0]
    return line.replace("class1,class2", "<classes>").replace('"', "")


def _best(benchmark: Benchmark) -> str:
    metric = benchmark.task.deciding
    values = [one.values[metric.name] for one in benchmark.reported if metric.name in one.values]
    if not values:
        return ""
    best = max(values) if metric.higher_is_better else min(values)
    return f"{100 * best:.1f} %" if metric.is_share else f"{best:g}"
