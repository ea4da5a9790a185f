"""Small networks on the features of several modalities, any of which may be missing from an item.

Each modality m becomes z_m = norm(gelu(A_m x_m)) of one common width; where it is missing, a learned vector stands in.
A series of months enters through convolutions along time instead (`SeriesEntry`).

    gated:    h = sum over m of s_m z_m,  s = softmax over m of scores of (z_1, ..., z_M), one for each number of z
              (gated multimodal units: Arevalo et al. 2017)
    dynamic:  c = gelu(C (z_2, ..., z_M));  u = P z_1;  twice: u = gelu(norm(W(c) u)), with the matrix W(c) linear in c;
              h = z_1 + Q u  (Yang et al., "Dynamic MLP for fine-grained image classification", 2022)

The logits are linear in h. As a network learns, each modality is dropped from some items. Arrays of NumPy come in and
go out; nothing here knows of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fieldmark.training.devices import to_device
from fieldmark.work.progress import progress

Mixing = Literal["gated", "dynamic"]
MIXINGS: tuple[Mixing, ...] = ("gated", "dynamic")
# Through how many numbers all modalities decide about the gates of each.
GATE_WIDTH = 64
# The side of the matrices that the context of a dynamic network writes, and how many there are.
DYNAMIC_WIDTH, DYNAMIC_LAYERS = 32, 2
# Channels of the convolutions along a series; the first spans a year and a month.
SERIES_WIDTH = 32
Tensor = Any


class ModalNetwork(nn.Module):  # type: ignore[misc]
    """Features of each modality to logits.

    Args:
        widths: How many features each modality has; the first is the main one of a dynamic network.
        n_labels: How many labels there are.
        width: The common width of all modalities.
        mixing: How they are put together.
        dropout: The share of h that is left out in training.
        series: For each modality how many variables its months are of; 0 for plain features, as all are without it.
    """

    def __init__(
        self,
        widths: Sequence[int],
        n_labels: int,
        *,
        width: int,
        mixing: Mixing,
        dropout: float = 0.2,
        series: Sequence[int] = (),
    ) -> None:
        super().__init__()
        variables = series or [0] * len(widths)
        self.entries = nn.ModuleList(
            SeriesEntry(number, width)
            if number
            else nn.Sequential(nn.Linear(own, width), nn.GELU(), nn.LayerNorm(width))
            for own, number in zip(widths, variables, strict=True)
        )
        self.absent = nn.Parameter(torch.zeros(len(widths), width))
        self.mixer = _Alone() if len(widths) == 1 else _MIXERS[mixing](len(widths), width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, n_labels)

    def forward(self, features: Sequence[Tensor], there: Tensor) -> Tensor:
        """The logits.

        Args:
            features: For each modality one row per item.
            there: (items, modalities) whether an item has it.
        """
        entered = [
            torch.where(there[:, m, None], entry(own), self.absent[m])
            for m, (entry, own) in enumerate(zip(self.entries, features, strict=True))
        ]
        return self.head(self.dropout(self.mixer(torch.stack(entered, dim=1))))


class SeriesEntry(nn.Module):  # type: ignore[misc]
    """A small network over the months of a series: two convolutions along time, then mean and maximum over it.

    Args:
        variables: How many series stand one after the other in a row.
        width: The common width of all modalities.
    """

    def __init__(self, variables: int, width: int) -> None:
        super().__init__()
        self.variables = variables
        self.months = nn.Sequential(
            nn.Conv1d(variables, SERIES_WIDTH, 13, stride=3, padding=6),
            nn.GELU(),
            nn.Conv1d(SERIES_WIDTH, SERIES_WIDTH, 5, stride=2, padding=2),
            nn.GELU(),
        )
        self.out = nn.Sequential(nn.Linear(2 * SERIES_WIDTH, width), nn.GELU(), nn.LayerNorm(width))

    def forward(self, rows: Tensor) -> Tensor:
        along = self.months(rows.view(len(rows), self.variables, -1))
        return self.out(torch.cat([along.mean(dim=2), along.amax(dim=2)], dim=1))


class _Alone(nn.Module):  # type: ignore[misc]
    """One modality, nothing to mix."""

    def forward(self, entered: Tensor) -> Tensor:
        return entered[:, 0]


class _Gates(nn.Module):  # type: ignore[misc]
    """A weighted sum, with weights that depend on all modalities."""

    def __init__(self, modalities: int, width: int) -> None:
        super().__init__()
        everything = modalities * width
        self.scores = nn.Sequential(nn.Linear(everything, GATE_WIDTH), nn.GELU(), nn.Linear(GATE_WIDTH, everything))

    def forward(self, entered: Tensor) -> Tensor:
        shares = self.scores(entered.flatten(1)).view_as(entered).softmax(dim=1)
        return (shares * entered).sum(dim=1)


class _Dynamic(nn.Module):  # type: ignore[misc]
    """The first modality, changed by matrices that the others write."""

    def __init__(self, modalities: int, width: int) -> None:
        super().__init__()
        self.context = nn.Sequential(nn.Linear((modalities - 1) * width, width), nn.GELU())
        self.narrow = nn.Linear(width, DYNAMIC_WIDTH)
        self.writers = nn.ModuleList(nn.Linear(width, DYNAMIC_WIDTH**2) for _ in range(DYNAMIC_LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(DYNAMIC_WIDTH) for _ in range(DYNAMIC_LAYERS))
        self.widen = nn.Linear(DYNAMIC_WIDTH, width)

    def forward(self, entered: Tensor) -> Tensor:
        main, context = entered[:, 0], self.context(entered[:, 1:].flatten(1))
        changed = self.narrow(main)
        for writer, norm in zip(self.writers, self.norms, strict=True):
            written = writer(context).view(-1, DYNAMIC_WIDTH, DYNAMIC_WIDTH) / DYNAMIC_WIDTH**0.5
            changed = nn.functional.gelu(norm(torch.bmm(written, changed[:, :, None])[:, :, 0]))
        return main + self.widen(changed)


_MIXERS: dict[str, Any] = {"gated": _Gates, "dynamic": _Dynamic}


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
        series: For each modality how many variables its months are of, 0 for plain features.
    """

    features: Sequence[NDArray[np.float32]]
    there: NDArray[np.bool_]
    truth: NDArray[np.int32] | None = None
    series: tuple[int, ...] = ()


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
            [own.shape[1] for own in train.features],
            n_labels,
            width=recipe.width,
            mixing=recipe.mixing,
            series=train.series,
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
    widths = [own.shape[1] for own in data.features]
    n_labels, width = arrays["head.weight"].shape
    with torch.random.fork_rng(devices=[]):
        network = ModalNetwork(widths, int(n_labels), width=int(width), mixing=mixing, series=data.series)
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
