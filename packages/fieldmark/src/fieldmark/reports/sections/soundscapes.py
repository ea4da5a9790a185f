"""Stretches of soundscapes to look at and to listen to, with what was heard in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.questions.targets import Shape
from fieldmark.reports.detections import Heard, listen
from fieldmark.reports.markup import render
from fieldmark.reports.pages.sounds import clip_uri, picture_uri, read_stretch
from fieldmark.reports.section import Context, Section
from fieldmark.tables.media import RECORDING

STRETCH_S = 30.0
SHOWN = 4
MOST_LANES = 10
SEED = 0
# Sizes in CSS pixels: the names of species stand in the gutter, one lane each below the picture.
GUTTER, WIDTH, PICTURE_HEIGHT, LANE = 190, 846, 150, 24


@dataclass(frozen=True)
class Bar:
    """A stretch of a lane, in pixels: what is true, or a detection that is right or wrong."""

    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True)
class Lane:
    """One species: what is to be heard, and what the run heard."""

    title: str
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class RecordingStrip:
    """One stretch of a recording."""

    name: str
    title: str
    about: str
    start_s: float
    seconds: float
    picture: str
    clip: str
    lanes: tuple[Lane, ...]
    left_out: int
    ticks: tuple[tuple[float, str], ...]

    @property
    def height(self) -> float:
        return PICTURE_HEIGHT + 22 + LANE * len(self.lanes) + 8


class Soundscapes(Section):
    """What a run heard, to be checked by ear."""

    name = "soundscapes"
    title = "Soundscapes"
    shapes: ClassVar[tuple[Shape, ...]] = ("pairs",)

    def applies(self, context: Context) -> bool:
        return context.opened.dataset.medium == RECORDING

    def render(self, context: Context) -> str:
        heard = listen(context)
        return render(
            "sections/soundscapes.html.j2",
            context=context,
            strips=strips(context, heard),
            heard=heard,
            gutter=GUTTER,
            width=WIDTH,
            picture_height=PICTURE_HEIGHT,
            lane=LANE,
        )


def strips(context: Context, heard: Heard) -> list[RecordingStrip]:
    """A stretch of a recording of each site while there are sites, then of others; drawn, not chosen."""
    rng = np.random.default_rng(SEED)
    items = context.items.with_row_index("row").with_columns(sounding=pl.Series(heard.truth.any(axis=1)))
    by_recording = items.group_by("recording", maintain_order=True).agg(
        pl.col("site").first(), pl.col("sounding").any()
    )
    drawn = by_recording[rng.permutation(len(by_recording))].sort("sounding", descending=True, maintain_order=True)
    drawn = drawn.with_columns(turn=pl.int_range(pl.len()).over(pl.col("site").fill_null("")))
    order = drawn.sort("turn", maintain_order=True)["recording"]
    made: list[RecordingStrip] = []
    for recording in order:
        if len(made) == SHOWN:
            break
        strip = _strip(context, heard, items.filter(pl.col("recording") == recording), rng, number=len(made))
        made += [strip] if strip is not None else []
    return sorted(made, key=lambda strip: strip.title)


def _strip(
    context: Context, heard: Heard, segments: pl.DataFrame, rng: np.random.Generator, *, number: int
) -> RecordingStrip | None:
    """One strip, from a segment in which there is something to be heard; None where the recording cannot be read."""
    rows = segments["row"].to_numpy()
    sounding = np.flatnonzero(heard.truth[rows].any(axis=1))
    first = int(rng.choice(sounding)) if len(sounding) else 0
    starts = segments["start_s"].to_numpy()
    first = int(np.searchsorted(starts, min(starts[first], max(starts[-1] - STRETCH_S + 5, 0))))
    start = float(starts[first])
    inside = (starts >= start) & (starts < start + STRETCH_S)
    media_id = str(segments["recording"][0])
    try:
        with context.opened.dataset.open_medium(media_id) as file:
            stretch = read_stretch(file, start, STRETCH_S)
    except (InputError, OSError):
        return None  # a page about hundreds of recordings does not fail over one of them
    scale = WIDTH / stretch.seconds
    lanes, left_out = _lanes(context, heard, media_id, rows[inside], starts[inside], start, stretch.seconds)
    about = [segments[name][0] for name in ("site", "locality", "date", "time") if name in segments.columns]
    return RecordingStrip(
        name=f"strip-{number}",
        title=media_id,
        about=", ".join(str(value) for value in about if value is not None),
        start_s=start,
        seconds=stretch.seconds,
        picture=picture_uri(stretch, width=WIDTH, height=PICTURE_HEIGHT),
        clip=clip_uri(stretch),
        lanes=lanes,
        left_out=left_out,
        ticks=tuple(
            (GUTTER + second * scale, _clock(start + second)) for second in np.arange(0, stretch.seconds - 1, 5.0)
        ),
    )


def _lanes(
    context: Context,
    heard: Heard,
    media_id: str,
    rows: NDArray[np.int64],
    starts: NDArray[np.float64],
    start_s: float,
    seconds: float,
) -> tuple[tuple[Lane, ...], int]:
    """The species that are to be heard or were detected, those with the most to show first."""
    truth, detected, score = heard.truth[rows], heard.detected[rows], heard.score[rows]
    weight = 2 * truth.sum(axis=0) + detected.sum(axis=0)
    codes = [int(code) for code in np.argsort(-weight, kind="stable") if weight[code] > 0]
    events = context.opened.dataset.events
    assert events is not None  # soundscapes have them
    here = events.filter((pl.col("media_id") == media_id) & (pl.col("end_s") > start_s))
    end_s = start_s + seconds
    lanes = []
    for place, code in enumerate(codes[:MOST_LANES]):
        label = context.labels.names[code]
        sung = here.filter((pl.col("label") == label) & (pl.col("start_s") < end_s))
        bars = [
            _bar(max(first, start_s), min(last, end_s), start_s, seconds, "true", f"annotated from {_clock(first)}")
            for first, last in sung.select("start_s", "end_s").iter_rows()
        ]
        for row in np.flatnonzero(detected[:, code]):
            kind = "right" if truth[row, code] else "wrong"
            last = min(starts[row] + 5, end_s)
            title = f"{kind}: {_clock(starts[row])}, score {score[row, code]:.2f}"
            bars.append(_bar(starts[row], last, start_s, seconds, kind, title))
        lanes.append(Lane(context.title(label), PICTURE_HEIGHT + 22 + LANE * place, tuple(bars)))
    return tuple(lanes), max(len(codes) - MOST_LANES, 0)


def _bar(first: float, last: float, start_s: float, seconds: float, kind: str, title: str) -> Bar:
    scale = WIDTH / seconds
    return Bar(round(GUTTER + (first - start_s) * scale, 1), round(max(last - first, 0.2) * scale, 1), kind, title)


def _clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> _clock(65.0)
    '1:05'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


SECTION = Soundscapes()
