"""Finders that were trained to detect: YOLOX-tiny on camera traps, Faster R-CNN on COCO or on boxes of one's own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box, finder_digest, look_of
from fieldmark.features.photos import decode_photo
from fieldmark.features.yolox import FILE_SHA256, SIDE_PX, AnimalFinder

# Raised whenever the same weights and rules would give other boxes.
DETECTING_VERSION = 1
COCO_FILE = "fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9.pth"
# The first label of COCO: people hold snakes, and are not what is asked about.
PERSON = 1
# Under which name the file of a trained detector says how it is used.
DETECTOR = "fieldmark_detector"


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


def box_network(size: int) -> Any:
    """Torchvision's Faster R-CNN on a small network, for one kind of thing in squares of a side."""
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    return fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=2, min_size=size, max_size=size
    )


@dataclass(frozen=True)
class TrainedFinder:
    """The surest box of a detector that was trained on boxes (`training.detection`).

    Args:
        file: Its file: weights, and beside them the side of its squares and what it was trained on.
        size: The side of the squares that photos are made.
        sure: Below this the photo is shown whole.
        content: A digest of the file.
    """

    file: Path
    size: int
    sure: float
    content: str

    what: ClassVar[str] = "looking for organisms"

    @classmethod
    def open(cls, file: Path) -> TrainedFinder:
        """The detector in a file.

        Raises:
            InputError: When there is none, or it is something else.
        """
        try:
            with safe_open(file, "np") as opened:
                about = json.loads((opened.metadata() or {})[DETECTOR])
            digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
            return cls(file, int(about["size"]), float(about["sure"]), digest)
        except (OSError, KeyError, ValueError, TypeError, SafetensorError) as error:
            expected = "a detector that `fieldmark detector` trained"
            raise InputError(file, found="none, or something else", expected=expected) from error

    @property
    def source(self) -> str:
        """Under which name crops ask for it."""
        return str(self.file)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""
        return finder_digest("trained", DETECTING_VERSION, self.content, self.sure)

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The surest box, zeros where none is sure enough, and width / height of the photo.

        Raises:
            PhotoError: When the bytes are no photo or end too early.
        """
        photo = decode_photo(data, at_least_px=self.size)
        square = np.asarray(photo.resize((self.size, self.size), Image.Resampling.BILINEAR), dtype=np.float32)
        with torch.inference_mode():
            found = self._network([torch.from_numpy(square.transpose(2, 0, 1) / 255)])[0]
        if not len(found["scores"]) or float(found["scores"].max()) < self.sure:
            return look_of(None, photo.width / photo.height)
        edges = found["boxes"][found["scores"].argmax()].tolist()
        return look_of(Box(*(min(max(edge / self.size, 0.0), 1.0) for edge in edges)), photo.width / photo.height)

    @cached_property
    def _network(self) -> Any:
        network = box_network(self.size)
        network.load_state_dict(load_file(self.file))
        return network.eval().requires_grad_(False)
