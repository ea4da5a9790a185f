"""A detector trained on boxes: Faster R-CNN (Ren et al. 2015) of torchvision, one kind of thing, squares in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.features.detectors import box_network
from fieldmark.settings import Settings, setting
from fieldmark.work.progress import progress

# The squares of some rows: (rows, side, side, 3) bytes.
Read = Callable[[NDArray[np.int64]], NDArray[np.uint8]]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class DetectorRecipe(Settings):
    """How a detector is trained.

    Args:
        size: The side in pixels of the squares that photos are made.
        epochs: How often all photos are gone through.
        batch: Photos in a step.
        lr: The learning rate of AdamW at its highest; it falls to 0 along a cosine.
        weight_decay: How strongly weights are drawn to zero.
        weights: "random", or a file of torchvision's Faster R-CNN, whose last layer is left behind.
        sure: From which score on a box counts when the detector is used.
        seed: Of weights, order and mirroring.
    """

    size: int = setting(320, least=64)
    epochs: int = setting(20, least=1)
    batch: int = setting(8, least=1)
    lr: float = setting(5e-4, above=0)
    weight_decay: float = 1e-4
    weights: str = "random"
    sure: float = setting(0.25, least=0, most=1)
    seed: int = 0


def train_detector(read: Read, boxes: Shares, recipe: DetectorRecipe) -> dict[str, Any]:
    """The weights of a detector after training.

    Args:
        read: Gives the squares of some photos.
        boxes: The box of each as shares of its sides: left, top, right, bottom.
        recipe: How it is trained.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        network = box_network(recipe.size).to(device)
        if recipe.weights != "random":
            _begin_with(network, recipe.weights)
        rng = np.random.default_rng(recipe.seed)
        optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
        steps = recipe.epochs * -(-len(boxes) // recipe.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        network.train()
        with progress("training the detector", steps) as tick:
            for _ in range(recipe.epochs):
                order = rng.permutation(len(boxes))
                for start in range(0, len(order), recipe.batch):
                    rows = np.sort(order[start : start + recipe.batch])
                    pictures, targets = _batch(read(rows), boxes[rows], rng, device)
                    loss = sum(network(pictures, targets).values())
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
                    optimizer.step()
                    schedule.step()
                    tick(1)
    return {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}


def _batch(
    squares: NDArray[np.uint8], boxes: Shares, rng: np.random.Generator, device: Any
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Pictures with their boxes in pixels, half of them mirrored."""
    pictures, targets = [], []
    side = squares.shape[1]
    for square, (left, top, right, bottom) in zip(squares, boxes, strict=True):
        pixels = torch.from_numpy(square).to(device).permute(2, 0, 1).float().div(255)
        if rng.random() < 0.5:
            pixels, left, right = pixels.flip(2), 1 - right, 1 - left
        box = torch.tensor([[left, top, right, bottom]], dtype=torch.float32, device=device) * side
        pictures.append(pixels)
        targets.append({"boxes": box, "labels": torch.ones(1, dtype=torch.int64, device=device)})
    return pictures, targets


def _begin_with(network: Any, file: str) -> None:
    """Loads weights of the same network for other things; its last layer is another one."""
    begun = torch.load(file, map_location="cpu", weights_only=True)
    own = network.state_dict()
    fitting = {name: tensor for name, tensor in begun.items() if name in own and own[name].shape == tensor.shape}
    network.load_state_dict({**own, **fitting})
