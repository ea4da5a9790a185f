"""Find, crop, classify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.cropping import SOURCES
from fieldmark.methods.headed import Headed

FINDERS = (*SOURCES, "none")


@dataclass(frozen=True)
class Detect(Headed):
    """Finds the organism, cuts it out, and lets a classifier of features name it.

    Bloch et al., "Combination of image and location information for snake species identification using object detection
    and EfficientNets" (2020) did so with Mask R-CNN. A photo in which nothing is found is shown whole. For a network
    that learns on crops itself take `finetune` with `crop=FINDER`, or give its run here as the backbone.

    Args:
        finder: Who finds the organism (`features.finding`), `boxes` or `masks` for those of the release, or `none`
            for whole photos: the control.
    """

    finder: str = "saliency"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finder not in FINDERS:
            raise MisuseError(f"There is no finder={self.finder}. {did_you_mean(self.finder, FINDERS)}")

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if "crop" in settings:
            raise MisuseError("detect crops by its finder: pass --set finder=... instead of crop.")
        return {**settings, "crop": settings.get("finder", cls.finder)}
