"""How well a detector works on somebody's own annotations: per species, with intervals, under stated rules.

`detections` compares two tables (`scoring.compared_sounds`) and returns a `DetectionCard`: precision, recall and
average precision of each species with intervals by recording (or site), how often scores are right (calibration), what
changes under other rules, and thresholds that keep a promise (`stats.promises`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.metrics.calibration import reliability
from fieldmark.metrics.sound_events import (
    Matches,
    average_precision,
    average_precision_without_each_unit,
    pooled,
    precision_at,
    precision_without_each_unit,
    recall_at,
    recall_without_each_unit,
)
from fieldmark.notebooks import DrawnPlot, bounds_text, draw_plot, html_note, html_page, html_table, text_table
from fieldmark.scoring.compared_sounds import Compared, compare_tables
from fieldmark.scoring.scorecard import Score
from fieldmark.scoring.sound_matching import OVERLAPS_S, WINDOWS_S, MatchedSounds, MatchRule, match_sounds
from fieldmark.scoring.sound_thresholds import Calibration, SpeciesPromise, calibrations, promises
from fieldmark.stats.intervals import pseudo_values
from fieldmark.stats.support import Support, supporting_interval
from fieldmark.tables.name_concepts import NameMatch


@dataclass(frozen=True)
class SpeciesScore:
    """One species by the rule of a card.

    Args:
        name: As the detector calls it.
        answers, positives, recordings: How many windows (events, ...) were called, how many are positive, and in how
            many independent units there is either.
        precision, recall, average_precision: With intervals over units; NaN where there is nothing to divide by.
        calibration: Mean score, share right and number of answers in ten bins of the score; empty for logits.
    """

    name: str
    answers: int
    positives: int
    recordings: int
    precision: Score
    recall: Score
    average_precision: Score
    calibration: tuple[tuple[float, float, int], ...] = ()


@dataclass(frozen=True)
class UnderRule:
    """All species together by another rule."""

    rule: str
    answers: int
    positives: int
    precision: float
    recall: float
    average_precision: float


@dataclass(frozen=True)
class DetectionCard:
    """What a table of detections is worth by a table of annotations.

    Args:
        rule: The rule in words.
        unit: What intervals are over: recording or site.
        units, items: How many of those, and how many windows, recordings or days were compared.
        seconds: How much was listened to.
        at_least: From which score on precision and recall are given.
        species: One score each, the most frequent first.
        together: All species as one.
        rules: What changes under other rules.
        thresholds: What can be promised of each species.
        calibrated: Curves from scores to probabilities.
        names: How the names of the annotations were found among those of the detector.
        remarks: What a person should know.
    """

    rule: str
    unit: str
    units: int
    items: int
    seconds: float
    at_least: float
    species: tuple[SpeciesScore, ...]
    together: SpeciesScore
    rules: tuple[UnderRule, ...]
    thresholds: tuple[SpeciesPromise, ...]
    calibrated: tuple[Calibration, ...]
    names: tuple[NameMatch, ...]
    remarks: tuple[str, ...]

    def to_frame(self) -> pl.DataFrame:
        """One row for each species, with the ends of its intervals and its threshold."""
        at_least = {one.name: one.at_least for one in self.thresholds}
        kinds = {"threshold": pl.Float64}
        for name in ("precision", "recall", "average_precision"):
            kinds |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Float64)
        rows = []
        for one in self.species:
            row: dict[str, Any] = {"name": one.name, "called": one.answers, "positive": one.positives}
            row["threshold"] = at_least.get(one.name)
            for name in ("precision", "recall", "average_precision"):
                score: Score = getattr(one, name)
                row |= {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}
            rows.append(row)
        return pl.DataFrame(rows, schema_overrides=kinds).with_columns(pl.col(pl.Float64).fill_nan(None))

    def __str__(self) -> str:
        return "\n".join([f"{self.units:,} {self.unit}s; {self.rule}", text_table(*self._listed()), *self.remarks])

    def __repr__(self) -> str:
        return f"<DetectionCard: {len(self.species):,} species in {self.units:,} {self.unit}s>\n{self}"

    def _repr_html_(self) -> str:
        notes = [html_note(one) for one in (self.rule, *self.remarks)]
        return html_page(f"{self.units:,} {self.unit}s", html_table(*self._listed()), *notes)

    def _listed(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows for people: a species each, shares in percent with their intervals."""
        columns = ["species", "called", "positive", "precision %", "recall %", "average precision %", "threshold"]
        at_least = {one.name: one.at_least for one in self.thresholds}
        rows = [
            [
                one.name,
                f"{one.answers:,}",
                f"{one.positives:,}",
                *(_bounds(score) for score in (one.precision, one.recall, one.average_precision)),
                "none" if (line := at_least.get(one.name)) is None else f"{line:.3f}",
            ]
            for one in self.species
        ]
        return columns, rows

    def plot(self, most: int = 6) -> DrawnPlot:
        """How often scores are right, for the species with most answers; a line stands where the promise begins."""
        shown = [one for one in self.species if one.calibration][:most]
        at_least = {one.name: one.at_least for one in self.thresholds}

        def paint(axes: Any) -> None:
            axes.plot((0, 1), (0, 1), color="#999999", linewidth=1, linestyle=":")
            for number, one in enumerate(shown):
                score, right, _ = zip(*one.calibration, strict=True)
                axes.plot(score, right, marker="o", color=f"C{number}", label=one.name)
                if (threshold := at_least.get(one.name)) is not None:
                    axes.axvline(threshold, color=f"C{number}", linewidth=1, linestyle="--")
            axes.set_xlabel("score; dashed: threshold that keeps the promise")
            axes.set_ylabel("share right")
            axes.set_ylim(0, 1.02)
            if shown:
                axes.legend(frameon=False)

        return draw_plot(paint, height=3.6)

    def to_json(self) -> dict[str, Any]:
        """The card as plain data; values that are not defined are null."""
        data: dict[str, Any] = _plain(asdict(self))
        data["names"] = [
            {"given": one.given, "found": one.concept and one.concept.scientific, "how": one.how, "note": one.note}
            for one in self.names
        ]
        return data


def _bounds(score: Score) -> str:
    value, bounds = bounds_text(score.value, score.low, score.high, percent=True)
    return f"{value} [{bounds}]" if bounds else value


def detections(
    found: str | Path,
    against: str | Path,
    *,
    listened: str | Path | None = None,
    recordings: str | Path | None = None,
    rule: MatchRule | None = None,
    by: Literal["recording", "site"] = "recording",
    at_least: float = -np.inf,
    label: str | None = None,
    complete: bool = False,
    promise: float = 0.9,
    risk: float = 0.05,
    names: Sequence[str | Path] = (),
) -> DetectionCard:
    """Scores the detections of any tool against annotations.

    Args:
        found: A table of detections, or a folder of them.
        against: A table of annotations, or a folder of them.
        listened: What was listened to: "recordings" for all recordings that the annotations are about, as a whole, or a
            table `recording[,start_s,end_s]`.
        recordings: A table `recording[,seconds,site,date]`, or a folder of the sound files, which tell how long they
            are.
        rule: When a detection is right; windows of three seconds where it is not given.
        by: What is independent: the recording, or its site.
        at_least: The score threshold for precision and recall; all detections if not given.
        label: The species, if annotations name none.
        complete: Whether annotators noted every species that they heard; else only species that they name are scored.
        promise: The least precision that thresholds promise.
        risk: The risk that the precision is lower than promised.
        names: Further sources of names (`tables.name_concepts`).

    Raises:
        InputError: When a table is at fault.
        MisuseError: When it is not said what was listened to.
    """
    rule = rule or MatchRule()
    both = compare_tables(
        Path(found),
        Path(against),
        listened,
        recordings,
        label=label,
        complete=complete,
        names=[Path(one) for one in names],
    )
    if rule.kind in ("window", "event") and both.detections["start_s"].is_null().any():
        raise MisuseError("These detections have no times, as of photos: compare whole files, --rule recording.")
    matched = match_sounds(both.detections, both.annotations, both.listened, rule, species=both.species, by=by)
    return _card(both, matched, rule, by, at_least, promise, risk)


def _card(
    both: Compared,
    matched: MatchedSounds,
    rule: MatchRule,
    by: Literal["recording", "site"],
    at_least: float,
    promise: float,
    risk: float,
) -> DetectionCard:
    units = len(matched.units)
    scores = [_scored(name, one, at_least, units) for name, one in matched.species.items()]
    scores.sort(key=lambda one: (-one.positives, -one.answers, one.name))
    remarks = list(both.remarks)
    if matched.left_out:
        remarks.append(f"{matched.left_out:,} answers are left out: an annotator could not name what sounds there.")
    for number, what in zip(matched.outside, ("detections", "annotations"), strict=True):
        if number:
            remarks.append(f"{number:,} {what} lie outside of what was listened to and count for nothing.")
    return DetectionCard(
        rule=rule.words,
        unit=by,
        units=units,
        items=matched.items,
        seconds=float((both.listened["end_s"] - both.listened["start_s"]).sum()),
        at_least=at_least,
        species=tuple(scores),
        together=_scored("all species", pooled(list(matched.species.values())), at_least, units),
        rules=_under_other_rules(both, rule, at_least),
        thresholds=promises(matched.species, common=both.common, share=promise, risk=risk),
        calibrated=calibrations(matched.species),
        names=both.names,
        remarks=tuple(remarks),
    )


def _scored(name: str, matches: Matches, at_least: float, units: int) -> SpeciesScore:
    own = np.union1d(matches.unit, matches.positive_unit)
    kept = matches.score >= at_least
    shares = bool(len(matches.score)) and matches.score.min() >= 0 and matches.score.max() <= 1
    bins = reliability(matches.score, matches.right) if shares else None
    return SpeciesScore(
        name,
        int(kept.sum()),
        len(matches.best),
        len(own),
        _score(
            precision_at(matches, at_least),
            precision_without_each_unit(matches, at_least, units=units),
            matches.unit[kept],
            units,
            proportion=True,
        ),
        _score(
            recall_at(matches, at_least),
            recall_without_each_unit(matches, at_least, units=units),
            matches.positive_unit,
            units,
            proportion=True,
        ),
        _score(
            average_precision(matches),
            average_precision_without_each_unit(matches, units=units),
            matches.positive_unit,
            units,
        ),
        () if bins is None else tuple(zip(*(column.tolist() for column in bins), strict=True)),
    )


def _score(
    value: float, without: NDArray[np.float64], rests_on: NDArray[np.int64], units: int, *, proportion: bool = False
) -> Score:
    """A value with its interval over the units that it rests on."""
    if not len(rests_on):
        return Score(value, None, None, "none", "there is nothing to count", 0)
    weight = Support.of_items(np.ones(len(rests_on)), rests_on.astype(np.int32)).weight
    weights = np.zeros(units)
    weights[: len(weight)] = weight
    kept = weights > 0
    support = Support(weights[kept], len(rests_on))
    made = supporting_interval(value, pseudo_values(value, without[kept]), support, proportion=proportion)
    return Score(value, made.low, made.high, made.method, made.reason, int(kept.sum()))


def _under_other_rules(both: Compared, rule: MatchRule, at_least: float) -> tuple[UnderRule, ...]:
    """All species together under windows and overlaps of other lengths, by events, and by recording."""
    if both.detections["start_s"].is_null().any():
        return ()
    rules = [("window", window, overlap) for window in WINDOWS_S for overlap in OVERLAPS_S]
    tried = [MatchRule("window", window, overlap_s=overlap) for _, window, overlap in rules]
    tried += [MatchRule("event", overlap_s=overlap) for overlap in OVERLAPS_S] + [MatchRule("recording")]
    rows = []
    for one in dict.fromkeys([replace(rule), *tried]):
        matched = match_sounds(both.detections, both.annotations, both.listened, one, species=both.species)
        together = pooled(list(matched.species.values()))
        areas = [average_precision(own) for own in matched.species.values() if len(own.best)]
        name = {
            "window": f"windows of {one.window_s:g} s, overlap {one.overlap_s:g} s",
            "event": f"events, overlap {one.overlap_s:g} s",
            "recording": "recordings",
            "site-day": "days at a site",
        }[one.kind]
        if one.kind == "window" and one.hop_s:
            name += f", hop {one.hop_s:g} s"
        rows.append(
            UnderRule(
                name,
                int((together.score >= at_least).sum()),
                len(together.best),
                precision_at(together, at_least),
                recall_at(together, at_least),
                float(np.mean(areas)) if areas else float("nan"),
            )
        )
    return tuple(rows)


def _plain(value: Any) -> Any:
    """Data without NaN and infinities, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
