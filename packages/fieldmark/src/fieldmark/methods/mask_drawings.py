"""What methods have in common that answer photos with masks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.features.photos import PhotoError, decode_photo
from fieldmark.masks.parts import WHOLE, Mask, resized, whole
from fieldmark.masks.runlengths import MaskRow
from fieldmark.methods.base import Arrays, Method, Need, media_of, targets_of
from fieldmark.methods.photo_networks import unreadable
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale
from fieldmark.runs.masks import Masks
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part
from fieldmark.work.progress import progress

# Photos that settings of methods without training are compared on: more would seldom change the choice.
COMPARED = 100


class DrawsMasks(Method):
    """A method that draws masks, one photo after the other."""

    targets: ClassVar[tuple[Shape, ...]] = ("masks",)
    scale: ClassVar[Scale] = "score"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pixels"),)

    def start(self, arrays: Arrays) -> Any:
        """What drawing needs, made once: a loaded network."""
        return None

    def start_on(self, arrays: Arrays, part: Part) -> Any:
        """The same for the photos of a part, where what is drawn depends on more than the photo."""
        return self.start(arrays)

    def draw_item(
        self, state: Any, arrays: Arrays, media_id: str, photo: Image.Image, labels: Labels
    ) -> dict[str, Mask]:
        """The masks of a photo of a part, by what `start_on` made."""
        return self.draw(state, arrays, photo, labels)

    @abstractmethod
    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        """The masks of a photo by part, as large as the photo.

        Args:
            state: What `start` made.
            arrays: What was learned.
            photo: The photo, upright and in RGB.
            labels: The parts that are asked for.
        """

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> Masks:
        files = part.items["media_ids"].explode().to_list()
        state, rows = self.start_on(arrays, part), []
        with progress("drawing masks", len(part)) as tick:
            for media_id, photo in photos_of(part):
                drawn = self.draw_item(state, arrays, media_id, photo, labels)
                rows.append(tuple(MaskRow.of(label, mask) for label, mask in drawn.items()))
                tick(1)
        return Masks(tuple(files), tuple(rows), {name: name for name in files}).renamed(str)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        raise ValueError("masks are drawn, labels are not scored")


def photos_of(part: Part) -> Any:
    """The photos of a part with their ids, decoded one at a time.

    Raises:
        InputError: For a photo that cannot be read.
    """
    media = media_of(part)
    for media_id in part.items["media_ids"].explode().to_list():
        try:
            yield media_id, decode_photo(media.read(media_id))
        except PhotoError as error:
            raise unreadable({media.where(media_id): str(error)}) from error


def evenly_taken(part: Part, most: int = COMPARED) -> Part:
    """At most so many items of a part, spread evenly over it."""
    return part.take(np.unique(np.linspace(0, len(part) - 1, most).astype(int)))


def true_whole(part: Part, row: int, shape: tuple[int, ...]) -> Mask:
    """The true mask of the whole of one photo of a part, brought to the size of the photo."""
    masks = targets_of(part).masks
    return resized(whole(masks.open(masks.items[row])), shape)


def overlap(answered: Mask, true: Mask) -> float:
    """Intersection over union; 1 where both are empty."""
    union = np.count_nonzero(answered | true)
    return float(np.count_nonzero(answered & true) / union) if union else 1.0


def mean_overlaps(part: Part, what: str, draw: Callable[[Image.Image], Sequence[Mask]]) -> NDArray[np.float64]:
    """The mean IoU with the true whole of each of several ways to draw, over the photos of a part.

    Args:
        part: Photos with masks.
        what: What is chosen, for the progress bar.
        draw: The masks of a photo, one for each way, all of one size.
    """
    overlaps = []
    with progress(f"choosing a {what}", len(part)) as tick:
        for row, (_, photo) in enumerate(photos_of(part)):
            masks = draw(photo)
            true = true_whole(part, row, masks[0].shape)
            overlaps.append([overlap(mask, true) for mask in masks])
            tick(1)
    return np.asarray(np.mean(overlaps, axis=0), dtype=np.float64)


def of_whole(mask: Mask) -> dict[str, Mask]:
    """The masks of a photo of which only the whole is drawn."""
    return {WHOLE: mask}
