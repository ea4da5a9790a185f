"""Does the model look at the organism? The same classifier on the object alone, on what surrounds it, and by part.

The classifier is `linear` on features of a frozen network. Learned and answered from the same kind of picture, a score
says how much that kind tells about the label; learned from whole photos and shown another kind, it says what the
classifier of whole photos goes by. Photos without a mask are left out of all of them.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.masked_photos import SHOWN, MaskedPhotos
from fieldmark.features.settings import FeatureSettings
from fieldmark.masks.parts import NEVER_PARTS, only_spores
from fieldmark.masks.runlengths import MaskRow
from fieldmark.methods.base import media_of
from fieldmark.methods.linear import Linear
from fieldmark.methods.mask_drawings import DrawsMasks, photos_of
from fieldmark.models.supply import FeatureSource
from fieldmark.registry import require
from fieldmark.runs.mask_files import read_masks
from fieldmark.runs.masks import stem
from fieldmark.scoring import Scorecard, score_predictions
from fieldmark.stats.comparison import compare
from fieldmark.storage.files import appearing_file
from fieldmark.tables.inputs import MaskLayer, MediaFiles
from fieldmark.tables.labels import Labels
from fieldmark.version import __version__
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.views.parts import Part, View
from fieldmark.work.progress import progress

WHOLE_PHOTO, BY_PART = "whole", "parts"
# What the classifier of whole photos is shown besides.
SHOWN_TO_WHOLE = ("foreground", "background", "surroundings")
# A part that fewer training photos have says little, and would be mostly zeros.
FEWEST_PHOTOS = 10
Features = Mapping[str, NDArray[np.float32]]
RowsOf = dict[str, tuple[MaskRow, ...]]


@dataclass(frozen=True)
class ForegroundRow:
    """One classifier: what it learned from, what it was shown, its score, and the paired difference to whole photos."""

    learned: str
    shown: str
    card: Scorecard
    difference: tuple[float, float | None, float | None] | None


@dataclass(frozen=True)
class ForegroundStudy:
    """All classifiers of one set of photos.

    Args:
        benchmark: The question.
        part: The part that was answered.
        masks: Where the masks come from.
        metric: The metric of the differences, which is the first of the benchmark.
        rows: The classifiers; whole photos first.
        parts: The parts that features were taken of.
        left_out: By part of the benchmark, how many photos have no mask, of how many.
        covers: The median share of a photo that the object covers.
        simulated: Whether the photos are those of a world.
        pictures: One photo as it is shown in each way, as bytes.
    """

    benchmark: str
    part: str
    masks: str
    metric: str
    rows: tuple[ForegroundRow, ...]
    parts: tuple[str, ...]
    left_out: Mapping[str, tuple[int, int]]
    covers: float
    simulated: bool
    pictures: Mapping[str, bytes]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "benchmark": self.benchmark,
            "part": self.part,
            "masks": self.masks,
            "metric": self.metric,
            "simulated": self.simulated,
            "parts": list(self.parts),
            "left_out": {part: {"photos": out, "of": all_of} for part, (out, all_of) in self.left_out.items()},
            "median_share_of_photo": round(self.covers, 4),
            "rows": [
                {
                    "learned": row.learned,
                    "shown": row.shown,
                    "metrics": row.card.to_json()["metrics"],
                    "difference": None if row.difference is None else list(row.difference),
                }
                for row in self.rows
            ],
        }


def study_foreground(
    name: str,
    data: str | Path,
    *,
    masks: str = "release",
    settings: FeatureSettings | None = None,
    seed: int = 0,
) -> ForegroundStudy:
    """Fits the classifier to each kind of picture and compares them.

    Args:
        name: A benchmark with one label for each photo.
        data: The root of its release.
        masks: Where masks come from: "release", "saliency", "sam", or a folder or file of masks (`runs.mask_files`).
        settings: Which features; the usual ones if not given.
        seed: The seed of parts that are drawn.

    Raises:
        MisuseError: When the benchmark is about something else.
        InputError: When there are no masks.
    """
    benchmark = BENCHMARKS[name]
    if benchmark.task.answer.shape != "codes" or benchmark.task.items.noun != "photo":
        raise MisuseError(f"{name} does not ask for one label of each photo, so that nothing can be compared here.")
    opened = open_benchmark(benchmark, open_release(benchmark, data), seed=seed)
    view = opened.view
    scored = "test" if "test" in opened.truth else "val"
    answered = view.test if scored == "test" else view.val
    assert answered is not None and view.val is not None  # `open_benchmark` refuses a release without
    named = {"train": view.train.of_known_labels(), "val": view.val.of_known_labels(), scored: answered}
    rows_of = {part: _masks_of(opened, table, masks) for part, table in named.items()}
    left_out, kept = {}, {}
    for part, table in named.items():
        there = np.array([one in rows_of[part] for one in table.items["media_ids"].list.first()], dtype=np.bool_)
        left_out[part] = (int((~there).sum()), len(there))
        kept[part] = table.take(there)
        if not there.any():
            expected = "photos with masks"
            raise InputError(opened.dataset.release.root, found=f"no mask for any photo of {part}", expected=expected)
    parts = _parts_of(rows_of["train"])
    features = {part: _features(kept[part], rows_of[part], parts, settings or FeatureSettings()) for part in kept}
    cards = _cards(opened, kept, features, scored, parts)
    shares = [rows[-1].area / (rows[-1].height * rows[-1].width) for rows in rows_of[scored].values()]
    return ForegroundStudy(
        name,
        scored,
        Path(masks).name,
        benchmark.task.metrics[0].name,
        _compared(cards, benchmark.task.metrics[0].name),
        parts,
        left_out,
        float(np.median(shares)),
        opened.dataset.simulated,
        _example(kept[scored], rows_of[scored]),
    )


def _masks_of(opened: Opened, part: Part, source: str) -> RowsOf:
    """The masks of photos that have any of more than spores, by photo."""
    photos = part.items["media_ids"].list.first().to_list()
    if source in ("saliency", "sam"):
        return _drawn(part, _drawer(source))
    if source == "release":
        layer = opened.dataset.layers.get("masks")
        if not isinstance(layer, MaskLayer):
            hint = "Take --masks saliency, --masks sam, or a folder of masks."
            raise InputError(opened.dataset.release.root, found="no masks", expected="a release with masks", hint=hint)
        rows = dict(zip(photos, layer.rows(photos), strict=True))
    else:
        given = read_masks(Path(source))
        there = set(given.items)
        rows = {one: given.rows_of(stem(Path(one).name)) for one in photos if stem(Path(one).name) in there}
    return {one: masks for one, masks in rows.items() if not only_spores(masks)}


def _drawer(source: str) -> DrawsMasks:
    from fieldmark.methods.salient_masks import SalientMasks
    from fieldmark.methods.sam import Sam

    return Sam(prompt="saliency-box") if source == "sam" else SalientMasks(threshold=0.5)


def _drawn(part: Part, method: DrawsMasks) -> RowsOf:
    state = method.start({})
    rows = {}
    with progress("drawing masks", len(part)) as tick:
        for media_id, photo in photos_of(part):
            masks = method.draw(state, {}, photo, Labels(()))
            rows[media_id] = tuple(MaskRow.of(label, mask) for label, mask in masks.items())
            tick(1)
    return {media_id: masks for media_id, masks in rows.items() if any(mask.area for mask in masks)}


def _example(part: Part, rows_of: RowsOf) -> dict[str, bytes]:
    """The photo whose object covers about as much as those of most, shown in each way."""
    share = {one: rows[-1].area / (rows[-1].height * rows[-1].width) for one, rows in rows_of.items()}
    middle = sorted(share, key=lambda one: (share[one], one))[len(share) // 2]
    return {kind: MaskedPhotos(media_of(part).read, rows_of, kind).read(middle) for kind in SHOWN}


def _parts_of(rows_of: RowsOf) -> tuple[str, ...]:
    """The parts that enough training photos have."""
    names = [row.label for rows in rows_of.values() for row in {row.label: row for row in rows}.values()]
    return tuple(sorted(name for name in set(names) - set(NEVER_PARTS) if names.count(name) >= FEWEST_PHOTOS))


def _features(part: Part, rows_of: RowsOf, parts: Sequence[str], settings: FeatureSettings) -> Features:
    """The features of each kind of picture; those by part stand behind those of the whole photo, 0 where it is not."""
    media, source = media_of(part), FeatureSource(settings)
    photos = part.items["media_ids"].list.first().to_list()
    found: dict[str, NDArray[np.float32]] = {}
    for shown in (*SHOWN, *parts):
        hidden = _Files(media, MaskedPhotos(media.read, rows_of, shown))
        files = MediaFiles(media.medium, hidden, {one: one for one in media.ids})  # type: ignore[arg-type]
        found[shown] = source.supply(replace(part, media=files), what=f"photos ({shown})").features[media.medium.name]
    blocks = [found[WHOLE_PHOTO], found["foreground"]]
    for name in parts:
        has = np.array([any(row.label == name for row in rows_of[one]) for one in photos])
        blocks.append(np.where(has[:, None], found.pop(name), 0).astype(np.float32))
    if parts:
        found[BY_PART] = np.concatenate(blocks, axis=1)
    return found


@dataclass(frozen=True)
class _Files:
    """Changed photos in the place of a release."""

    media: MediaFiles
    photos: MaskedPhotos

    def read(self, media_id: str) -> bytes:
        return self.photos.read(media_id)

    def read_many(self, media_ids: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, media_ids)

    def where(self, media_id: str) -> str:
        return self.media.where(media_id)


def _cards(
    opened: Opened, kept: Mapping[str, Part], features: Mapping[str, Features], scored: str, parts: Sequence[str]
) -> dict[tuple[str, str], Scorecard]:
    kinds = (*SHOWN, *((BY_PART,) if parts else ()))
    truth = opened.truth[scored]
    there = set(kept[scored].item_ids)
    truth = truth.take(np.array([item in there for item in truth.items], dtype=np.bool_))
    cards = {}
    for learned in kinds:
        shown = {part: replace(kept[part], features={"photo": features[part][learned]}) for part in ("train", "val")}
        view: View = replace(opened.view, train=shown["train"], val=shown["val"], test=None, unlabeled=None)
        fitted = Linear().fit(view)
        for kind in (learned, *(SHOWN_TO_WHOLE if learned == WHOLE_PHOTO else ())):
            part = replace(kept[scored], features={"photo": features[scored][kind]}).unlabeled()
            answers = fitted.predict(part, opened.view.labels).select(truth.items)
            taxa = opened.dataset.taxa
            cards[learned, kind] = score_predictions(
                opened.benchmark, answers, truth, labels=opened.view.labels, split=scored, classes=taxa
            )
    return cards


def _compared(cards: Mapping[tuple[str, str], Scorecard], metric: str) -> tuple[ForegroundRow, ...]:
    whole = cards[WHOLE_PHOTO, WHOLE_PHOTO]
    rows = []
    for (learned, shown), card in cards.items():
        difference = None
        if card is not whole:
            values = np.array([one.metrics[metric].value for one in (card, whole)])
            apart = compare(values, np.stack([one.pseudo[metric] for one in (card, whole)])).differences[0]
            difference = (apart.value, apart.interval.low, apart.interval.high)
        rows.append(ForegroundRow(learned, shown, card, difference))
    return tuple(rows)


ABOUT = SHOWN | {BY_PART: "the photo, the object and each of its parts side by side"}


SIDE_PX = 160


def write_page(study: ForegroundStudy, out: Path) -> None:
    """Writes the study as one HTML file."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    estimates: Any = require("fieldmark.reports.charts.estimates", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    scores = [row.card.metrics[study.metric] for row in study.rows]
    page = markup.render(
        "foreground.html.j2",
        study=study,
        axis=estimates.Axis.around(scores),
        about=ABOUT,
        pictures={kind: _uri(picture) for kind, picture in study.pictures.items()},
        style=Markup(style),
        version=__version__,
    )
    with appearing_file(out) as partial:
        partial.write_text(page, encoding="utf-8")


def _uri(data: bytes) -> str:
    """A picture as a small JPEG in a data URI."""
    with Image.open(io.BytesIO(data)) as picture:
        small = picture.convert("RGB")
        small.thumbnail((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
