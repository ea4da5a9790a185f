"""How well a detector works on somebody's own annotations: per species, with intervals, under stated rules.

`detections` reads both tables, joins their names, and returns a `DetectionCard`: precision, recall and average
precision of each species with intervals by recording (or site), how often scores are right (calibration), what changes
under other rules, and thresholds that keep a promise (`stats.promises`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.errors import InputError, MisuseError
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
from fieldmark.notebooks import DrawnPlot, draw_plot
from fieldmark.scoring.scorecard import Score
from fieldmark.scoring.sound_matching import LISTENED, OVERLAPS_S, WINDOWS_S, MatchedSounds, MatchRule, match_sounds
from fieldmark.scoring.sound_thresholds import Calibration, SpeciesPromise, calibrations, promises
from fieldmark.stats.intervals import pseudo_values
from fieldmark.stats.support import Support, supporting_interval
from fieldmark.storage.files import open_input
from fieldmark.tables.media import RECORDING
from fieldmark.tables.name_concepts import NameConcepts, NameMatch, load_concepts
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from fieldmark.tables.sound_tables import SoundTable, read_sounds, recording_name

# How recorders name files: SITE_20240501_053000.
DATED: Final = re.compile(r"^(?:(?P<site>.+?)[_-])?(?P<date>(?:19|20)\d{6})[_T-]?\d{4,6}")
WHOLE: Final = "recordings"
ASK: Final = (
    "Say what was listened to: --listened recordings where every recording of the annotations was heard from "
    "beginning to end, or --listened TABLE with recording[,start_s,end_s]. Windows that nobody heard are not silence."
)


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


@dataclass(frozen=True)
class Compared:
    """Both tables with one set of names and recordings, and what was listened to.

    Args:
        detections, annotations: `recording`, `start_s`, `end_s`, `label`, `score`.
        listened: The spans (`scoring.sound_matching.LISTENED`).
        species: What was listened for.
        names: How names of annotations were found.
        common: The common name of each species, where a table tells one.
        remarks: What a person should know.
    """

    detections: pl.DataFrame
    annotations: pl.DataFrame
    listened: pl.DataFrame
    species: tuple[str, ...]
    names: tuple[NameMatch, ...]
    common: Mapping[str, str]
    remarks: tuple[str, ...]


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
        at_least: From which score on precision and recall are given; all detections of the table where not given.
        label: The species of annotations that name none.
        complete: Whether annotators noted every species that they heard; else only species that they name are scored.
        promise: The least precision that thresholds promise.
        risk: The chance that a threshold is given and does not keep it.
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


def compare_tables(
    found: Path,
    against: Path,
    listened: str | Path | None,
    recordings: str | Path | None,
    *,
    label: str | None = None,
    complete: bool = False,
    names: Sequence[Path] = (),
) -> Compared:
    """Reads both tables and brings recordings and names of both together."""
    said, true = read_sounds(found), read_sounds(against)
    if said.rows["score"].is_null().any():
        raise InputError(found, found="detections without a score", expected="a score for each")
    if listened is None:
        raise MisuseError(ASK)
    parts = _parts_that_tell(said, true, against)
    rows, noted = (table.rows.with_columns(recording=_named(table.rows["file"], parts)) for table in (said, true))
    if label is not None:
        noted = noted.with_columns(pl.col("label").fill_null(label))
    elif noted["label"].is_null().all() and len(noted):
        hint = "Say of which species they are: --label NAME."
        raise InputError(against, found="annotations without any name", expected="a label for each", hint=hint)
    noted, rows, how = _joined(noted, rows, load_concepts(names))
    about = tuple(dict.fromkeys(recording_name(file, parts) for file in (*true.files, *noted["file"])))
    spans = _spans(listened, recordings, about, noted, rows, parts)
    remarks = []
    detected, annotated = set(rows["label"].drop_nulls()), set(noted["label"].drop_nulls())
    species = sorted(annotated | detected) if complete else sorted(annotated)
    if not complete and detected - annotated:
        left = rows.filter(~pl.col("label").is_in(list(annotated)))
        remarks.append(
            f"{len(left):,} detections of {len(detected - annotated):,} species that no annotation names are not "
            "scored; with --complete (annotators noted every species they heard) they are wrong."
        )
    if not species:
        raise InputError(against, found="no annotation with a name", expected="at least one")
    common = dict(rows.drop_nulls("common_name").select("label", "common_name").unique("label").iter_rows())
    keys = ["recording", "start_s", "end_s", "label"]
    return Compared(rows.select(*keys, "score"), noted.select(keys), spans, tuple(species), how, common, tuple(remarks))


def _parts_that_tell(said: SoundTable, true: SoundTable, against: Path) -> int:
    """How many of the last parts of a path tell recordings apart: 1 where their names do."""
    for parts in (1, 2, 3):
        clear = True
        for table in (said, true):
            stems = {file.replace("\\", "/").rpartition(".")[0] or file for file in table.files}
            clear = clear and len({recording_name(file, parts) for file in table.files}) == len(stems)
        if clear:
            return parts
    return 1


def _named(files: pl.Series, parts: int) -> pl.Series:
    names = {file: recording_name(file, parts) for file in files.unique()}
    return files.replace_strict(list(names), list(names.values()), return_dtype=pl.String) if names else files


def _joined(
    noted: pl.DataFrame, rows: pl.DataFrame, concepts: NameConcepts
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[NameMatch, ...]]:
    """Both tables under scientific names, as far as these are known, and how each name of an annotation was found.

    What the detector calls a species (its label, code or common name in one row) is one taxon; what no source of names
    knows keeps the label of the detector.
    """
    named: dict[str, str] = {}
    own: dict[str, str] = {}
    for label, common, code in rows.select("label", "common_name", "code").unique(maintain_order=True).iter_rows():
        if label is None:
            continue
        found = [concepts.find(one).concept for one in (label, common, code) if one]
        named[label] = next((one.scientific for one in found if one is not None), label)
        own |= {name: named[label] for name in (code, common, label) if name}
    how, renamed = [], {}
    for name in noted["label"].drop_nulls().unique(maintain_order=True):
        match = concepts.find(name)
        if name in own:
            renamed[name] = own[name]
            match = match._replace(how="exact" if own[name] == name or name in named else "concept", note="")
        elif match.concept is not None:
            renamed[name] = match.concept.scientific
        how.append(match)
    detected = rows.with_columns(pl.col("label").replace(named))
    return noted.with_columns(pl.col("label").replace(renamed)), detected, tuple(how)


def _spans(
    listened: str | Path,
    recordings: str | Path | None,
    about: Sequence[str],
    noted: pl.DataFrame,
    rows: pl.DataFrame,
    parts: int,
) -> pl.DataFrame:
    """What was listened to, with site and date of each recording."""
    facts = _facts(recordings, parts)
    if str(listened) == WHOLE:
        spans = pl.DataFrame({"recording": list(about)}, schema={"recording": pl.String})
    else:
        path = Path(listened)
        with open_input(path, "a table recording[,start_s,end_s]") as file:
            spans = read_csv(file, path, required=("recording",))
        for name in ("start_s", "end_s"):
            spans = parse_column(spans, name, float, path)
        spans = spans.with_columns(recording=_named(spans["recording"], parts))
    for name, kind in LISTENED.items():
        if name not in spans.columns:
            spans = spans.with_columns(pl.lit(None, kind).alias(name))
    last = pl.concat([noted.select("recording", "end_s"), rows.select("recording", "end_s")])
    last = last.group_by("recording").agg(last_s=pl.col("end_s").max())
    spans = spans.join(facts, on="recording", how="left", maintain_order="left", suffix="_known")
    spans = spans.join(last, on="recording", how="left", maintain_order="left")
    dated = spans["recording"].map_elements(_dated, return_dtype=pl.List(pl.String))
    return spans.select(
        "recording",
        pl.col("start_s").fill_null(0.0),
        pl.coalesce("end_s", "seconds", "last_s", pl.lit(0.0)).alias("end_s"),
        pl.coalesce("site", "site_known", dated.list.get(0)).alias("site"),
        pl.coalesce("date", "date_known", dated.list.get(1)).alias("date"),
    ).filter(pl.col("end_s") >= pl.col("start_s"))


def _dated(name: str) -> list[str | None]:
    """Site and date of a recording by its name.

    >>> _dated("SNE_20180509_050002"), _dated("XC1234")
    (['SNE', '2018-05-09'], [None, None])
    """
    match = DATED.match(name.rpartition("/")[2])
    if match is None:
        return [None, None]
    site, date = match["site"] or (name.rpartition("/")[0] or None), match["date"]
    return [site, f"{date[:4]}-{date[4:6]}-{date[6:]}"]


def _facts(recordings: str | Path | None, parts: int) -> pl.DataFrame:
    """Length, site and date of recordings, by a table or by the files themselves."""
    columns = {"recording": pl.String, "seconds": pl.Float64, "site": pl.String, "date": pl.String}
    if recordings is None:
        return pl.DataFrame(schema=columns)
    path = Path(recordings)
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if RECORDING.owns(one))
        rows = [(recording_name(str(file), parts), _seconds(file), None, None) for file in files]
        return pl.DataFrame(rows, schema=columns, orient="row").unique("recording", maintain_order=True)
    with open_input(path, "a table recording[,seconds,site,date]") as file:
        table = parse_column(read_csv(file, path, required=("recording",)), "seconds", float, path)
    for name in ("site", "date"):
        if name not in table.columns:
            table = table.with_columns(pl.lit(None, pl.String).alias(name))
    table = table.with_columns(recording=_named(table["recording"], parts))
    return table.select(list(columns)).unique("recording", maintain_order=True)


def _seconds(file: Path) -> float:
    try:
        with Recording(file) as recording:
            return float(recording.seconds)
    except SoundError as error:
        raise InputError(file, found=str(error), expected="a recording") from error


def _plain(value: Any) -> Any:
    """Data without NaN and infinities, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
