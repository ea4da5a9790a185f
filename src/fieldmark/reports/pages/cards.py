"""Observations with everything that is known about them: gathered for display, whatever of it there is."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.foundation.masks import MICROSCOPIC
from fieldmark.labels import UNKNOWN
from fieldmark.reports.charts.climographs import draw_climate
from fieldmark.reports.pages.facts import context_columns, facts
from fieldmark.reports.pages.pictures import OUTLINES, Masks, Picture, photo_picture, picture_from_above
from fieldmark.reports.section import UNKNOWN_SPECIES, Context
from fieldmark.tables import RANKS

CARDS = 3
# So many observations are looked at, in a random order, to find those with the most modalities.
CANDIDATES = 24
SEED = 0
MOST_PHOTOS = 4
ANSWERS = 5
CAPTION_LENGTH = 260

BY_PHOTO = ("masks", "caption")
BY_OBSERVATION = ("climate", "satellite_rgb", "satellite_nir")
SATELLITE = {"satellite_rgb": "visible light", "satellite_nir": "near infrared"}
# The whole, which other masks show in parts.
WHOLE = "fruiting_body"
# What broken files make readers raise; a page does not fail over one of them.
UNREADABLE = (
    InputError, OSError, ValueError, TypeError, SyntaxError, struct.error,
    pl.exceptions.PolarsError, Image.DecompressionBombError,
)  # fmt: skip


@dataclass(frozen=True)
class Photo:
    """One photo of an observation; answer and confidence are None where the answer is not about this photo alone."""

    media_id: str
    picture: Picture | None
    parts: Mapping[str, str]
    microscopic: bool
    answer: str | None = None
    right: bool = False
    confidence: float | None = None


@dataclass(frozen=True)
class LikelyClass:
    """A class among the first answers, with its mean probability over the items of the observation."""

    title: str
    right: bool
    probability: float | None


@dataclass(frozen=True)
class ObservationCard:
    """One observation.

    Args:
        observation: Its id.
        title: The true class.
        lineage: Its taxa from the highest rank down.
        photos: The first photos; `more` are left out.
        items, right: How many answers there are about it, and how many are right.
        caption: The first caption among its photos, shortened.
        satellite: Pictures from above with their titles; None where a file cannot be read.
        climate: The typical year.
        facts: What else is known, in words.
        answers: The best answers.
    """

    observation: str
    title: str
    lineage: tuple[str, ...]
    photos: tuple[Photo, ...]
    more: int
    items: int
    right: int
    caption: str | None
    satellite: tuple[tuple[str, Picture | None], ...]
    climate: Markup | None
    facts: tuple[tuple[str, str], ...]
    answers: tuple[LikelyClass, ...]


def draw_observations(context: Context) -> list[str]:
    """A few observations of the scored part among those with the most modalities, of different classes if possible.

    The draw is seeded: the same run gives the same cards.
    """
    names = context.items["observation_id"].unique(maintain_order=True)
    order = np.random.default_rng(SEED).permutation(len(names))
    candidates = [names[int(place)] for place in order[:CANDIDATES]]
    riches = {name: richness(context, name) for name in candidates}
    ranked = sorted(candidates, key=riches.__getitem__, reverse=True)
    label_of = dict(context.items.select("observation_id", "label").iter_rows())
    seen: set[str | None] = set()
    best = max(layers for layers, _, _ in riches.values())
    fresh: list[str] = []
    for name in ranked:
        if riches[name][0] == best and label_of[name] not in seen:
            fresh.append(name)
            seen.add(label_of[name])
    return (fresh + [name for name in ranked if name not in fresh])[:CARDS]


def richness(context: Context, observation: str) -> tuple[int, int, int]:
    """How much there is to show: layers with something to show (spores count as one more), filled columns, photos."""
    rows = _rows(context, observation)
    media = [one for row in rows for one in context.items[row, "media_ids"].to_list()]
    layers = sum(any(_ask(context, name, one) is not None for one in media) for name in BY_PHOTO)
    layers += sum(_ask(context, name, observation) is not None for name in BY_OBSERVATION)
    layers += any(MICROSCOPIC in (_ask(context, "masks", one) or {}) for one in media)
    first = context.items.row(rows[0], named=True)
    columns = sum(first[name] is not None for name in context_columns(context.items))
    return layers, columns, min(len(rows), MOST_PHOTOS)


def make_card(context: Context, observation: str, colors: Mapping[str, str]) -> ObservationCard:
    """Gathers what is known about one observation."""
    rows = _rows(context, observation)
    first = context.items.row(rows[0], named=True)
    media = [(row, one) for row in rows for one in context.items[row, "media_ids"].to_list()]
    code = int(context.truth[rows[0]])
    climate = _ask(context, "climate", observation)
    return ObservationCard(
        observation=observation,
        title=_named(context, code),
        lineage=_lineage(context, code),
        photos=tuple(_photo(context, row, one, colors, alone=len(rows) > 1) for row, one in media[:MOST_PHOTOS]),
        more=max(len(media) - MOST_PHOTOS, 0),
        items=len(rows),
        right=int(context.correct[rows].sum()),
        caption=_caption(context, [one for _, one in media]),
        satellite=_satellite(context, observation),
        climate=None if climate is None else draw_climate(f"climate-{rows[0]}", climate),
        facts=tuple(facts(first)),
        answers=tuple(best_answers(context, rows)),
    )


def outline_colors(context: Context, observations: Sequence[str]) -> dict[str, str]:
    """One color for each part that the masks of these observations show, the same on all cards."""
    parts: set[str] = set()
    for observation in observations:
        for row in _rows(context, observation):
            for one in context.items[row, "media_ids"].to_list():
                parts |= set(_drawn(_ask(context, "masks", one)))
    return {part: OUTLINES[number % len(OUTLINES)] for number, part in enumerate(sorted(parts))}


def best_answers(context: Context, rows: Sequence[int]) -> list[LikelyClass]:
    """The classes with the highest mean probability over the items; where scores only rank, their first answers."""
    truth = int(context.truth[rows[0]])
    if context.all_probabilities is not None:
        mean = context.all_probabilities[list(rows)].mean(axis=0, dtype=np.float64)
        best = np.argsort(-mean, kind="stable")[:ANSWERS]
        # Unknown stands in a last column where the run states a probability for it.
        pairs = [(int(code) if code < len(context.labels) else UNKNOWN, float(mean[code])) for code in best]
        answers = [LikelyClass(_named(context, code), code == truth, share) for code, share in pairs]
        decided = (context.predicted[list(rows)] == UNKNOWN).mean() > 0.5 and context.task.unknown
        if decided and len(mean) == len(context.labels):  # a rule calls it unknown, and states no probability
            answers = [LikelyClass(_named(context, UNKNOWN), truth == UNKNOWN, None), *answers][:ANSWERS]
        return answers
    ranked = context.predictions.select([context.predictions.items[row] for row in rows]).top(ANSWERS)
    lowest = UNKNOWN if context.task.unknown else 0
    codes = dict.fromkeys(int(code) for code in ranked.T.ravel() if lowest <= code < len(context.labels))
    return [LikelyClass(_named(context, code), code == truth, None) for code in list(codes)[:ANSWERS]]


def _named(context: Context, code: int) -> str:
    return context.title(context.labels.decode([code], unknown=UNKNOWN_SPECIES)[0])


def _rows(context: Context, observation: str) -> list[int]:
    return [int(row) for row in (context.items["observation_id"] == observation).arg_true()]


def _ask(context: Context, layer: str, key: str) -> Any:
    """What a layer shows; None where there is no such layer, nothing to show, or a broken file."""
    function = context.opened.dataset.layers.get(layer)
    try:
        return None if function is None else function(key)
    except UNREADABLE:
        return None


def _lineage(context: Context, code: int) -> tuple[str, ...]:
    if code == UNKNOWN:
        return ()
    taxa = (context.taxonomy.taxon(code, rank) for rank in RANKS[: RANKS.index("species")])
    return tuple(name for name in taxa if name)


def _drawn(masks: Masks | None) -> dict[str, Any]:
    """The masks to draw: parts where there are any, otherwise the whole; a photo of spores has no outline."""
    drawn = {part: mask for part, mask in (masks or {}).items() if part != MICROSCOPIC and mask.any()}
    parts = {part: mask for part, mask in drawn.items() if part != WHOLE}
    return parts or drawn


def _photo(context: Context, row: int, media_id: str, colors: Mapping[str, str], *, alone: bool) -> Photo:
    masks = _ask(context, "masks", media_id)
    drawn = _drawn(masks)
    try:
        picture = photo_picture(context.opened.dataset.read_medium(media_id), drawn, colors)
    except UNREADABLE:
        picture = None
    photo = Photo(media_id, picture, {part: colors[part] for part in sorted(drawn)}, MICROSCOPIC in (masks or {}))
    if not alone:
        return photo
    answer = context.answer(row)
    sure = None if context.confidence is None else float(context.confidence[row])
    return replace(photo, answer=context.title(answer), right=bool(context.correct[row]), confidence=sure)


def _caption(context: Context, media: Sequence[str]) -> str | None:
    for one in media:
        text = _ask(context, "caption", one)
        if isinstance(text, str) and text.strip():
            return excerpt(text)
    return None


def excerpt(text: str, length: int = CAPTION_LENGTH) -> str:
    """The beginning of a text, cut between words.

    >>> excerpt("a white cap with warts", 12)
    'a white cap…'
    """
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[:length].rpartition(' ')[0] or text[:length]}…"


def _satellite(context: Context, observation: str) -> tuple[tuple[str, Picture | None], ...]:
    pictures: list[tuple[str, Picture | None]] = []
    for name, title in SATELLITE.items():
        layer = context.opened.dataset.layers.get(name)
        try:
            pixels = None if layer is None else layer(observation)
            if pixels is not None:
                pictures.append((title, picture_from_above(np.asarray(pixels))))
        except UNREADABLE:
            pictures.append((title, None))
    return tuple(pictures)
