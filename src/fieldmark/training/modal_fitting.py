"""Trains a network on the features of several modalities, each of which is dropped from some items as it learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.foundation.progress import progress
from fieldmark.training.devices import to_device
from fieldmark.training.modal_networks import Mixing, ModalNetwork

Arrays = dict[str, NDArray[Any]]
# Training ends when so many epochs in a row have not lowered the log loss on val.
PATIENCE = 8
LEAST_STEPS, LEAST_BATCH = 16, 8
BLOCK_ITEMS = 8192


@dataclass(frozen=True)
class ModalData:
    """Items as a network gets them.

    Args:
        features: For each modality one row per item, standardized.
        there: (items, modalities) whether an item has it.
        truth: One label code per item; None where it is to be answered.
    """

    features: Sequence[NDArray[np.float32]]
    there: NDArray[np.bool_]
    truth: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class ModalRecipe:
    """How a network is built and trained.

    Args:
        width: The common width of all modalities.
        mixing: How they are put together.
        epochs: How often all items are gone through, at most where val decides.
        rate, decay: Of AdamW; the rate falls to 0 as half a cosine.
        batch: Items per step, at most; small sets have at least `LEAST_STEPS` steps in an epoch.
        drop: The chance that a modality is dropped from an item for a step; one always stays.
        seed: Of weights, order and drops.
    """

    width: int
    mixing: Mixing
    epochs: int
    rate: float
    decay: float
    batch: int
    drop: float
    seed: int


def fit_network(train: ModalData, val: ModalData | None, n_labels: int, recipe: ModalRecipe) -> tuple[Arrays, int]:
    """Trains a network and returns its weights, and after how many epochs they were taken.

    With val they are those of the lowest log loss there; without, those of the last epoch.
    """
    assert train.truth is not None  # who trains has labels
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        network = ModalNetwork(
            [own.shape[1] for own in train.features], n_labels, width=recipe.width, mixing=recipe.mixing
        ).to(_device())
        _start_from_frequencies(network, train.truth, n_labels)
        optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=recipe.epochs)
        rng = np.random.default_rng(recipe.seed)
        best, best_loss, best_epoch = _weights(network), np.inf, 0
        with progress("training the joint network", recipe.epochs) as tick:
            for epoch in range(1, recipe.epochs + 1):
                _epoch(network, optimizer, train, recipe, rng)
                schedule.step()
                loss = _log_loss(network, val) if val is not None else -float(epoch)
                if loss < best_loss:
                    best, best_loss, best_epoch = _weights(network), loss, epoch
                stopping = val is not None and epoch - best_epoch >= PATIENCE
                tick(recipe.epochs - epoch + 1 if stopping else 1)
                if stopping:
                    break
    return best, best_epoch


def network_scores(arrays: Mapping[str, NDArray[Any]], data: ModalData, mixing: Mixing) -> NDArray[np.float32]:
    """The logits of a network from its weights, one row per item."""
    widths = [int(arrays[f"entries.{m}.0.weight"].shape[1]) for m in range(data.there.shape[1])]
    n_labels, width = arrays["head.weight"].shape
    with torch.random.fork_rng(devices=[]):
        network = ModalNetwork(widths, int(n_labels), width=int(width), mixing=mixing)
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    return _logits(network.to(_device()), data)


def _start_from_frequencies(network: Any, truth: NDArray[np.int32], n_labels: int) -> None:
    """Before it has learned anything, a network answers how frequent labels are; one never seen stays rare."""
    counts = np.bincount(truth, minlength=n_labels) + 0.5 / n_labels
    with torch.no_grad():
        network.head.bias.copy_(torch.from_numpy(np.log(counts / counts.sum()).astype(np.float32)))
        network.head.weight.mul_(0.1)


def _epoch(network: Any, optimizer: Any, train: ModalData, recipe: ModalRecipe, rng: np.random.Generator) -> None:
    assert train.truth is not None
    network.train()
    order = rng.permutation(len(train.truth))
    batch = min(recipe.batch, max(LEAST_BATCH, len(order) // LEAST_STEPS))
    for first in range(0, len(order), batch):
        rows = order[first : first + batch]
        there = _dropped(train.there[rows], recipe.drop, rng)
        logits = network(_tensors(train, rows), to_device(there, _device()))
        loss = torch.nn.functional.cross_entropy(logits, to_device(train.truth[rows].astype(np.int64), _device()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _dropped(there: NDArray[np.bool_], drop: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which modalities a step shows of each item: some are dropped, but never the last."""
    kept = there & (rng.random(there.shape) >= drop)
    bare = ~kept.any(axis=1)
    kept[bare] = there[bare]
    return kept


def _tensors(data: ModalData, rows: NDArray[np.int64] | slice) -> list[Any]:
    return [to_device(own[rows].astype(np.float32, copy=False), _device()) for own in data.features]


def _device() -> Any:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _logits(network: Any, data: ModalData) -> NDArray[np.float32]:
    network.eval()
    found = [np.zeros((0, network.head.out_features), dtype=np.float32)]
    with torch.no_grad():
        for first in range(0, len(data.there), BLOCK_ITEMS):
            rows = slice(first, first + BLOCK_ITEMS)
            found.append(network(_tensors(data, rows), to_device(data.there[rows], _device())).cpu().numpy())
    return np.concatenate(found)


def _log_loss(network: Any, val: ModalData) -> float:
    assert val.truth is not None
    logits = torch.from_numpy(_logits(network, val))
    return float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(val.truth.astype(np.int64))))


def _weights(network: Any) -> Arrays:
    return {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}
