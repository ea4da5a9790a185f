"""How good a network is on val: a few numbers per example, from which every metric is computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.metrics.classification import Over, macro_f1
from fieldmark.metrics.segmentation import pooled_miou

Tensor = Any

# How many columns `label_outcomes` has.
LABEL_OUTCOMES = 3


class Outcomes(NamedTuple):
    """What val examples came to: their loss, the class answered, and the place of the true class (0 is first)."""

    losses: NDArray[np.float32]
    answers: NDArray[np.int32]
    places: NDArray[np.int32]

    @classmethod
    def of(cls, columns: NDArray[np.float32]) -> Outcomes:
        """The outcomes in the columns of `label_outcomes`."""
        return cls(columns[:, 0], columns[:, 1].astype(np.int32), columns[:, 2].astype(np.int32))


def label_outcomes(losses: Tensor, logits: Tensor, true: Tensor) -> Tensor:
    """Loss, answer and place of the true class of each example, as columns.

    Among equal logits the lower class comes first.
    """
    own = logits.gather(1, true[:, None])
    earlier = torch.arange(logits.shape[1], device=logits.device)[None, :] < true[:, None]
    places = ((logits > own) | ((logits == own) & earlier)).sum(dim=1)
    return torch.stack([losses, logits.argmax(dim=1).float(), places.float()], dim=1)


def place_metrics(outcomes: Outcomes) -> dict[str, float]:
    """The mean loss, and how often the true class is among the first 1, 3 and 5."""
    values = {"loss": float(outcomes.losses.mean(dtype=np.float64))}
    return values | {f"top_{k}": float((outcomes.places < k).mean()) for k in (1, 3, 5)}


def macro_f1_metrics(outcomes: Outcomes, labels: NDArray[np.int32], classes: int) -> dict[str, float]:
    """Macro-F1 of the classes answered, over all classes and over those that occur."""
    overs: tuple[Over, ...] = ("all", "present")
    scores = {over: macro_f1(labels, outcomes.answers, n_classes=classes, over=over) for over in overs}
    return {f"macro_f1_{over}": float(score) for over, score in scores.items()}


def mask_outcomes(losses: Tensor, logits: Tensor, masks: Tensor, known: Tensor) -> Tensor:
    """Loss, then the pixels of each class in both mask and answer, then those in either, as columns.

    Args:
        losses: The loss of each example.
        logits: Batch x classes x height x width.
        masks: The class of each pixel.
        known: Which pixels count.
    """
    classes = torch.arange(logits.shape[1], device=logits.device).view(1, -1, 1, 1)
    true = (masks[:, None] == classes) & known[:, None]
    answered = (logits.argmax(dim=1, keepdim=True) == classes) & known[:, None]
    both, either = (pixels.sum(dim=(2, 3)) for pixels in (true & answered, true | answered))
    return torch.cat([losses[:, None], both.float(), either.float()], dim=1)


def mask_metrics(columns: NDArray[np.float32], classes: int) -> dict[str, float]:
    """The mean loss, the pooled mean IoU over the classes that occur, and the share of pixels answered rightly."""
    both, either = np.split(columns[:, 1:].astype(np.int64), 2, axis=1)
    parts = [str(code) for code in range(classes)]
    # A pixel answered wrongly is in the union of two classes, one answered rightly in that of one.
    right, pixels = int(both.sum()), int(either.sum() + both.sum()) / 2
    return {
        "loss": float(columns[:, 0].mean(dtype=np.float64)),
        "miou": pooled_miou(both, either, parts=parts, background=True),
        "pixel_accuracy": right / max(1, pixels),
    }


def better(value: float | None, best: float | None, best_by: str) -> bool:
    """Whether a value is better than the best so far. The earlier epoch wins a tie; "last" always moves on."""
    if value is None or best is None or best_by == "last":
        return True
    return value < best if best_by == "loss" else value > best
