"""Observations with everything that is known about them: gathered for display, whatever of it there is."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter, ImageOps

from fieldmark.errors import InputError
from fieldmark.masks.parts import MICROSCOPIC
from fieldmark.releases.fungitastic_layers import satellite_picture
from fieldmark.reports.charts.climographs import draw_climate
from fieldmark.reports.pages.facts import context_columns, facts
from fieldmark.reports.section import UNKNOWN_SPECIES, Context
from fieldmark.storage.picture_files import open_picture
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS

LONG_SIDE_PIXELS = 380
JPEG_QUALITY = 78
# Okabe and Ito (2008) without black: the outlines lie on photos of any color, in a dark seam.
OUTLINES = ("#f0e442", "#56b4e9", "#cc79a7", "#009e73", "#d55e00", "#e69f00", "#0072b2")
SEAM = (15, 18, 22)
# At twice the size of the picture.
LINE_PIXELS, SEAM_PIXELS, SMOOTHING_PIXELS = 7, 13, 1.5

Masks = Mapping[str, NDArray[np.bool_]]
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


@dataclass(frozen=True)
class Picture:
    """A picture as a data URI, with its size in pixels."""

    data: str
    width: int
    height: int


def photo_picture(photo: bytes, masks: Masks | None = None, colors: Mapping[str, str] | None = None) -> Picture:
    """The whole photo, made small, with the outline of each mask.

    Args:
        photo: The bytes of the file.
        masks: By the part they show, at any size: they are stretched to the photo.
        colors: The color of each part's outline.

    Raises:
        OSError: When the bytes are not a photo.
    """
    with open_picture(photo) as opened:
        opened.draft("RGB", (2 * LONG_SIDE_PIXELS, 2 * LONG_SIDE_PIXELS))
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    # Small photos are enlarged too, so that outlines have the same weight on all.
    small = ImageOps.contain(upright, (LONG_SIDE_PIXELS, LONG_SIDE_PIXELS), Image.Resampling.LANCZOS)
    for part, mask in (masks or {}).items():
        _outline(small, mask, (colors or {}).get(part, OUTLINES[0]))
    return _jpeg(small)


def picture_from_above(pixels: NDArray[Any]) -> Picture:
    """A satellite picture of one band or three; raw reflectance is made visible as the organizers do.

    Raises:
        ValueError: When the array is not a picture.
    """
    if pixels.dtype != np.uint8:
        pixels = satellite_picture(np.nan_to_num(pixels.astype(np.float64)))
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    if pixels.ndim != 2 and pixels.ndim != 3:
        raise ValueError(f"an array of shape {pixels.shape} is not a picture")
    return _jpeg(Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB"))


def _outline(photo: Image.Image, mask: NDArray[np.bool_], color: str) -> None:
    """Draws the border of a mask into a photo, inside a dark seam that keeps it apart from any background."""
    # Drawn at twice the size and made small, so that coarse masks do not leave stairs.
    large = (2 * photo.width, 2 * photo.height)
    smooth = Image.fromarray(mask.astype(np.uint8) * 255).resize(large, Image.Resampling.BILINEAR)
    shape = smooth.filter(ImageFilter.GaussianBlur(SMOOTHING_PIXELS)).point(lambda value: 255 * (value > 127))
    for width, paint, strength in ((SEAM_PIXELS, SEAM, 0.5), (LINE_PIXELS, color, 1.0)):
        outer, inner = shape.filter(ImageFilter.MaxFilter(width)), shape.filter(ImageFilter.MinFilter(width))
        band = ImageChops.subtract(outer, inner).resize(photo.size, Image.Resampling.BOX)
        photo.paste(paint, (0, 0), band.point(lambda value, share=strength: int(value * share)))


def _jpeg(picture: Image.Image) -> Picture:
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    data = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Picture(data, picture.width, picture.height)
