"""What stands out and what Segment Anything outlines, with one voice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.special import expit

from fieldmark.features.saliency import best_at_hand
from fieldmark.masks.parts import Mask
from fieldmark.methods.base import ON_TRAIN, USUAL, Arrays, Fitted, choices
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole
from fieldmark.methods.salient_masks import cut, enlarged, salient_values
from fieldmark.methods.sam import PROMPTS, Sam, SamTools
from fieldmark.settings import setting, setting_of
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import View

SHOWN = tuple(name for name in PROMPTS if name != "center")
SHARES = (0.0, 0.25, 0.5, 0.75)
THRESHOLDS = (0.4, 0.5, 0.6, 0.7)
Values = NDArray[np.float32]


@dataclass(frozen=True)
class Cutout(DrawsMasks):
    """The mean of `saliency` and `sam`: how much each place stands out, in the photo and its mirror image, and the
    probability that the network of the SAM family, shown what stands out, gives it.

    Saliency seldom misses the organism and draws soft edges; SAM draws sharp ones and at times takes a part for the
    whole. It needs no training; what is left open is chosen on train by mean IoU.

    Args:
        prompt: What SAM is shown: saliency-box, saliency-points or saliency (both); empty takes the best on train.
        share: How much saliency counts, from 0 to 1; -1 takes the best of 0, 0.25, 0.5 and 0.75.
        threshold: What is drawn reaches this value; 0 takes the best.
        refine: Whether the boundary is then moved to where colors change, by GrabCut.
        weights: The folder of SAM 2 or 3, as for `sam`; empty for MobileSAM.
        saliency: The network for saliency, as for `sam`; empty takes the full one where it is installed.
    """

    prompt: str = setting("", choices=("", *SHOWN))
    share: float = setting(-1.0, least=0, most=1, also=(-1.0,))
    threshold: float = setting(0.0, least=0, below=1)
    refine: bool = False
    weights: str = ""
    saliency: str = setting_of(Sam, "saliency")

    learns_from_val: ClassVar[bool] = False

    @property
    def sam(self) -> Sam:
        """What outlines."""
        return Sam(prompt=self.prompt, weights=self.weights, saliency=self.saliency)

    @property
    def external_data(self) -> tuple[str, ...]:
        return self.sam.external_data

    def fit(self, view: View) -> Fitted:
        method = replace(self, saliency=self.saliency or best_at_hand())
        arrays, taken = method.sam.fingerprint(), choices(self, method, USUAL)
        ways = list(
            product(
                [self.prompt] if self.prompt else SHOWN,
                [self.share] if self.share >= 0 else SHARES,
                [self.threshold] if self.threshold else THRESHOLDS,
            )
        )
        if len(ways) == 1:
            return Fitted(method, arrays, chosen=taken)
        train, tools = evenly_taken(view.train.of_known_labels()), method.start({})

        def draw(photo: Image.Image) -> list[Mask]:
            salient, outlined = method.looks(tools, photo, tuple({prompt: None for prompt, _, _ in ways}))
            mixed = {key: mean_of(salient, outlined[key[0]], key[1], photo.size) for key in {way[:2] for way in ways}}
            return [cut(photo, mixed[way[:2]], way[2], refine=self.refine) for way in ways]

        prompt, share, threshold = ways[int(mean_overlaps(train, "cutout", draw).argmax())]
        chosen = replace(method, prompt=prompt, share=share, threshold=threshold)
        return Fitted(chosen, arrays, chosen=(*taken, *choices(method, chosen, ON_TRAIN)))

    def start(self, arrays: Arrays) -> SamTools:
        return self.sam.start(arrays)

    def looks(self, tools: SamTools, photo: Image.Image, prompts: tuple[str, ...]) -> tuple[Values, dict[str, Values]]:
        """How much each place stands out, and the logits of what is outlined for each prompt."""
        salient = salient_values(tools.saliency, photo, mirrored=True)
        return salient, self.sam.offers(tools, photo, prompts, salient)

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        salient, outlined = self.looks(state, photo, (self.prompt,))
        mixed = mean_of(salient, outlined[self.prompt], self.share, photo.size)
        return of_whole(cut(photo, mixed, self.threshold, refine=self.refine))


def mean_of(salient: Values, logits: Values, share: float, size: tuple[int, int]) -> Values:
    """The weighted mean of saliency and the probability of the outline, at the width and height of a photo."""
    outlined = enlarged(expit(logits).astype(np.float32), size)
    return np.asarray(share * enlarged(salient, size) + (1 - share) * outlined, dtype=np.float32)
