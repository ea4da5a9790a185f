"""A network from places to species, and the losses that records of presences alone can be learned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

Loss = Literal["full", "slds", "ssdl", "maxent"]
LOSSES: tuple[Loss, ...] = ("full", "slds", "ssdl", "maxent")
# Cole et al. weigh a presence 2048 times; with fewer species than that, as much as all absences together.
MOST_WEIGHT = 2048.0
PREDICTED_AT_ONCE = 4096


@dataclass(frozen=True)
class PlaceNetworkSettings:
    """How the network is built and trained.

    Args:
        loss: One of `LOSSES` (`PlaceLosses`).
        width: Of the hidden layers.
        depth: How many residual blocks.
        dropout: The share of units that each block drops.
        epochs: How often every record is seen.
        batch: How many records are seen at once.
        rate: The learning rate; each epoch has 0.98 of the one before.
        decay: The weight decay.
        seed: Of everything random.
    """

    loss: Loss = "full"
    width: int = 256
    depth: int = 4
    dropout: float = 0.5
    epochs: int = 30
    batch: int = 256
    rate: float = 5e-4
    decay: float = 0.0
    seed: int = 0


class PlaceNetwork(nn.Module):  # type: ignore[misc]
    """Residual blocks over whatever describes a place, and a linear layer with one output per species."""

    def __init__(self, inputs: int, species: int, settings: PlaceNetworkSettings) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, settings.width)
        self.blocks = nn.ModuleList(_Residual(settings.width, settings.dropout) for _ in range(settings.depth))
        self.head = nn.Linear(settings.width, species)

    def embed(self, places: torch.Tensor) -> torch.Tensor:
        """What the network makes of places before it tells species apart."""
        hidden = functional.relu(self.first(places))
        for block in self.blocks:
            hidden = block(hidden)
        return hidden

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.embed(places))
        return out

    def some(self, hidden: torch.Tensor, species: torch.Tensor) -> torch.Tensor:
        """The output of one species for each place."""
        return (hidden * self.head.weight[species]).sum(dim=1) + self.head.bias[species]


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width), nn.ReLU()
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = hidden + self.inner(hidden)
        return out


@dataclass(frozen=True)
class PlaceLosses:
    """What is minimized for a batch of records and as many points of the background.

    * full (Cole et al. 2023, AN-full): every other species is absent at a record, and every species at the background.
    * slds (AN-SLDS): one other species is absent at the record; ssdl (AN-SSDL): the species is absent at one background
      point. Neither looks at all species, which is what makes them fit for tens of thousands.
    * maxent (Ryckewaert et al., DeepMaxent): for each species of the batch the cross-entropy of its records among all
      places of the batch, so that outputs are log intensities, and what all species share of the sampling cancels.

    Args:
        network: The network.
        loss: Which of them.
        weight: How many times a presence counts.
    """

    network: PlaceNetwork
    loss: Loss
    weight: float

    def __call__(
        self, places: torch.Tensor, species: torch.Tensor, others: torch.Tensor, drawn: torch.Tensor
    ) -> torch.Tensor:
        """The loss.

        Args:
            places: The places of records.
            species: Their species.
            others: Background points.
            drawn: A species drawn at random for each record.
        """
        hidden = self.network.embed(places)
        if self.loss in ("slds", "ssdl"):
            present = self.network.some(hidden, species)
            if self.loss == "slds":
                absent = self.network.some(hidden, drawn)
                kept = (drawn != species).float()
            else:
                absent = self.network.some(self.network.embed(others), species[: len(others)])
                kept = torch.ones_like(absent)
            return functional.softplus(-present).mean() + (functional.softplus(absent) * kept).mean()
        outputs, background = self.network.head(hidden), self.network.head(self.network.embed(others))
        if self.loss == "maxent":
            return _cross_entropy_over_places(torch.cat([outputs, background]), species)
        there = torch.arange(len(places), device=places.device)
        present = functional.softplus(-outputs[there, species])
        absent = functional.softplus(outputs).sum(dim=1) - functional.softplus(outputs[there, species])
        everywhere = functional.softplus(background).sum(dim=1).mean()
        return (self.weight * present + absent).mean() / outputs.shape[1] + everywhere / outputs.shape[1]


def _cross_entropy_over_places(outputs: torch.Tensor, species: torch.Tensor) -> torch.Tensor:
    """The mean over the species of a batch of the cross-entropy of their records among its places."""
    named, where = torch.unique(species, return_inverse=True)
    logs = functional.log_softmax(outputs[:, named], dim=0)
    own = -logs[torch.arange(len(species), device=species.device), where]
    counts = torch.bincount(where, minlength=len(named)).float()
    of_each = torch.zeros(len(named), device=own.device).index_add_(0, where, own) / counts
    return of_each.mean()


def train_place_network(
    places: NDArray[np.float32],
    row: NDArray[np.int64],
    code: NDArray[np.int64],
    others: NDArray[np.float32],
    n_species: int,
    settings: PlaceNetworkSettings,
) -> dict[str, NDArray[np.float32]]:
    """Trains a network on records (`row` and `code` of each) against a background."""
    network, generator = _start(places.shape[1], n_species, settings)
    losses = PlaceLosses(network, settings.loss, min(MOST_WEIGHT, float(n_species)))
    inputs, points = torch.from_numpy(places), torch.from_numpy(others)
    rows, codes = torch.from_numpy(row), torch.from_numpy(code)

    def batch_loss(chosen: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(n_species, (len(chosen),), generator=generator)
        against = torch.randint(len(points), (len(chosen),), generator=generator)
        return losses(inputs[rows[chosen]], codes[chosen], points[against], drawn)

    _descend(network, len(row), settings, generator, batch_loss)
    return _weights(network)


def train_survey_network(
    places: NDArray[np.float32],
    holds: NDArray[np.bool_],
    asked: NDArray[np.bool_] | None,
    settings: PlaceNetworkSettings,
) -> dict[str, NDArray[np.float32]]:
    """Trains a network on a survey: the log loss of presence and absence where somebody looked."""
    network, generator = _start(places.shape[1], holds.shape[1], settings)
    inputs = torch.from_numpy(places)
    truth = torch.from_numpy(holds.astype(np.float32))
    looked = None if asked is None else torch.from_numpy(asked.astype(np.float32))

    def batch_loss(chosen: torch.Tensor) -> torch.Tensor:
        weight = None if looked is None else looked[chosen]
        return functional.binary_cross_entropy_with_logits(network(inputs[chosen]), truth[chosen], weight=weight)

    _descend(network, len(places), settings, generator, batch_loss)
    return _weights(network)


def place_outputs(
    weights: dict[str, NDArray[Any]], places: NDArray[np.float32], settings: PlaceNetworkSettings
) -> NDArray[np.float32]:
    """The outputs of a trained network, one row per place."""
    network = PlaceNetwork(places.shape[1], len(weights["head.bias"]), settings)
    network.load_state_dict({name: torch.from_numpy(np.array(one)) for name, one in weights.items()})
    network.eval()
    with torch.inference_mode():
        made = [network(block) for block in torch.from_numpy(places).split(PREDICTED_AT_ONCE)]
        return np.asarray(torch.cat(made).numpy())


def _start(inputs: int, species: int, settings: PlaceNetworkSettings) -> tuple[PlaceNetwork, torch.Generator]:
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PlaceNetwork(inputs, species, settings)
    return network, torch.Generator().manual_seed(settings.seed)


def _descend(
    network: PlaceNetwork, n_examples: int, settings: PlaceNetworkSettings, generator: torch.Generator, batch_loss: Any
) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.rate, weight_decay=settings.decay)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    network.train()
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)  # of dropout
        for _ in range(settings.epochs):
            order = torch.randperm(n_examples, generator=generator)
            for chosen in order.split(settings.batch):
                optimizer.zero_grad()
                batch_loss(chosen).backward()
                optimizer.step()
            schedule.step()


def _weights(network: PlaceNetwork) -> dict[str, NDArray[np.float32]]:
    return {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}
