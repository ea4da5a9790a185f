"""The outline of what stands out as a box: MobileSAM, shown the box of U²-Netp."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.crops import box_around, finder_digest, look_of
from fieldmark.features.photos import decode_photo
from fieldmark.features.saliency import Saliency
from fieldmark.features.segment_anything import LONGEST_PX, SegmentAnything

OUTLINE_VERSION = 1
# An outline of less than this share of the photo is a speck.
SMALLEST_SHARE = 0.002


@dataclass(frozen=True)
class Outliner:
    """Shows MobileSAM what stands out (the middle of the photo where nothing does) and takes the box of its mask."""

    saliency: Saliency = field(default_factory=Saliency)

    source: ClassVar[str] = "sam"
    what: ClassVar[str] = "drawing outlines"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""
        return finder_digest("sam", OUTLINE_VERSION, SMALLEST_SHARE, LONGEST_PX, self.saliency.digest)

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The box around the outline, and width / height of the photo.

        Raises:
            PhotoError: When the bytes are no photo or end too early.
        """
        photo = decode_photo(data, at_least_px=LONGEST_PX)
        prompt = self.saliency.rule.box(self.saliency.map(photo))
        network, one_at_a_time = self._network
        with one_at_a_time:  # the network remembers the photo that it looked at last
            seen = network.look(photo)
            middle = np.array([[0.5, 0.5]])
            mask = seen.draw(prompt)[0].mask if prompt is not None else seen.draw(points=middle)[0].mask
        box = box_around(mask) if mask.mean() >= SMALLEST_SHARE else None
        return look_of(box or prompt, photo.width / photo.height)

    @cached_property
    def _network(self) -> tuple[SegmentAnything, Any]:
        return SegmentAnything(), Lock()
