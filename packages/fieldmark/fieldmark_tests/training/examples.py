"""Small examples for the engine, and networks that learn them in seconds.

Stripes of four directions (all labeled, or a quarter of them), and masks of squares. Run as a program it trains in a
folder, so that tests can kill it or start it in two processes:
`python -m fieldmark_tests.training.examples FOLDER [--example NAME] [--die-at CALL]`.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.training.consistency import Consistency
from fieldmark.training.draws import Draws
from fieldmark.training.loop import Trained, train
from fieldmark.training.objectives import MaskObjective, SingleLabel, pixels_of_classes
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import UNLABELED
from fieldmark.training.sources import WeakAndStrong

CLASSES = 4
HOW = Training(lr=3e-3, epochs=5, batch=16, ema=0.9, best_by="top_1", workers=1, checkpoint_minutes=0.0)


@dataclass(frozen=True)
class Stripes:
    """Noisy stripes; where they begin is drawn each time they are shown."""

    count: int
    labels: NDArray[np.int32] = field(init=False)
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", (np.arange(self.count) % CLASSES).astype(np.int32))

    def __len__(self) -> int:
        return self.count

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        phase = np.zeros(len(rows)) if draws is None else draws.uniform("phase", 0, 2 * np.pi)
        y, x = np.mgrid[:12, :12]
        pictures = [
            np.sin(0.9 * (x * np.cos(angle) + y * np.sin(angle)) + shift)
            for angle, shift in zip(rows % CLASSES * np.pi / CLASSES, phase, strict=True)
        ]
        noise = np.stack([np.random.default_rng(row).normal(0, 0.3, (12, 12)) for row in rows])
        return ((np.stack(pictures) + noise).astype(np.float32)[:, None],)

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[Any]:
        return self.labels[rows]


class PartlyLabeled(Stripes):
    """Stripes of which the first quarter has labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.labels[self.count // 4 :] = UNLABELED


@dataclass(frozen=True)
class Squares:
    """A bright and a dark square in noise, mirrored at random, with the mask of both; the lowest row is unknown."""

    count: int
    labels: NDArray[np.int64] = field(init=False)
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        masks = self.read_targets(np.arange(self.count), None)
        object.__setattr__(self, "labels", pixels_of_classes(masks, 3))

    def __len__(self) -> int:
        return self.count

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        masks = self.read_targets(rows, draws)
        noise = np.stack([np.random.default_rng(row).normal(0, 0.3, (12, 12)) for row in rows])
        return (((masks == 1) * 1.0 - (masks == 2) + noise).astype(np.float32)[:, None],)

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[np.uint8]:
        masks = np.zeros((len(rows), 12, 12), dtype=np.uint8)
        for mask, row in zip(masks, rows, strict=True):
            rng = np.random.default_rng([row, 1])
            for code, side in ((1, 6), (2, 3)):
                top, left = rng.integers(0, 12 - side, 2)
                mask[top : top + side, left : left + side] = code
        masks[:, -1] = 255
        if draws is not None:
            mirrored = draws.chance("flip")
            masks[mirrored] = masks[mirrored][:, :, ::-1]
        return masks


def interrupt() -> None:
    """Does what Ctrl-C would do now, without a signal: one that came late would end the process that runs the tests."""
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    handler(signal.SIGINT, None)


def plain(raw: Sequence[Any], draws: Draws | None) -> Any:
    """Inputs as they are."""
    return raw[0]


def strong(raw: Sequence[Any], draws: Draws | None) -> Any:
    """Inputs of which a band is blanked."""
    assert draws is not None and draws.strong
    inputs = raw[0].clone()
    for picture, top in zip(inputs, draws.integers("top", 9), strict=True):
        picture[:, top : top + 3] = 0
    return inputs


def network(dropout: float) -> Any:
    """A small network without batch norm, so that it learns the same in any number of processes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5),
        torch.nn.GELU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(32, CLASSES),
    )


def mask_network(dropout: float) -> Any:
    """A small network with logits for every pixel."""
    torch.manual_seed(0)
    first, last = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Conv2d(8, 3, 3, padding=1)
    return torch.nn.Sequential(first, torch.nn.GELU(), torch.nn.Dropout(dropout), last)


def train_stripes(folder: Path, how: Training = HOW, *, dropout: float = 0.2, transform: Any = plain) -> Trained:
    """Twenty steps over 64 examples."""
    return train(
        network(dropout), Stripes(64), Stripes(30), transform, how, objective=SingleLabel(CLASSES), scratch=folder
    )


def train_partly_labeled(
    folder: Path, how: Training = HOW, *, dropout: float = 0.2, transform: Any = plain, objective: Any = None
) -> Trained:
    """Twenty steps over 16 labeled examples and 48 others; `transform` is that of the weak view."""
    objective = objective or Consistency(CLASSES, threshold=0.3, unlabeled_each=3)
    views = WeakAndStrong(transform, strong)
    parts = PartlyLabeled(64), Stripes(30)
    return train(network(dropout), *parts, views, how, objective=objective, scratch=folder)


def train_masks(folder: Path, how: Training = HOW, *, dropout: float = 0.2, transform: Any = plain) -> Trained:
    """Twenty steps over 64 masks."""
    how = replace(how, best_by="miou")
    parts = Squares(64), Squares(30)
    return train(mask_network(dropout), *parts, transform, how, objective=MaskObjective(3), scratch=folder)


EXAMPLES = {"single": train_stripes, "consistency": train_partly_labeled, "masks": train_masks}


def main() -> None:
    """Trains, and dies in the middle of a step if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--example", choices=EXAMPLES, default="single")
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--dropout", type=float, default=0.2)
    arguments = parser.parse_args()
    steps = 0

    def deadly(raw: Sequence[Any], draws: Draws | None) -> Any:
        nonlocal steps
        steps += draws is not None
        if steps == arguments.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(raw, draws)

    EXAMPLES[arguments.example](arguments.folder, dropout=arguments.dropout, transform=deadly)


if __name__ == "__main__":
    main()
