"""Small examples for the engine, and networks that learn them in seconds.

Stripes of four directions. Run as a program it trains in a
folder, so that tests can kill it or start it in two processes:
`python -m tests.training.examples FOLDER [--example NAME] [--die-at CALL]`.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.training.draws import Draws
from fieldmark.training.loop import Trained, train
from fieldmark.training.objectives import SingleLabel
from fieldmark.training.recipe import Training

CLASSES = 4
HOW = Training(lr=3e-3, epochs=5, batch=16, ema=0.9, best_by="top_1", workers=1, checkpoint_minutes=0.0)


@dataclass(frozen=True)
class Stripes:
    """Noisy stripes; where they begin is drawn anew each time they are shown."""

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


def plain(raw: Sequence[Any], draws: Draws | None) -> Any:
    """Inputs as they are."""
    return raw[0]


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


def train_stripes(folder: Path, how: Training = HOW, *, dropout: float = 0.2, transform: Any = plain) -> Trained:
    """Twenty steps over 64 examples."""
    return train(
        network(dropout), Stripes(64), Stripes(30), transform, how, objective=SingleLabel(CLASSES), scratch=folder
    )


EXAMPLES = {"single": train_stripes}


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
