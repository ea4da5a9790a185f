"""Thresholds that keep a promise and scores as probabilities, for each species, with pooling where there are few.

- A species with too few recordings for any promise shares one threshold with the others of that kind; what is promised
  then holds of their detections together. A species with enough recordings is never pooled: where its own annotations
  do not show the promise, the answer is none.
- Scores become probabilities by Platt's curve of their log odds. The curve of a species is drawn to the one of all
  species as if that had been seen ten times.

`thresholds.csv` has the columns that `fieldmark identify --thresholds` reads (`name`, `at_least`); the other files are
for BirdNET-Analyzer and BirdNET-Pi, which know one threshold for all species and a list of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from fieldmark.metrics.sound_events import Matches, pooled, recall_at
from fieldmark.stats.logistic import logistic
from fieldmark.stats.promises import fewest_units, promised_threshold, units_needed
from fieldmark.storage.files import appearing_folder

SEEN: Final = 10  # how often the pooled curve counts as seen
FEWEST_ANSWERS: Final = 20  # below that there is no curve at all
CLIP: Final = 1e-6
CERTAIN: Final = 0.999  # a precision of 1 among those checked is no certainty


@dataclass(frozen=True)
class SpeciesPromise:
    """What can be promised of one species.

    Args:
        name, common_name: The species.
        at_least: The lowest threshold that keeps the promise; None where it cannot be shown.
        promise, risk: The least precision, and the chance that a threshold is given that does not have it.
        pooled: How many species share the threshold; 0 for its own.
        precision, recall: At the threshold, as counted among the annotations; of all answers where there is none.
        answers, units: How many answers and units show it.
        more: How many more recordings with an answer would show it with a chance of 80 %; None where none would, or
            none are needed.
        reason: Why there is no threshold.
    """

    name: str
    common_name: str
    at_least: float | None
    promise: float
    risk: float
    pooled: int
    precision: float
    recall: float
    answers: int
    units: int
    more: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Calibration:
    """A curve from scores to probabilities: 1 / (1 + exp(-(slope z + offset))), z the log odds of a score, or a logit.

    Without a name it is the curve of all species, for those that have none of their own.
    """

    name: str
    slope: float
    offset: float
    answers: int
    of_logits: bool


def promises(
    species: Mapping[str, Matches], *, common: Mapping[str, str], share: float, risk: float
) -> tuple[SpeciesPromise, ...]:
    """What can be promised of each species, by its own answers or by those of all that have few."""
    fewest = fewest_units(share, risk)
    few = [name for name, own in species.items() if len(np.unique(own.unit)) < fewest and len(own.score)]
    of_few = pooled([species[name] for name in few]) if len(few) > 1 else None
    rows = []
    for name, own in species.items():
        together = of_few is not None and name in few
        from_all = of_few if of_few is not None and together else own
        found = promised_threshold(from_all.score, from_all.right, from_all.unit, share=share, risk=risk)
        at_least = found.threshold
        kept = own.score >= (-np.inf if at_least is None else at_least)
        more, reason = (None, "") if at_least is not None else _why(from_all, found.units, share, risk, fewest)
        rows.append(
            SpeciesPromise(
                name,
                common.get(name, ""),
                at_least,
                share,
                risk,
                len(few) if together else 0,
                float(own.right[kept].mean()) if kept.any() else float("nan"),
                recall_at(own, -np.inf if at_least is None else at_least),
                found.answers,
                found.units,
                more,
                reason,
            )
        )
    return tuple(rows)


def _why(matches: Matches, units: int, share: float, risk: float, fewest: int) -> tuple[int | None, str]:
    """How many more recordings would show it, and the sentence that says why there is no threshold."""
    if not len(matches.score):
        return None, "no detection to check"
    best = _best_precision(matches)
    needed = units_needed(min(best, CERTAIN), share=share, risk=risk)
    if needed is None:
        return None, f"at most {100 * best:.0f} % are right at any threshold, below the promise"
    more = max(needed - units, 1)
    many = f"{units} recording{'s' if units != 1 else ''}"
    few = f"{many} with a detection, and {fewest} without a mistake are the fewest" if units < fewest else ""
    return more, few or f"{100 * best:.0f} % right at best, which {many} cannot show"


def _best_precision(matches: Matches) -> float:
    """The highest precision at a threshold that a third of the answers reach."""
    order = np.argsort(-matches.score, kind="stable")
    share = matches.right[order].cumsum() / np.arange(1, len(order) + 1)
    return float(share[max(0, len(order) // 3 - 1) :].max())


def calibrations(species: Mapping[str, Matches]) -> tuple[Calibration, ...]:
    """The curve of each species that has answers; none at all where there are too few, or all are right or wrong."""
    everything = pooled(list(species.values()))
    right = int(everything.right.sum())
    if len(everything.score) < FEWEST_ANSWERS or right in (0, len(everything.right)):
        return ()
    of_logits = bool(everything.score.min() < 0 or everything.score.max() > 1)
    inputs = score_logits(everything.score, of_logits=of_logits)
    slope, offset = _curve(inputs, everything.right.astype(np.float64))
    quantiles = np.quantile(inputs, (np.arange(SEEN) + 0.5) / SEEN)
    prior = 1 / (1 + np.exp(-(slope * quantiles + offset)))
    rows = [Calibration("", slope, offset, len(everything.score), of_logits)]
    for name, own in species.items():
        if not len(own.score):
            continue
        z = np.concatenate([score_logits(own.score, of_logits=of_logits), quantiles])
        target = np.concatenate([own.right.astype(np.float64), prior])
        rows.append(Calibration(name, *_curve(z, target), len(own.score), of_logits))
    return tuple(rows)


def score_logits(score: NDArray[np.float64], *, of_logits: bool = False) -> NDArray[np.float64]:
    """Scores from 0 to 1 as log odds; logits as they are."""
    return score if of_logits else np.asarray(logit(np.clip(score, CLIP, 1 - CLIP)))


def _curve(z: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, float]:
    spread = max(float(z.std()), 1e-9)
    center = float(z.mean())
    table = ((z - center) / spread)[:, None]
    weights, offset = logistic(table, target, ridge=0.1)
    slope = max(float(weights[0]) / spread, 0.0)  # a higher score is never less likely
    return slope, offset - slope * center if slope else float(logit(np.clip(target.mean(), CLIP, 1 - CLIP)))


def write_thresholds(
    out: Path, thresholds: Sequence[SpeciesPromise], curves: Sequence[Calibration] = (), *, overwrite: bool = False
) -> None:
    """Writes a folder of tables for the tools that take them.

    ```
    OUT/
      thresholds.csv              name,at_least,...: `fieldmark identify --thresholds`
      all.csv                     every species, those without a threshold with the reason
      calibration.csv             name,slope,offset: `fieldmark identify --calibration`
      birdnet_species_list.txt    species with a threshold: BirdNET-Analyzer --slist, include list of BirdNET-Pi
      birdnet_min_conf.txt        the highest of the thresholds: --min_conf, CONFIDENCE; with it all promises hold
    ```
    """
    given = [one for one in thresholds if one.at_least is not None]
    with appearing_folder(out, overwrite=overwrite) as folder:
        columns = (
            "name",
            "at_least",
            "common_name",
            "promise",
            "risk",
            "pooled",
            "precision",
            "recall",
            "answers",
            "units",
        )
        (folder / "thresholds.csv").write_text(_table(given, columns), encoding="utf-8")
        (folder / "all.csv").write_text(_table(thresholds, (*columns, "more", "reason")), encoding="utf-8")
        (folder / "calibration.csv").write_text(
            _table(curves, ("name", "slope", "offset", "answers", "of_logits")), encoding="utf-8"
        )
        lines = [f"{one.name}_{one.common_name or one.name}\n" for one in given]
        (folder / "birdnet_species_list.txt").write_text("".join(lines), encoding="utf-8")
        highest = max((one.at_least for one in given if one.at_least is not None), default=1.0)
        (folder / "birdnet_min_conf.txt").write_text(f"{highest:.4f}\n", encoding="utf-8")


def _table(rows: Sequence[object], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [getattr(row, name) for name in columns]
        writer.writerow(["" if value is None or value != value else value for value in values])
    return text.getvalue()
