"""Segment Anything, shown where to look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box, box_as_drawn
from fieldmark.features.saliency import NETWORK_FILE, NETWORKS, Saliency, SaliencyRule, best_at_hand
from fieldmark.features.sam2_onnx import OnnxSam2
from fieldmark.features.sam_transformers import TransformerSam, external_data
from fieldmark.features.segment_anything import SegmentAnything
from fieldmark.masks.parts import Mask, resized
from fieldmark.methods.base import ON_TRAIN, USUAL, Arrays, Fitted, choices, media_of
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole, overlap
from fieldmark.methods.salient_masks import enlarged, salient_values, trained_on
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
Values = NDArray[np.float32]
DIGEST = "digest_of_weights"
# What stands out is what the map has above this share of its range.
STANDS_OUT = 0.5


class SamTools(NamedTuple):
    """What drawing needs: the network, what shows it where to look, and boxes that are given."""

    network: SegmentAnything | TransformerSam | OnnxSam2
    saliency: Saliency
    boxes: Mapping[str, Any] = MappingProxyType({})
    where: Callable[[str], str] = str


@dataclass(frozen=True)
class Sam(DrawsMasks):
    """Draws what a network of the SAM family takes a prompt for; it needs no training.

    The network is MobileSAM (`features.segment_anything`), or SAM 2 or SAM 3 from a folder (`features.sam2_onnx`,
    `features.sam_transformers`). Of the three masks it offers, the one is drawn that agrees best with what stands out
    (IoU with the map of U²-Net or U²-Netp) or, for a point in the middle, the one that the network believes most.

    Args:
        prompt: What it is shown: center, saliency-box, saliency-points or saliency, or boxes for those that are given
            (`boxes.csv` in a folder); empty takes the one of the first four with the highest mean IoU on train.
        weights: The folder of SAM 2 for ONNX Runtime (an encoder and a decoder), or of SAM 2 or SAM 3 as Hugging Face
            has it; empty for MobileSAM. The weights stay there.
        saliency: The network that shows where to look: u2netp, u2net or a file of the latter; empty takes the full
            one where it is installed.
    """

    prompt: str = setting("", choices=("", *PROMPTS, GIVEN))
    weights: str = ""
    saliency: str = setting("", choices=("", *NETWORKS), file=NETWORK_FILE)

    learns_from_val: ClassVar[bool] = False

    @property
    def external_data(self) -> tuple[str, ...]:
        own = external_data(self.weights) if self.weights else "1 % of SA-1B, by the weights of MobileSAM"
        return (own, trained_on(self.saliency))

    def fit(self, view: View) -> Fitted:
        method = replace(self, saliency=self.saliency or best_at_hand())
        arrays, taken = method.fingerprint(), choices(self, method, USUAL)
        if self.prompt:
            return Fitted(method, arrays, chosen=taken)
        train, tools = evenly_taken(view.train.of_known_labels()), method.start({})
        each = mean_overlaps(train, "prompt", lambda photo: [one > 0 for one in method.offers(tools, photo).values()])
        means = dict(zip(PROMPTS, each.round(3).tolist(), strict=True))
        tried = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        chosen = replace(method, prompt=max(means, key=lambda name: means[name]))
        remark = f"Mean IoU of prompts on {len(train)} photos of train: {tried}."
        return Fitted(chosen, arrays, (remark,), (*taken, *choices(method, chosen, ON_TRAIN)))

    def fingerprint(self) -> Arrays:
        """What a model keeps of weights that lie elsewhere."""
        if not self.weights:
            return {}
        return {DIGEST: np.frombuffer(network_in(self.weights).digest.encode(), dtype=np.uint8)}

    def start(self, arrays: Arrays) -> SamTools:
        saliency = Saliency(network=self.saliency or best_at_hand())
        if not self.weights:
            return SamTools(SegmentAnything(), saliency)
        network = network_in(self.weights)
        if DIGEST in arrays and network.digest != arrays[DIGEST].tobytes().decode():
            hint = "Put back the files that the model was fitted with, or fit it again."
            raise InputError(self.weights, found="another network", expected="the one of the model", hint=hint)
        return SamTools(network, saliency)

    def start_on(self, arrays: Arrays, part: Part) -> SamTools:
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
        mask = self.offers(state, photo, [prompt])[prompt] > 0
        return of_whole(resized(mask, (photo.height, photo.width)))

    def offers(
        self, tools: SamTools, photo: Image.Image, prompts: Iterable[str] = tuple(PROMPTS), values: Values | None = None
    ) -> dict[str, Values]:
        """The logits of the mask that follows from each prompt, at the size that the network has seen.

        Args:
            tools: What `start` made.
            photo: The photo.
            prompts: Some of `PROMPTS`.
            values: How much each place of the photo stands out, where that is known already.
        """
        look = tools.network.look(photo)
        values = salient_values(tools.saliency, photo, mirrored=False) if values is None else values
        salient = enlarged(values, look.size) >= STANDS_OUT
        found = {}
        for prompt in prompts:
            offered = look.draw(*prompt_of(prompt, values))
            best = offered[0] if prompt == "center" else max(offered, key=lambda one: overlap(one.mask, salient))
            found[prompt] = best.logits
        return found


def network_in(folder: str) -> TransformerSam | OnnxSam2:
    """The network of the SAM family in a folder, of whichever form."""
    return OnnxSam2.open(folder) if OnnxSam2.lies_in(folder) else TransformerSam.open(folder)


def prompt_of(prompt: str, values: Values) -> tuple[Box | None, NDArray[np.float64] | None]:
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
