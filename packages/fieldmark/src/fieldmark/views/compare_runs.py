"""Runs compared, whatever they are: folders, scorecards, results of a fit, and answers that nobody has scored yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.runs.provenance import RUN_FILE, Run
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.scoring.comparison import Comparison, name_of
from fieldmark.scoring.comparison import compare as compare_cards
from fieldmark.tables.frames import is_table
from fieldmark.views.score_run import Table, score

# A run to be compared: a folder, a scorecard on disk or in memory, what `fit` returns, a run file or a table.
Compared = str | Path | Scorecard | Any


def compare(
    runs: Sequence[Compared] | Mapping[str, Compared],
    *,
    metric: str | None = None,
    benchmark: str | None = None,
    data: Path | str | None = None,
    truth: Table | None = None,
    classes: Table | None = None,
    media: Table | None = None,
    split: str | None = None,
) -> Comparison:
    """Compares two or more runs on the same units, against the same truth and classes.

    Args:
        runs: Folders of runs, scorecards (on disk or in memory), results of `fit`; also by name. Run files from
            elsewhere and tables of answers are scored first.
        metric: The metric; the primary one if not given.
        benchmark: The benchmark of unscored runs; that of the other runs if not given.
        data: The release that holds the truth for them; that of the other runs if not given. Or:
        truth: The truth as a table, with `classes` and `media` as in `score`.
        classes: See `truth`.
        media: See `truth`.
        split: The part they predict; that of the other runs, or test, if not given.

    Raises:
        InputError: When the runs answer different questions, or what the metric rests on is not the same for them.
        MisuseError: When the truth for unscored runs is missing.
    """
    if isinstance(runs, (str, Path, Scorecard)) or (is_table(runs) and not isinstance(runs, Mapping)):
        raise MisuseError("A comparison needs at least two runs, in a list or by name.")
    given = {str(name): one for name, one in runs.items()} if isinstance(runs, Mapping) else _named(runs)
    ready = {name: _scored(one) for name, one in given.items()}
    if any(card is None for card in ready.values()):
        question = _Question.of(given, [card for card in ready.values() if card is not None])
        how: dict[str, Any] = {"truth": truth, "classes": classes, "media": media}
        if truth is None:
            how |= {"data": data or question.data, "seed": question.seed}
        name, part = benchmark or question.benchmark, split or question.split
        if name is None or (truth is None and how["data"] is None):
            unscored = ", ".join(one for one, card in ready.items() if card is None)
            raise MisuseError(
                f"{unscored} has not been scored: say what it answers and where the truth lies (--benchmark NAME and "
                "--data ROOT or --truth FILE), or compare it with the folder of a run, which says both."
            )
        ready |= {one: score(name, given[one], split=part, **how) for one, card in ready.items() if card is None}
    return compare_cards({name: card for name, card in ready.items() if card is not None}, metric=metric)


@dataclass(frozen=True)
class _Question:
    """What the runs that are scored answer, and where their release lies; None where none of them says."""

    benchmark: str | None = None
    split: str = "test"
    data: str | None = None
    seed: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Compared], cards: Sequence[Scorecard]) -> _Question:
        places = [Path(one) for one in given.values() if isinstance(one, (str, Path))]
        folders = [place for place in places if (place / RUN_FILE).is_file()]
        folders += [one.folder for one in given.values() if hasattr(one, "scorecard") and hasattr(one, "folder")]
        run = Run.read(folders[0]) if folders else None
        card = cards[0] if cards else None
        if run is not None and run.split is not None:
            raise MisuseError(
                f"{folders[0]} was made with a split of its own: score the other runs with it first "
                "(fieldmark score ... --out FOLDER), then compare."
            )
        return cls(
            benchmark=card.versioned_benchmark if card else None,
            split=card.split if card else "test",
            data=run.data if run else None,
            seed=run.seed if run else None,
        )


def _named(runs: Sequence[Compared]) -> dict[str, Compared]:
    """Runs by their folder or file, or by the method that answered; by number where that is taken or unknown."""
    named: dict[str, Compared] = {}
    for number, one in enumerate(runs, 1):
        card = getattr(one, "scorecard", one)
        name, unique = name_of(card if isinstance(card, (str, Path, Scorecard)) else None, number)
        named[unique if name in named else name] = one
    return named


def _scored(one: Compared) -> Scorecard | None:
    """The scorecard of a run; None for answers that have none yet."""
    if isinstance(one, Scorecard):
        return one
    if isinstance(card := getattr(one, "scorecard", None), Scorecard):
        return card
    if isinstance(one, (str, Path)):
        path = Path(one)
        if path.suffix == ".json" or (path / SCORECARD_FILE).is_file() or not path.exists():
            return Scorecard.read(path if path.suffix == ".json" else path / SCORECARD_FILE if path.is_dir() else path)
        return None
    if is_table(one) or hasattr(one, "blocks"):
        return None
    raise MisuseError(
        f"A run to be compared is a folder, a scorecard, a run file or a table of answers, not {type(one).__name__}."
    )


__all__ = ["Comparison", "compare"]
