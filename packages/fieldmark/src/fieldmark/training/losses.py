"""Losses over logits, most of them for long tails.

Each takes logits (batch x classes) and labels (the code of each example's class, or for `binary` one 0/1 per class)
and returns one loss per example, so that examples can be weighted and mixed. No loss holds more than a few arrays of
batch x classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.errors import MisuseError, did_you_mean

Tensor = Any
Loss = Callable[[Tensor, Tensor], Tensor]

# The value of pixels of a mask that count neither as right nor as wrong.
UNKNOWN_PIXEL = 255


def cross_entropy(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """-log softmax of the true class; with smoothing, a share of the target is spread evenly over all classes."""
    return functional.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)


def focal(logits: Tensor, labels: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Cross-entropy times (1 - p)^gamma, p the probability of the true class: what is easy counts less.

    Lin et al., "Focal loss for dense object detection" (2017), without the balancing factor.
    """
    loss = functional.cross_entropy(logits, labels, reduction="none")
    return (1 - torch.exp(-loss)) ** gamma * loss


def binary(logits: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy, summed over the classes: several classes may be true at once."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").sum(dim=1)


@dataclass(frozen=True)
class LogitAdjusted:
    """Cross-entropy of logits + strength x log frequency, so that logits without the at_least_one are learned.

    Menon et al., "Long-tail learning via logit adjustment" (2021). Strength 1 is the balanced softmax of Ren et al.,
    "Balanced meta-softmax for long-tailed visual recognition" (2020).
    """

    log_frequency: Tensor
    strength: float = 1.0

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits + self.strength * self.log_frequency, labels, reduction="none")


@dataclass(frozen=True)
class SeeSaw:
    """Cross-entropy in which a frequent class pushes rare ones down less, and a mistaken one is pushed down more.

    Wang et al., "Seesaw loss for long-tailed instance segmentation" (2021): with i the true class and N the counts,

        L = -log( e^z_i / (e^z_i + sum over j != i of S_ij e^z_j) ),   S_ij = M_ij C_ij
        M_ij = min(1, N_j / N_i)^p            mitigation: j rarer than i is punished less
        C_ij = max(1, s_j / s_i)^q            compensation: j that the softmax s prefers to i is punished more

    log S is added to the logits of one row per example: classes x classes is never formed. Counts are those of the
    whole training set, where the paper counts as it goes; both have the same ratios in the long run.

    Args:
        log_counts: Log of the training photos of each class.
        p: The strength of mitigation.
        q: The strength of compensation; 0 is the variant of the organizers of FungiTastic.
    """

    log_counts: Tensor
    p: float = 0.8
    q: float = 2.0

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        own = labels[:, None]
        factor = self.p * (self.log_counts[None, :] - self.log_counts[own]).clamp(max=0)
        if self.q:
            detached = logits.detach()
            factor = factor + self.q * (detached - detached.gather(1, own)).clamp(min=0)
        return functional.cross_entropy(logits + factor.to(logits.dtype), labels, reduction="none")


@dataclass(frozen=True)
class MaskLoss:
    """A loss of pixels plus Dice: logits of batch x classes x height x width, masks of batch x height x width.

        L = mean over pixels of the loss of a pixel
            + dice x (1 - mean over the classes c of the mask of 2 sum p_c t_c / (sum p_c + sum t_c))

    with p the softmax and t 1 where the mask has class c. In Dice every class of a mask has the same weight, however
    few pixels it has (Milletari et al., "V-Net", 2016, for several classes). Sums run over the known pixels of one
    example, so that a batch in parts has the loss of the whole.

    Args:
        of_pixels: The loss of single pixels.
        dice: The weight of Dice.
    """

    of_pixels: Loss
    dice: float = 1.0

    def __call__(self, logits: Tensor, masks: Tensor) -> Tensor:
        logits, known = logits.float(), masks != UNKNOWN_PIXEL
        masks = torch.where(known, masks, 0)
        losses = self.of_pixels(logits.movedim(1, -1).flatten(0, 2), masks.flatten()).view_as(masks)
        mean = (losses * known).sum(dim=(1, 2)) / known.sum(dim=(1, 2)).clamp(min=1)
        return mean + self.dice * dice_loss(logits, masks, known)


def dice_loss(logits: Tensor, masks: Tensor, known: Tensor) -> Tensor:
    """1 - Dice of each example, averaged over the classes of its mask; 0 where no pixel is known."""
    answered = logits.softmax(dim=1) * known[:, None]
    true = functional.one_hot(masks, logits.shape[1]).movedim(-1, 1) * known[:, None]
    both, size = (answered * true).sum(dim=(2, 3)), true.sum(dim=(2, 3))
    present = size > 0
    missed = torch.where(present, 1 - 2 * both / (answered.sum(dim=(2, 3)) + size).clamp(min=1), 0)
    return missed.sum(dim=1) / present.sum(dim=1).clamp(min=1)


LOSSES = {
    "cross-entropy": "plain cross-entropy (label_smoothing spreads a share of the target)",
    "seesaw": "SeeSaw with mitigation and compensation, as in its paper",
    "seesaw-mitigation": "SeeSaw without compensation, as the organizers of FungiTastic used it",
    "balanced-softmax": "cross-entropy of logits plus log at_least_one",
    "logit-adjusted": "the same, with a strength (loss_strength)",
    "focal": "what is easy counts less (loss_strength is gamma)",
    "binary": "binary cross-entropy; several classes may be true at once",
}


def make_loss(name: str, counts: NDArray[np.int64], device: Any, *, smoothing: float, strength: float) -> Loss:
    """The loss of a name for the given training counts.

    Classes without a training photo count as one with a single photo, so that no logarithm is infinite.

    Raises:
        MisuseError: For a name that is not known, or smoothing where the loss has none.
    """
    if name not in LOSSES:
        raise MisuseError(f"There is no loss called {name!r}. {did_you_mean(name, LOSSES)}")
    if smoothing and name != "cross-entropy":
        raise MisuseError(f"label_smoothing goes with cross-entropy, not with {name}.")
    at_least_one = np.maximum(counts, 1).astype(np.float64)
    log_counts = torch.tensor(np.log(at_least_one), dtype=torch.float32, device=device)
    log_frequency = torch.tensor(np.log(at_least_one / at_least_one.sum()), dtype=torch.float32, device=device)
    losses: dict[str, Loss] = {
        "cross-entropy": lambda logits, labels: cross_entropy(logits, labels, smoothing=smoothing),
        "seesaw": SeeSaw(log_counts),
        "seesaw-mitigation": SeeSaw(log_counts, q=0.0),
        "balanced-softmax": LogitAdjusted(log_frequency),
        "logit-adjusted": LogitAdjusted(log_frequency, strength),
        "focal": lambda logits, labels: focal(logits, labels, gamma=strength),
        "binary": binary,
    }
    return losses[name]
