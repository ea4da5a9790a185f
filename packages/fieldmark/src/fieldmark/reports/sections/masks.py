"""Masks beside the truth: the best, the middle and the worst, by part, by size, and what went wrong."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fieldmark.errors import InputError
from fieldmark.masks.parts import Mask, resized, whole
from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.metrics.segmentation import BACKGROUND, pooled_miou, pooled_miou_without_each_unit
from fieldmark.questions.targets import Shape
from fieldmark.questions.truth import Truth
from fieldmark.reports.charts.estimates import Axis, Share
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.runs.masks import stem
from fieldmark.scoring import LEVEL
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.tables.dataset import Dataset

LONGEST_PX = 256
JPEG_QUALITY = 82
# The outline of the truth, what only it has, and what only the answer has: told apart without red and green.
OUTLINE, MISSED, EXTRA = (255, 255, 255), (0, 114, 178), (230, 159, 0)
STRENGTH = 0.6
DIMMED = 0.55


SHOWN_EACH, MOST_FAILURES = 4, 12
# Below this IoU a mask is shown as a failure.
FAILED_BELOW = 0.5
# Upper ends of the bins by the share of the photo that the object covers.
SIZES = (0.05, 0.15, 0.3, 0.6, 1.0)
Values = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnPhoto:
    """One photo with the outlines of truth and answer."""

    item: str
    picture: str | None
    iou: float
    covers: float
    fault: str


@dataclass(frozen=True)
class GroupRow:
    """Photos of one kind, or one part, with their IoU."""

    title: str
    photos: int
    iou: Share


class MasksSection(Section):
    """How masks lie on the photos."""

    name = "masks"
    title = "Masks on the photos"
    shapes: ClassVar[tuple[Shape, ...]] = ("masks",)

    def applies(self, context: Context) -> bool:
        return len(context.predictions.items) > 0 and context.opened.truth[context.part].masks is not None

    def render(self, context: Context) -> str:
        look = MaskLook(context)
        parts, sizes = look.by_part(), look.by_size()
        return render(
            "sections/masks.html.j2",
            context=context,
            groups=look.groups(),
            parts=parts,
            part_axis=Axis.around(row.iou for row in parts),
            sizes=sizes,
            size_axis=Axis.around(row.iou for row in sizes),
            failures=look.failures(),
            failed=int((look.iou < FAILED_BELOW).sum()),
            failed_below=FAILED_BELOW,
        )


class MaskLook:
    """Counts of pixels of every photo, and the pictures that show them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        truth = context.opened.truth[context.part]
        assert truth.masks is not None  # the section is about masks alone
        self._truth: Truth = truth
        self._true = truth.masks
        task, labels = context.task, context.opened.view.labels
        taxa = context.opened.dataset.taxa
        self._counts = cast(Any, task.answer.evaluate(context.predictions, truth, labels, taxa, 1))  # by its own kind
        both, either = self._counts.whole_counts
        self.iou: Values = np.divide(both, either, out=np.ones(len(both)), where=either > 0)
        self._covers = np.array([_share_of(self._true.rows_of(item)) for item in truth.items])
        self._media = {stem(one): one for one in context.items["item_id"]}

    def groups(self) -> list[tuple[str, list[DrawnPhoto]]]:
        """The best photos, those in the middle and the worst."""
        order = np.argsort(-self.iou, kind="stable")
        each = max(1, min(SHOWN_EACH, len(order) // 3))
        middle = max(0, len(order) // 2 - each // 2)
        chosen = {"Best": order[:each], "Middle": order[middle : middle + each], "Worst": order[::-1][:each]}
        return [(title, [self._drawn(int(row)) for row in rows]) for title, rows in chosen.items()]

    def failures(self) -> list[DrawnPhoto]:
        """The worst photos below the limit, beyond those that stand among the worst already."""
        order = [int(row) for row in np.argsort(self.iou, kind="stable") if self.iou[row] < FAILED_BELOW]
        return [self._drawn(row) for row in order[:MOST_FAILURES]]

    def by_part(self) -> list[GroupRow]:
        """The IoU of each part, pixels pooled over photos; none where run or truth has no parts."""
        names, unit = self._counts.part_names, self._context.unit
        rows = []
        for name in names:
            if name == BACKGROUND:
                continue
            intersection, union = self._counts.part_table
            arguments: dict[str, Any] = {"parts": names, "background": False, "averaged": (name,)}
            value = pooled_miou(intersection, union, **arguments)
            if np.isnan(value):
                continue
            without = pooled_miou_without_each_unit(intersection, union, unit, **arguments)
            place = names.index(name)
            rows.append(GroupRow(name, int((union[:, place] > 0).sum()), _estimate(value, without, len(union), unit)))
        return rows

    def by_size(self) -> list[GroupRow]:
        """The mean IoU of photos by the share that the object covers."""
        rows, low = [], 0.0
        for high in SIZES:
            here = (self._covers >= low) & ((self._covers < high) | (high == SIZES[-1]))
            if here.any():
                unit = np.unique(self._context.unit[here], return_inverse=True)[1].astype(np.int32)
                value, without = float(self.iou[here].mean()), mean_without_each_unit(self.iou[here], unit)
                title = f"{100 * low:.0f} to {100 * high:.0f} % of the photo"
                rows.append(GroupRow(title, int(here.sum()), _estimate(value, without, int(here.sum()), unit)))
            low = high
        return rows

    def _drawn(self, row: int) -> DrawnPhoto:
        item = self._truth.items[row]
        true = whole(self._true.open(item))
        given = self._context.predictions.open(item)
        answer = resized(whole(given), true.shape) if given else np.zeros_like(true)
        media = self._media.get(item)
        picture = None if media is None else overlay_uri(self._context.opened.dataset, media, true, answer)
        return DrawnPhoto(item, picture, float(self.iou[row]), float(self._covers[row]), _fault(true, answer))


def _fault(true: NDArray[np.bool_], answer: NDArray[np.bool_]) -> str:
    """What is wrong with a mask, in a word or two; empty where nothing much is."""
    both, drawn, there = (int(np.count_nonzero(mask)) for mask in (true & answer, answer, true))
    if not drawn:
        return "nothing drawn" if there else ""
    if not both:
        return "beside it"
    missed, extra = 1 - both / there, 1 - both / drawn
    if max(missed, extra) < 0.2:
        return ""
    return "much of it missed" if missed > extra else "too much drawn"


def _share_of(rows: Sequence[Any]) -> float:
    """How much of the photo the whole covers, which stands last, or the largest part."""
    return max((row.area / (row.height * row.width) for row in rows), default=0.0)


def _estimate(value: float, without: Values, items: int, unit: NDArray[np.int32]) -> Share:
    bounds = interval(value, pseudo_values(value, without), level=LEVEL)
    return Share(value, bounds.low, bounds.high, items, int(unit.max()) + 1, bounds.reason)


SECTION = MasksSection()


def overlay_uri(dataset: Dataset, media_id: str, true: Mask, answer: Mask) -> str | None:
    """A photo with its masks as a data URI, None where it cannot be read."""
    try:
        with Image.open(BytesIO(dataset.read_medium(media_id))) as opened:
            opened.draft("RGB", (2 * LONGEST_PX, 2 * LONGEST_PX))
            photo = ImageOps.exif_transpose(opened).convert("RGB")
    except (InputError, OSError, Image.DecompressionBombError):
        return None
    photo.thumbnail((LONGEST_PX, LONGEST_PX), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    Image.fromarray(painted(np.asarray(photo), true, answer)).save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def painted(pixels: NDArray[np.uint8], true: Mask, answer: Mask) -> NDArray[np.uint8]:
    """The photo with both masks: as it is where they agree on the object, colored where they differ, else dimmed."""
    shape = pixels.shape[:2]
    there, drawn = resized(true, shape), resized(answer, shape)
    colored = pixels.astype(np.float64)
    colored[~there & ~drawn] *= DIMMED
    for mask, color in ((there & ~drawn, MISSED), (drawn & ~there, EXTRA)):
        colored[mask] = (1 - STRENGTH) * colored[mask] + STRENGTH * np.array(color)
    colored[_outline(there)] = OUTLINE
    return np.asarray(colored.round(), dtype=np.uint8)


def _outline(mask: Mask) -> Mask:
    """The pixels of a mask that touch what is outside of it."""
    inside = np.pad(mask, 1, mode="edge")
    surrounded = inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    return np.asarray(mask & ~surrounded)
