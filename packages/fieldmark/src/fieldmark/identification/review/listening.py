"""Clips to listen to: drawn so that what is heard in a few of them tells about all.

```
OUT/
  listening.csv    one row for each clip: recording, start_s, end_s, label, score, stratum
  strata.csv       label, stratum, lowest and highest score, how many windows there are and how many were drawn
  clips/           the clips, as WAV
  answers.json, answers.parquet    what `fieldmark review OUT` opens
```

The windows of the recordings are divided by the score of a species: those without a detection, and five parts of equal
numbers of detections. Half of the clips are drawn from the former, the others evenly from the parts, at random. For
each clip the person says whether the species is heard: its name, or `not this species`. `estimate_listening` then tells
precision, recall and prevalence in these recordings, and the lowest threshold whose precision keeps a promise.
Precision and prevalence are without bias, recall nearly so (`stats.stratified`, `python -m studies.evidence
site_thresholds`).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import polars as pl

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, table_of
from fieldmark.identification.review.session import Review
from fieldmark.registry import require
from fieldmark.stats.stratified import Estimate, allocate, share_estimate
from fieldmark.storage.files import appearing_folder
from fieldmark.tables.media import RECORDING
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from fieldmark.tables.sound_tables import read_sounds, recording_name

PLAN_FILE, STRATA_FILE = "listening.csv", "strata.csv"
PARTS: Final = 5
# The share of clips without a detection: most windows have none, and what is missed among them decides recall.
UNDETECTED: Final = 0.5
OTHER: Final = "not this species"


@dataclass(frozen=True)
class ListeningPlan:
    """What was drawn: how many clips, of which species, from how many windows."""

    clips: int
    species: tuple[str, ...]
    windows: int


@dataclass(frozen=True)
class ThresholdEstimate:
    """Precision and recall at the lower end of a stratum."""

    at_least: float
    precision: Estimate
    recall: Estimate


@dataclass(frozen=True)
class ListeningEstimate:
    """What the clips of one species tell about all windows of these recordings.

    Args:
        label: The species.
        heard, clips: In how many clips it was heard, and how many were answered.
        prevalence: The share of windows in which it sounds.
        thresholds: Precision and recall from the lowest score of each stratum on.
        at_least: The lowest of them whose precision keeps the promise; None where the clips do not show it.
    """

    label: str
    heard: int
    clips: int
    prevalence: Estimate
    thresholds: tuple[ThresholdEstimate, ...]
    at_least: float | None


def draw_clips(
    detections: Path,
    recordings: Path,
    out: Path,
    *,
    clips: int,
    species: Sequence[str] = (),
    window_s: float = 3.0,
    seed: int = 0,
    overwrite: bool = False,
) -> ListeningPlan:
    """Draws clips, cuts them out and writes the folder that `review` opens.

    Args:
        detections: A table of detections, or a folder of them.
        recordings: The folder of the sound files.
        out: The folder to write.
        clips: How many clips in all, shared evenly by the species.
        species: Which; the one with most detections where none is given.
        window_s: How long a clip is.
        seed: The same seed draws the same clips.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When there are no recordings, or no detection of a species.
    """
    table = read_sounds(detections).rows.drop_nulls(("label", "score", "start_s"))
    files = {recording_name(str(one)): one for one in sorted(recordings.rglob("*")) if RECORDING.owns(one)}
    if not files:
        raise InputError(recordings, found="no recordings", expected="the folder of the sound files")
    table = table.with_columns(recording=pl.col("file").map_elements(recording_name, return_dtype=pl.String))
    table = table.filter(pl.col("recording").is_in(list(files)))
    named = list(species) or table["label"].value_counts(sort=True)["label"].to_list()[:1]
    windows = pl.concat([_windows(name, file, window_s) for name, file in files.items()])
    rng = np.random.default_rng(seed)
    plans, strata = [], []
    shares = allocate(np.full(len(named), clips), clips)
    for label, share in zip(named, shares.tolist(), strict=True):
        own = table.filter(pl.col("label") == label)
        if own.is_empty():
            raise InputError(detections, found=f"no detection of {label} in these recordings", expected="at least one")
        plan, parts = _drawn(windows, own, label, share, window_s, rng)
        plans.append(plan)
        strata.append(parts)
    plan = pl.concat(plans).sample(fraction=1.0, shuffle=True, seed=seed).with_row_index("number")
    plan = plan.with_columns(clip=pl.format("clip_{}", pl.col("number").cast(pl.String).str.zfill(4))).drop("number")
    common = dict(table.drop_nulls("common_name").select("label", "common_name").unique("label").iter_rows())
    with appearing_folder(out, overwrite=overwrite) as folder:
        (folder / "clips").mkdir()
        for row in plan.iter_rows(named=True):
            _cut(files[row["recording"]], row["start_s"], window_s, folder / "clips" / f"{row['clip']}.wav")
        plan.write_csv(folder / PLAN_FILE)
        pl.concat(strata).write_csv(folder / STRATA_FILE)
        _answers(plan, common, out.resolve()).write(folder)
    return ListeningPlan(len(plan), tuple(named), len(windows))


def _windows(name: str, file: Path, window_s: float) -> pl.DataFrame:
    try:
        with Recording(file) as recording:
            seconds = recording.seconds
    except SoundError as error:
        raise InputError(file, found=str(error), expected="a recording") from error
    starts = np.arange(max(1, int(seconds / window_s + 0.5))) * window_s
    return pl.DataFrame({"recording": [name] * len(starts), "start_s": starts})


def _drawn(
    windows: pl.DataFrame, own: pl.DataFrame, label: str, share: int, window_s: float, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The clips of one species, and its strata."""
    first = (own["start_s"] / window_s).floor().cast(pl.Int64)
    last = ((own["end_s"] / window_s).ceil().cast(pl.Int64) - 1).clip(lower_bound=first)
    touched = own.with_columns(place=pl.int_ranges(first, last + 1, eager=True)).explode("place")
    scores = touched.group_by("recording", "place").agg(pl.col("score").max())
    place = (windows["start_s"] / window_s).round().cast(pl.Int64)
    table = windows.with_columns(place=place).join(scores, on=("recording", "place"), how="left", maintain_order="left")
    ranks = table["score"].rank("ordinal")
    called = int(table["score"].is_not_null().sum())
    part = (((ranks - 1) * PARTS) // max(called, 1) + 1).clip(upper_bound=PARTS).fill_null(0).cast(pl.Int64)
    table = table.with_columns(stratum=part, label=pl.lit(label))
    numbers, sizes = np.unique(part.to_numpy(), return_counts=True)
    counts = allocate(sizes, share, first=UNDETECTED if numbers[0] == 0 else 0.0)
    rows = [
        rng.choice(np.flatnonzero(part.to_numpy() == number), count, replace=False)
        for number, count in zip(numbers, counts, strict=True)
    ]
    plan = table[np.concatenate(rows).tolist()].with_columns(end_s=pl.col("start_s") + window_s)
    strata = table.group_by("label", "stratum").agg(
        lowest=pl.col("score").min(), highest=pl.col("score").max(), windows=pl.len()
    )
    drawn = pl.DataFrame({"stratum": numbers, "drawn": counts}, schema_overrides={"stratum": pl.Int64})
    strata = strata.join(drawn, on="stratum").sort("stratum")
    return plan.select("recording", "start_s", "end_s", "label", "score", "stratum"), strata


def _cut(file: Path, start_s: float, seconds: float, target: Path) -> None:
    soundfile = cast(Any, require("soundfile", "Cutting clips"))
    try:
        with Recording(file) as recording:
            samples, rate = recording.stretch(start_s, seconds), recording.rate_hz
    except SoundError as error:
        raise InputError(file, found=str(error), expected="a recording") from error
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV")
    target.write_bytes(buffer.getvalue())


def _answers(plan: pl.DataFrame, common: Mapping[str, str], root: Path) -> AnswerFolder:
    """The clips as answers to be checked; the score is not shown, so that it does not decide."""
    entries = [
        AnsweredEntry(
            row["clip"],
            [f"clips/{row['clip']}.wav"],
            row["label"],
            names=[row["label"], OTHER],
            probabilities=[None, None],
        )
        for row in plan.iter_rows(named=True)
    ]
    labels = [{"label": label, "common_name": common.get(label)} for label in plan["label"].unique(maintain_order=True)]
    about = {"kind": RECORDING.name, "question": "listening", "model": "clips to listen to"}
    return AnswerFolder(table_of(entries), root, about, [*labels, {"label": OTHER, "common_name": None}])


def is_listening(folder: Path) -> bool:
    """Whether a folder holds clips that were drawn to be listened to."""
    return (folder / PLAN_FILE).is_file() and (folder / STRATA_FILE).is_file()


def estimate_listening(folder: Path, *, promise: float = 0.9, risk: float = 0.05) -> tuple[ListeningEstimate, ...]:
    """What the answered clips tell about all windows.

    Raises:
        InputError: When the folder holds no clips.
        MisuseError: When too few were answered.
    """
    if not is_listening(folder):
        raise InputError(folder, found=f"no {PLAN_FILE}", expected="a folder that --listen has written")
    plan = _numbers(folder / PLAN_FILE, ("stratum",))
    strata = _numbers(folder / STRATA_FILE, ("stratum", "windows", "drawn"), ("lowest", "highest"))
    looks = {name: look.name for name, look in Review(folder).looks.items() if look.name}
    plan = plan.with_columns(said=pl.col("clip").replace_strict(looks, default=None, return_dtype=pl.String))
    answered = plan.drop_nulls("said")
    if answered.is_empty():
        raise MisuseError(f"No clip of {folder} has been answered yet: fieldmark review {folder}")
    return tuple(
        _estimate(str(label), answered.filter(pl.col("label") == label), own, promise, risk)
        for (label,), own in strata.group_by("label", maintain_order=True)
    )


def _estimate(
    label: str, answered: pl.DataFrame, strata: pl.DataFrame, promise: float, risk: float
) -> ListeningEstimate:
    counts = answered.group_by("stratum").agg(answered=pl.len(), heard=(pl.col("said") == label).sum().cast(pl.Int64))
    table = strata.join(counts, on="stratum", how="left").sort("stratum").fill_null(0)
    empty = table.filter(pl.col("answered") == 0)
    if len(empty):
        raise MisuseError(f"No clip of {label} with scores in stratum {empty['stratum'][0]} has been answered yet.")
    sizes, drawn, hold = (table[name].to_numpy().astype(np.int64) for name in ("windows", "answered", "heard"))
    number = table["stratum"].to_numpy()
    edges = [int(one) for one in number if one > 0]
    rows, at_least = [], None
    for edge in sorted(edges, reverse=True):
        above, lowest = number >= edge, float(strata.filter(pl.col("stratum") == edge)["lowest"][0])
        precision, recall = (share_estimate(sizes, drawn, hold, above, of=of) for of in ("precision", "recall"))
        rows.append(ThresholdEstimate(lowest, precision, recall))
        bound = share_estimate(sizes, drawn, hold, above, of="precision", level=1 - 2 * risk / len(edges))
        if bound.low >= promise:
            at_least = lowest
    everything = np.ones(len(number), dtype=np.bool_)
    prevalence = share_estimate(sizes, drawn, hold, everything, of="prevalence")
    return ListeningEstimate(label, int(hold.sum()), int(drawn.sum()), prevalence, tuple(rows), at_least)


def _numbers(path: Path, whole: Sequence[str], floats: Sequence[str] = ()) -> pl.DataFrame:
    with path.open("rb") as file:
        table = read_csv(file, path, required=("label", *whole))
    for name in whole:
        table = parse_column(table, name, int, path)
    for name in floats:
        table = parse_column(table, name, float, path)
    return table
