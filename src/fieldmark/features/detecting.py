"""Finders that were trained to detect: YOLOX-tiny on camera traps, torchvision's Faster R-CNN on COCO."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.features.cropping import Box, finder_digest, look_of
from fieldmark.features.photos import decode_photo
from fieldmark.features.yolox import FILE_SHA256, SIDE_PX, AnimalFinder

# Raised whenever the same weights and rules would give other boxes.
DETECTING_VERSION = 1
COCO_FILE = "fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9.pth"
# The first label of COCO: people hold snakes, and are not what is asked about.
PERSON = 1


@dataclass(frozen=True)
class YoloxFinder:
    """The surest box with an animal.

    Args:
        sure: Below this the photo is shown whole; what the authors of the weights take.
    """

    sure: float = 0.25

    source: ClassVar[str] = "yolox"
    what: ClassVar[str] = "looking for animals"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""
        return finder_digest("yolox", DETECTING_VERSION, SIDE_PX, FILE_SHA256, self.sure)

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The surest box, zeros where none is sure enough, and width / height of the photo.

        Raises:
            PhotoError: When the bytes are no photo or end too early.
        """
        photo = decode_photo(data, at_least_px=SIDE_PX)
        surest = self._finder.best([photo])[0]
        return look_of(surest.box if surest.sure >= self.sure else None, photo.width / photo.height)

    @cached_property
    def _finder(self) -> AnimalFinder:
        return AnimalFinder()


@dataclass(frozen=True)
class CocoFinder:
    """The surest box with a thing of COCO that is no person: snakes are none of its 90 kinds, and pass for some.

    The weights are torchvision's own. They are not downloaded: the file must lie among the checkpoints of torch.

    Args:
        sure: Below this the photo is shown whole.
    """

    sure: float = 0.25

    source: ClassVar[str] = "detector"
    what: ClassVar[str] = "looking for things"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""
        return finder_digest("coco", DETECTING_VERSION, COCO_FILE, self.sure)

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The surest box, zeros where none is sure enough, and width / height of the photo.

        Raises:
            PhotoError: When the bytes are no photo or end too early.
        """
        photo = decode_photo(data, at_least_px=SIDE_PX)
        pixels = torch.from_numpy(np.asarray(photo, dtype=np.float32).transpose(2, 0, 1) / 255)
        with torch.inference_mode():
            things = self._network([pixels])[0]
        return look_of(self._box(things, photo), photo.width / photo.height)

    def _box(self, things: dict[str, torch.Tensor], photo: Image.Image) -> Box | None:
        kept = (things["labels"] != PERSON) & (things["scores"] >= self.sure)
        if not kept.any():
            return None
        edges = things["boxes"][kept][things["scores"][kept].argmax()].tolist()
        size = (photo.width, photo.height, photo.width, photo.height)
        return Box(*(min(max(edge / side, 0.0), 1.0) for edge, side in zip(edges, size, strict=True)))

    @cached_property
    def _network(self) -> Any:
        path = coco_weights()
        if not path.is_file():
            raise MisuseError(
                f"crop=detector needs torchvision's weights, which are not at {path}: download {COCO_FILE} "
                "from download.pytorch.org/models and put it there, or take crop=saliency."
            )
        from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

        network = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None)
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return network.eval().requires_grad_(False)


def coco_weights() -> Path:
    """Where the weights of torchvision's detector are looked for."""
    return Path(torch.hub.get_dir(), "checkpoints", COCO_FILE)
