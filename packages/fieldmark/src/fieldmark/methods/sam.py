"""Segment Anything, shown where to look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box, box_as_drawn
from fieldmark.features.saliency import Saliency, SaliencyRule
from fieldmark.features.sam_transformers import TransformerSam, external_data
from fieldmark.features.segment_anything import SegmentAnything
from fieldmark.masks.parts import Mask, resized
from fieldmark.methods.base import ON_TRAIN, Arrays, Fitted, choices, media_of
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole, overlap
from fieldmark.methods.salient_masks import enlarged, spread
from fieldmark.releases.photo_boxes import ShareBox
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

PROMPTS = {
    "center": "a point in the middle of the photo",
    "saliency-box": "a box around what stands out",
    "saliency-points": "points well inside what stands out",
    "saliency": "both",
}
# A box that is given for the photo, where the release has boxes; what stands out where it has none.
GIVEN = "boxes"
POINTS = 3
DIGEST = "digest_of_weights"
# What stands out is what the map has above this share of its range.
STANDS_OUT = 0.5


class _Tools(NamedTuple):
    network: SegmentAnything | TransformerSam
    saliency: Saliency
    boxes: Mapping[str, Any] = MappingProxyType({})
    where: Callable[[str], str] = str


@dataclass(frozen=True)
class Sam(DrawsMasks):
    """Draws what a network of the SAM family takes a prompt for; it needs no training.

    The network is MobileSAM (`features.segment_anything`), or SAM 2 or SAM 3 from a folder
    (`features.sam_transformers`). Of the three masks it offers, the one is drawn that agrees best with what stands out
    (IoU with the map of U²-Netp) or, for a point in the middle, the one that the network itself believes most.

    Args:
        prompt: What it is shown: center, saliency-box, saliency-points or saliency, or boxes for those that are given
            (`boxes.csv` in a folder); empty takes the one of the first four with the highest mean IoU on train.
        weights: The folder of SAM 2 or SAM 3 as Hugging Face has it; empty for MobileSAM. The weights stay there.
    """

    prompt: str = setting("", choices=("", *PROMPTS, GIVEN))
    weights: str = ""

    learns_from_val: ClassVar[bool] = False

    @property
    def external_data(self) -> tuple[str, ...]:
        own = external_data(self.weights) if self.weights else "1 % of SA-1B, by the weights of MobileSAM"
        return (own, "DUTS, by the weights of U²-Netp")

    def fit(self, view: View) -> Fitted:
        arrays = {}
        if self.weights:
            arrays[DIGEST] = np.frombuffer(TransformerSam.open(self.weights).digest.encode(), dtype=np.uint8)
        if self.prompt:
            return Fitted(self, arrays)
        train, tools = evenly_taken(view.train.of_known_labels()), self.start({})
        each = mean_overlaps(train, "prompt", lambda photo: list(self._drawn(tools, photo, PROMPTS).values()))
        means = dict(zip(PROMPTS, each.round(3).tolist(), strict=True))
        tried = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        chosen = replace(self, prompt=max(means, key=lambda name: means[name]))
        remark = f"Mean IoU of prompts on {len(train)} photos of train: {tried}."
        return Fitted(chosen, arrays, (remark,), choices(self, chosen, ON_TRAIN))

    def start(self, arrays: Arrays) -> _Tools:
        if not self.weights:
            return _Tools(SegmentAnything(), Saliency())
        network = TransformerSam.open(self.weights)
        if DIGEST in arrays and network.digest != arrays[DIGEST].tobytes().decode():
            hint = "Put back the files that the model was fitted with, or fit it again."
            raise InputError(self.weights, found="another network", expected="the one of the model", hint=hint)
        return _Tools(network, Saliency())

    def start_on(self, arrays: Arrays, part: Part) -> _Tools:
        tools = self.start(arrays)
        if self.prompt != GIVEN:
            return tools
        if GIVEN not in part.layers:
            raise MisuseError("prompt=boxes: there are no boxes of these photos, or the task does not allow them.")
        media = media_of(part)
        ids = part.items["media_ids"].explode().to_list()
        return tools._replace(boxes=dict(zip(ids, part.layers[GIVEN].read(ids), strict=True)), where=media.where)

    def draw_item(
        self, state: Any, arrays: Arrays, media_id: str, photo: Image.Image, labels: Labels
    ) -> dict[str, Mask]:
        given = state.boxes.get(media_id)
        if given is None:
            return self.draw(state, arrays, photo, labels)
        on_photo = given.on(*photo.size) if isinstance(given, ShareBox) else given
        box = box_as_drawn(on_photo, photo.size, state.where(media_id))
        mask = state.network.look(photo).draw(box)[0].mask
        return of_whole(resized(mask, (photo.height, photo.width)))

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        prompt = "saliency-box" if self.prompt == GIVEN else self.prompt
        mask = self._drawn(state, photo, [prompt])[prompt]
        return of_whole(resized(mask, (photo.height, photo.width)))

    def _drawn(self, tools: _Tools, photo: Image.Image, prompts: Any) -> dict[str, Mask]:
        """The mask that follows from each prompt, at the size that the network has seen."""
        look = tools.network.look(photo)
        values = spread(tools.saliency.map(photo))
        salient = enlarged(values, look.size) >= STANDS_OUT
        drawn = {}
        for prompt in prompts:
            box, points = prompt_of(prompt, values)
            offered = look.draw(box, points)
            if prompt == "center":
                drawn[prompt] = offered[0].mask
            else:
                drawn[prompt] = max((one.mask for one in offered), key=lambda mask: overlap(mask, salient))
        return drawn


def prompt_of(prompt: str, values: NDArray[np.float32]) -> tuple[Box | None, NDArray[np.float64] | None]:
    """The box and the points that stand for a prompt; the middle of the photo where nothing stands out.

    Args:
        prompt: One of `PROMPTS`.
        values: How much each place of the photo stands out, from 0 to 1.
    """
    middle = np.array([[0.5, 0.5]])
    box = None if prompt == "center" else SaliencyRule().box(values)
    if box is None:
        return None, middle
    if prompt == "saliency-box":
        return box, None
    return (None if prompt == "saliency-points" else box), inner_points(values >= STANDS_OUT, POINTS)


def inner_points(mask: Mask, number: int) -> NDArray[np.float64]:
    """Points deep inside a mask and apart from each other, as shares of width and height.

    Each is the place that is farthest from the edge and from the points before it.

    >>> inner_points(np.pad(np.ones((3, 3), dtype=bool), 1), 1).tolist()
    [[0.5, 0.5]]
    """
    depth = ndimage.distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]
    lines, columns = np.indices(mask.shape)
    apart = np.full(mask.shape, np.inf)
    points = []
    for _ in range(number):
        reach = np.minimum(depth, apart)
        line, column = np.unravel_index(int(reach.argmax()), mask.shape)
        if reach[line, column] <= 0:
            break
        points.append(((column + 0.5) / mask.shape[1], (line + 0.5) / mask.shape[0]))
        apart = np.minimum(apart, np.hypot(lines - line, columns - column))
    return np.array(points, dtype=np.float64).reshape(-1, 2)
