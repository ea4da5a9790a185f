"""Find, crop, classify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.features.crops import DETECTOR_FILE, SOURCES
from fieldmark.methods.headed import Headed
from fieldmark.settings import setting

FINDERS = (*SOURCES, "none")


@dataclass(frozen=True)
class Detect(Headed):
    """Finds the organism, cuts it out, and lets a classifier of features name it.

    Bloch et al., "Combination of image and location information for snake species identification using object detection
    and EfficientNets" (2020) did so with Mask R-CNN. A photo in which nothing is found is shown whole. For a network
    that learns on crops itself take `finetune` with `crop=FINDER`, or give its run here as the backbone.

    Args:
        finder: Who finds the organism (`features.finders`), a detector that was trained on boxes (a file of
            `fieldmark detector`), `boxes` or `masks` for those of the release, or `none` for whole photos: the control.
    """

    finder: str = setting("saliency", choices=tuple(FINDERS), file=DETECTOR_FILE)

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if "crop" in settings:
            raise MisuseError("detect crops by its finder: pass --set finder=... instead of crop.")
        return {**settings, "crop": settings.get("finder", cls.finder)}
