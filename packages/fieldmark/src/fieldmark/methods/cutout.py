"""What stands out, what the masks of train show, and what Segment Anything outlines, with one voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.special import expit

from fieldmark.features.saliency import best_at_hand
from fieldmark.features.settings import data_behind
from fieldmark.masks.parts import Mask
from fieldmark.methods.base import ON_TRAIN, USUAL, Arrays, Fitted, choices
from fieldmark.methods.grabcut import along_edges
from fieldmark.methods.mask_drawings import (
    COMPARED,
    DrawsMasks,
    evenly_taken,
    mean_overlaps,
    of_whole,
    photos_of,
    true_whole,
)
from fieldmark.methods.organism_maps import NETWORK, FrozenMaps, Moments, moments_of, organism_map, sum_of
from fieldmark.methods.salient_masks import enlarged, salient_values, spread
from fieldmark.methods.sam import PROMPTS, Sam, SamTools
from fieldmark.settings import setting, setting_of
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

SHOWN = tuple(name for name in PROMPTS if name != "center")
SHARES = (0.0, 0.25, 0.5, 0.75)
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)
# Photos of train that the organism is learned from at most.
LEARNED_FROM = 400
# How far color moves the boundary at most, as a share of the square root of the area.
REACH = 0.03
ORGANISM = "organism"
Values = NDArray[np.float32]
Way = tuple[str, float, float]


class CutoutTools(NamedTuple):
    """What drawing needs: what stands out and outlines, and what sees the organism."""

    sam: SamTools
    maps: FrozenMaps


@dataclass(frozen=True)
class Cutout(DrawsMasks):
    """The mean of where the organism is and of what the network of the SAM family outlines when it is shown that.

    Where the organism is: how much each place stands out (`saliency`, in the photo and its mirror image), times how
    likely it is the organism, as learned from the masks of train (`organism_maps`). Saliency seldom misses the organism
    and at times takes the flower under it as well; what is learned tells them apart, and SAM draws sharp edges, which
    then move to where colors change. What is left open is chosen on train by mean IoU, where each half is drawn by what
    was learned from the other one.

    Args:
        prompt: What SAM is shown of the map: saliency-box, saliency-points or saliency (both); empty takes the best on
            train.
        share: How much the map counts, from 0 to 1; -1 takes the best of 0, 0.25, 0.5 and 0.75.
        threshold: What is drawn reaches this value; 0 takes the best.
        learned: Whether the organism is learned from the masks of train; else the map is saliency alone.
        refine: Whether the boundary then moves a little, to where colors change (GrabCut).
        weights: The folder of SAM 2 or 3, as for `sam`; empty for MobileSAM.
        saliency: The network for saliency, as for `sam`; empty takes the full one where it is installed.
    """

    prompt: str = setting("saliency-box", choices=("", *SHOWN))
    share: float = setting(-1.0, least=0, most=1, also=(-1.0,))
    threshold: float = setting(0.0, least=0, below=1)
    learned: bool = True
    refine: bool = True
    weights: str = ""
    saliency: str = setting_of(Sam, "saliency")

    learns_from_val: ClassVar[bool] = False

    @property
    def sam(self) -> Sam:
        """What outlines."""
        return Sam(prompt=self.prompt, weights=self.weights, saliency=self.saliency)

    @property
    def external_data(self) -> tuple[str, ...]:
        return (*self.sam.external_data, *(data_behind(NETWORK, "pretrained") if self.learned else ()))

    def fit(self, view: View) -> Fitted:
        method, train = replace(self, saliency=self.saliency or best_at_hand()), view.train.of_known_labels()
        arrays, taken = dict(method.sam.fingerprint()), choices(self, method, USUAL)
        tools, halves = method.start(arrays), _halves(train)
        moments = [method.moments(tools, half) for half in halves] if self.learned else []
        if moments:
            arrays[ORGANISM] = sum_of(moments).weights()
        ways = list(
            product(
                [self.prompt] if self.prompt else SHOWN,
                [self.share] if self.share >= 0 else SHARES,
                [self.threshold] if self.threshold else THRESHOLDS,
            )
        )
        if len(ways) == 1:
            return Fitted(method, arrays, chosen=taken)
        overlaps = np.zeros(len(ways))
        for number, half in enumerate(halves):
            # Photos make what was learned from them look better than it is.
            others = {ORGANISM: moments[1 - number].weights()} if len(moments) == 2 else arrays
            compared = evenly_taken(half, COMPARED // 2)
            overlaps += len(compared) * method._overlaps(tools, others, compared, ways)
        prompt, share, threshold = ways[int(overlaps.argmax())]
        chosen = replace(method, prompt=prompt, share=share, threshold=threshold)
        return Fitted(chosen, arrays, chosen=(*taken, *choices(method, chosen, ON_TRAIN)))

    def moments(self, tools: CutoutTools, train: Part) -> Moments:
        """What there is to learn of the organism from photos with masks."""
        part = evenly_taken(train, LEARNED_FROM // 2)
        seen = enumerate(photos_of(part))
        return sum_of(
            moments_of(tools.maps.look(photo), true_whole(part, row, (photo.height, photo.width)))
            for row, (_, photo) in seen
        )

    def _overlaps(self, tools: CutoutTools, arrays: Arrays, part: Part, ways: Sequence[Way]) -> NDArray[np.float64]:
        """The mean IoU of each way to draw, before color moves boundaries: that takes longest and changes no order."""

        def draw(photo: Image.Image) -> list[Mask]:
            place, outlined = self.looks(tools, arrays, photo, tuple({prompt: None for prompt, _, _ in ways}))
            mixed = {key: mean_of(place, outlined[key[0]], key[1], photo.size) for key in {way[:2] for way in ways}}
            return [mixed[way[:2]] >= way[2] for way in ways]

        return mean_overlaps(part, "cutout", draw)

    def start(self, arrays: Arrays) -> CutoutTools:
        return CutoutTools(self.sam.start(arrays), FrozenMaps())

    def looks(
        self, tools: CutoutTools, arrays: Arrays, photo: Image.Image, prompts: tuple[str, ...]
    ) -> tuple[Values, dict[str, Values]]:
        """Where the organism is, from 0 to 1, and the logits of what is outlined for each prompt."""
        place = salient_values(tools.sam.saliency, photo, mirrored=True)
        if ORGANISM in arrays:
            likely = spread(organism_map(tools.maps.look(photo), arrays[ORGANISM]))
            place = spread(place * enlarged(likely, (place.shape[1], place.shape[0])))
        return place, self.sam.offers(tools.sam, photo, prompts, place)

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        place, outlined = self.looks(state, arrays, photo, (self.prompt,))
        mask = mean_of(place, outlined[self.prompt], self.share, photo.size) >= self.threshold
        return of_whole(along_edges(photo, mask, REACH) if self.refine else mask)


def _halves(train: Part) -> list[Part]:
    """Train as two parts of neighbors, so that photos of one specimen stay together where they are listed together."""
    rows = np.array_split(np.arange(len(train)), 2)
    return [train.take(half) for half in rows if len(half)]


def mean_of(place: Values, logits: Values, share: float, size: tuple[int, int]) -> Values:
    """The weighted mean of a map and the probability of the outline, at the width and height of a photo."""
    outlined = enlarged(expit(logits).astype(np.float32), size)
    return np.asarray(share * enlarged(place, size) + (1 - share) * outlined, dtype=np.float32)
