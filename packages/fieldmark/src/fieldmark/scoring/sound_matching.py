"""Detections beside annotations: which windows, events, recordings or days are right, by a rule that is stated.

What was listened to is stated as well: spans of recordings (`LISTENED`). Detections and annotations outside of them
count for nothing, since windows that nobody listened to are not silence. A window counts where at least half of it lies
in such a span. Sounds that the annotator could not name make whatever else is detected there neither right nor wrong:
such answers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.metrics.sound_events import Matches, overlapping_pairs

Kind = Literal["window", "event", "recording", "site-day"]
KINDS: Final = ("window", "event", "recording", "site-day")
LISTENED: Final = {
    "recording": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "site": pl.String,
    "date": pl.String,
}
LEAST_COVERED: Final = 0.5
WINDOWS_S, OVERLAPS_S = (3.0, 5.0, 10.0), (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class MatchRule:
    """When a detection is right.

    Args:
        kind: What is compared: windows of a recording, events, whole recordings, or days at a site.
        window_s, hop_s: How long windows are and how far apart they begin; as far as they are long where hop is 0.
        overlap_s: How much of a window or an event must be shared, in seconds, or the whole of the shorter one; any
            part of it where it is 0.
    """

    kind: Kind = "window"
    window_s: float = 3.0
    hop_s: float = 0.0
    overlap_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MisuseError(f"There is no rule {self.kind!r}: expected one of {', '.join(KINDS)}.")
        if not (self.window_s > 0 and self.hop_s >= 0 and self.overlap_s >= 0):
            raise MisuseError("Windows have a length above 0; hop and overlap are 0 or more seconds.")

    @property
    def words(self) -> str:
        """The rule as a sentence."""
        shared = f"at least {self.overlap_s:g} s" if self.overlap_s else "any part"
        if self.kind == "window":
            hop = self.hop_s or self.window_s
            return (
                f"windows of {self.window_s:g} s, one every {hop:g} s: a window is called with the highest score of "
                f"the detections and positive where an annotation shares {shared} of it"
            )
        if self.kind == "event":
            return (
                f"events: a detection is right where it shares {shared} with an annotation of its species, and an "
                "annotation is found by the highest score of such a detection"
            )
        what = "recording" if self.kind == "recording" else "day at a site"
        return f"each {what}: called with its highest score, positive where the species was annotated in it at all"


@dataclass(frozen=True)
class MatchedSounds:
    """All species by one rule.

    Args:
        species: Answers and positives of each.
        units: The independent units, in the order of their numbers.
        items: How many windows, recordings or days there are; for events, 0.
        left_out: How many answers were left out because an annotator could not name what sounds there.
        outside: How many detections, and how many annotations, lie outside of what was listened to.
    """

    species: Mapping[str, Matches]
    units: tuple[str, ...]
    items: int
    left_out: int
    outside: tuple[int, int]


def match_sounds(
    detections: pl.DataFrame,
    annotations: pl.DataFrame,
    listened: pl.DataFrame,
    rule: MatchRule,
    *,
    species: Sequence[str],
    by: Literal["recording", "site"] = "recording",
) -> MatchedSounds:
    """Compares detections with annotations.

    Args:
        detections: `recording`, `start_s`, `end_s`, `label`, `score`; without times for whole files.
        annotations: `recording`, `start_s`, `end_s`, `label`, null for sounds without a name.
        listened: The spans that were listened to (`LISTENED`).
        rule: When a detection is right.
        species: Which were listened for; others are not compared.
        by: What is independent of each other.
    """
    units = tuple(listened[by].fill_null("").unique(maintain_order=True))
    spans = listened.with_columns(
        unit=pl.col(by).fill_null("").replace_strict(units, range(len(units)), return_dtype=pl.Int64)
    )
    codes = {name: code for code, name in enumerate(listened["recording"].unique(maintain_order=True))}
    heard = _inside(detections.filter(pl.col("label").is_in(species)), spans, codes)
    noted = _inside(annotations, spans, codes)
    outside = (
        detections.filter(pl.col("label").is_in(species)).height - heard["row"].n_unique(),
        len(annotations) - noted["row"].n_unique(),
    )
    if rule.kind == "event":
        answers, positives = _events(heard, noted, rule)
        items = 0
    else:
        table = _windows(spans, codes, rule) if rule.kind == "window" else _wholes(spans, codes, rule)
        answers, positives = _items(table, heard, noted, rule)
        items = table["item"].n_unique()
    doubtful = answers["doubtful"] & ~answers["right"]
    answers = answers.filter(~doubtful)
    found = {name: _of_species(answers, positives, name) for name in species}
    return MatchedSounds(found, units, items, int(doubtful.sum()), outside)


def _inside(sounds: pl.DataFrame, spans: pl.DataFrame, codes: Mapping[str, int]) -> pl.DataFrame:
    """Sounds that share time with a span that was listened to, each with its unit; those without times cover all."""
    last = max(spans["end_s"].to_list(), default=0.0) + 1
    timed = (pl.col("start_s").fill_null(0.0), pl.col("end_s").fill_null(last))
    sounds = sounds.with_row_index("row").filter(pl.col("recording").is_in(list(codes))).with_columns(timed)
    group = _codes(sounds["recording"], codes)
    one, two = overlapping_pairs(*_ends(sounds), group, *_ends(spans), _codes(spans["recording"], codes))
    kept: pl.DataFrame = sounds[one.tolist()].with_columns(
        unit=pl.Series(spans["unit"].to_numpy()[two], dtype=pl.Int64), code=pl.Series(group[one], dtype=pl.Int64)
    )
    return kept.unique(("row", "unit"), maintain_order=True)


def _ends(table: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return table["start_s"].to_numpy().astype(np.float64), table["end_s"].to_numpy().astype(np.float64)


def _codes(names: pl.Series, codes: Mapping[str, int]) -> NDArray[np.int64]:
    return names.replace_strict(list(codes), list(codes.values()), return_dtype=pl.Int64).to_numpy().astype(np.int64)


def _windows(spans: pl.DataFrame, codes: Mapping[str, int], rule: MatchRule) -> pl.DataFrame:
    """Windows counted from the start of the recording, of which at least half was listened to."""
    hop = rule.hop_s or rule.window_s
    parts = []
    for start, end, recording, unit in spans.select("start_s", "end_s", "recording", "unit").iter_rows():
        numbers = np.arange(max(0, np.floor((start - rule.window_s) / hop)), np.ceil(end / hop) + 1)
        begin = numbers * hop
        covered = np.minimum(begin + rule.window_s, end) - np.maximum(begin, start)
        own = numbers[covered >= LEAST_COVERED * rule.window_s]
        parts.append((codes[recording], unit, own))
    sizes = [len(own) for _, _, own in parts]
    begin = np.concatenate([own for _, _, own in parts]) * hop if parts else np.empty(0)
    table = pl.DataFrame(
        {
            "code": np.repeat([code for code, _, _ in parts], sizes).astype(np.int64),
            "unit": np.repeat([unit for _, unit, _ in parts], sizes).astype(np.int64),
            "start_s": begin,
            "end_s": begin + rule.window_s,
        }
    )
    return table.unique(("code", "start_s"), maintain_order=True).with_row_index("item")


def _wholes(spans: pl.DataFrame, codes: Mapping[str, int], rule: MatchRule) -> pl.DataFrame:
    """Recordings, or days at a site, as items; a row for each span of them."""
    name = pl.col("recording")
    if rule.kind == "site-day":
        if spans["site"].is_null().any() or spans["date"].is_null().any():
            raise MisuseError(
                "Days at a site need the site and the date of each recording: give a table --recordings "
                "recording,site,date, or recordings called SITE_YYYYMMDD_HHMMSS."
            )
        name = pl.format("{} {}", "site", "date")
    keyed = spans.with_columns(name=name, code=pl.Series(_codes(spans["recording"], codes)))
    numbers = keyed.select("name").unique(maintain_order=True).with_row_index("item")
    table = keyed.join(numbers, on="name", maintain_order="left").select("item", "code", "unit", "start_s", "end_s")
    # A day is as independent as the recordings in it; it is counted with its first.
    return table.with_columns(unit=pl.col("unit").first().over("item"))


def _items(
    table: pl.DataFrame, heard: pl.DataFrame, noted: pl.DataFrame, rule: MatchRule
) -> tuple[pl.DataFrame, pl.DataFrame]:
    overlap = rule.overlap_s if rule.kind == "window" else 0.0
    called = (
        _on_items(table, heard, overlap)
        .group_by("item", "label", maintain_order=True)
        .agg(pl.col("score").max(), pl.col("unit").first())
    )
    true = _on_items(table, noted.with_columns(score=pl.lit(0.0)), overlap)
    doubtful = true.filter(pl.col("label").is_null())["item"].unique()
    positives = true.drop_nulls("label").group_by("item", "label", maintain_order=True).agg(pl.col("unit").first())
    answers = called.join(positives.select("item", "label", right=pl.lit(True)), on=("item", "label"), how="left")
    answers = answers.with_columns(pl.col("right").fill_null(False), doubtful=pl.col("item").is_in(doubtful.implode()))
    found = positives.join(called.select("item", "label", best="score"), on=("item", "label"), how="left")
    return answers, found


def _on_items(table: pl.DataFrame, sounds: pl.DataFrame, overlap_s: float) -> pl.DataFrame:
    one, two = overlapping_pairs(
        *_ends(table),
        table["code"].to_numpy(),
        *_ends(sounds),
        sounds["code"].to_numpy(),
        at_least=overlap_s,
    )
    return pl.DataFrame(
        {
            "item": table["item"].to_numpy()[one],
            "unit": table["unit"].to_numpy()[one],
            "label": sounds["label"].gather(two.tolist()),
            "score": sounds["score"].gather(two.tolist()),
        }
    )


def _events(heard: pl.DataFrame, noted: pl.DataFrame, rule: MatchRule) -> tuple[pl.DataFrame, pl.DataFrame]:
    heard, noted = heard.unique("row", maintain_order=True), noted.unique("row", maintain_order=True)
    named = noted.filter(pl.col("label").is_not_null())
    labels = sorted(set(heard["label"]) | set(named["label"]))
    code_of = {label: code for code, label in enumerate(labels)}

    def groups(table: pl.DataFrame) -> NDArray[np.int64]:
        return np.asarray(table["code"].to_numpy() * len(labels) + _codes(table["label"], code_of), dtype=np.int64)

    one, two = overlapping_pairs(*_ends(heard), groups(heard), *_ends(named), groups(named), at_least=rule.overlap_s)
    right = np.zeros(len(heard), dtype=np.bool_)
    right[one] = True
    best = np.full(len(named), -np.inf)
    np.maximum.at(best, two, heard["score"].to_numpy()[one])
    unnamed = noted.filter(pl.col("label").is_null())
    near, _ = overlapping_pairs(
        *_ends(heard), heard["code"].to_numpy(), *_ends(unnamed), unnamed["code"].to_numpy(), at_least=rule.overlap_s
    )
    doubtful = np.zeros(len(heard), dtype=np.bool_)
    doubtful[near] = True
    answers = heard.select("label", "score", "unit").with_columns(
        right=pl.Series(right, dtype=pl.Boolean), doubtful=pl.Series(doubtful, dtype=pl.Boolean)
    )
    return answers, named.select("label", "unit").with_columns(best=pl.Series(best, dtype=pl.Float64))


def _of_species(answers: pl.DataFrame, positives: pl.DataFrame, name: str) -> Matches:
    said, true = answers.filter(pl.col("label") == name), positives.filter(pl.col("label") == name)
    return Matches(
        said["score"].to_numpy().astype(np.float64),
        said["right"].to_numpy().astype(np.bool_),
        said["unit"].to_numpy().astype(np.int64),
        true["best"].fill_null(-np.inf).to_numpy().astype(np.float64),
        true["unit"].to_numpy().astype(np.int64),
    )
