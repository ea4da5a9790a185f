"""How good a network is on val: a few numbers per example, from which every metric is computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.metrics.classification import Over, macro_f1
from fieldmark.training.losses import Loss

Tensor = Any


class Outcomes(NamedTuple):
    """What val examples came to: their loss, the class answered, and the place of the true class (0 is first)."""

    losses: NDArray[np.float32]
    answers: NDArray[np.int32]
    places: NDArray[np.int32]


def outcomes(logits: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """Loss, answer and place of the true class of each example, as columns.

    Among equal logits the lower class comes first. Where several classes may be true, the place is that of the best
    one of them.
    """
    logits = logits.float()
    best_true = torch.where(labels > 0, logits, -torch.inf).argmax(dim=1) if labels.ndim == 2 else labels
    own = logits.gather(1, best_true[:, None])
    earlier = torch.arange(logits.shape[1], device=logits.device)[None, :] < best_true[:, None]
    places = ((logits > own) | ((logits == own) & earlier)).sum(dim=1)
    return torch.stack([loss(logits, labels), logits.argmax(dim=1).float(), places.float()], dim=1)


def metrics_of(found: Outcomes, labels: NDArray[Any], classes: int) -> dict[str, float]:
    """The metrics a recipe may choose the best epoch by."""
    values = {"loss": float(found.losses.mean(dtype=np.float64))}
    values |= {f"top_{k}": float((found.places < k).mean()) for k in (1, 3, 5)}
    if labels.ndim == 1:
        overs: tuple[Over, ...] = ("all", "present")
        for over in overs:
            values[f"macro_f1_{over}"] = float(macro_f1(labels, found.answers, n_classes=classes, over=over))
    return values


def better(value: float | None, best: float | None, best_by: str) -> bool:
    """Whether a value is to be preferred to the best so far. The earlier epoch wins a tie; "last" always moves on."""
    if value is None or best is None or best_by == "last":
        return True
    return value < best if best_by == "loss" else value > best
