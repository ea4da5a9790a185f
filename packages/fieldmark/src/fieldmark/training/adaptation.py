"""Networks that learn from two domains: sheets first and photos next, an adversary over pairs, triplets across domains.

These trainings draw pairs and freeze parts in turn, which the loop for one source (`training.loop`) does not do. They
read the pictures of a batch from a pack on disk, and run where torch runs.

| way | what happens | reference |
| --- | --- | --- |
| `both` | all pictures at once | the baseline |
| `two-stage` | sheets, then field photos | ITCR PlantNet, run 2 of PlantCLEF 2020 |
| `fsada` | sheets; a discriminator of four kinds of pairs; encoder and classifier against it | Motiian et al. 2017 |
| `triplet` | a head (or an encoder) for each domain, labels of both meet in one space | Neuon AI, PlantCLEF 2020 |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.settings import Settings, setting
from fieldmark.training.metric_learning import batch_hard
from fieldmark.training.networks import make_network, normalization
from fieldmark.training.packs import Pack, UnpackedPhotos

Tensor = Any
Encoders = Literal["one", "two"]
ADAPTATIONS = ("both", "two-stage", "fsada", "triplet")
EMBEDDING = 500
# Kinds of pairs: same label on two sheets, same label across domains, other labels on two sheets, other labels across.
SAME, SAME_ACROSS, OTHER, OTHER_ACROSS = range(4)
TILES = 3
# Orders of the tiles of a jigsaw that the head tells apart.
JIGSAWS = 24


@dataclass(frozen=True)
class Adaptation(Settings):
    """How a network is trained on two domains.

    Args:
        way: One of `ADAPTATIONS`.
        network, weights, size: See `training.recipe.Recipe`.
        sheet_epochs, field_epochs: Epochs of the first stage (sheets, or everything) and of the last one. The second
            phase of `fsada` has as many as the last.
        batch: Pictures in a step.
        learning_rate: Of the encoder; heads learn ten times as fast.
        weight_decay: Of all weights.
        confusion: The weight of the loss that fools the discriminator.
        margin: Of the triplets.
        auxiliary: The weight of heads for genus and family; 0 for none.
        jigsaw: The weight of the head that tells how the tiles of a picture were shuffled; 0 for none.
        gray: The share of pictures that lose their color, which pressed plants have lost already.
        seed: Of everything that is drawn.
        encoders: With triplets: one for both domains, or two, each taught by its own domain first, as Neuon AI had it.
        field_weights: What the second encoder begins with, if not with `weights`: a file.
    """

    way: str = setting("fsada", choices=ADAPTATIONS)
    network: str = "efficientnet_lite0"
    weights: str = "pretrained"
    size: int = 224
    sheet_epochs: int = setting(15, least=1)
    field_epochs: int = setting(10, least=1)
    batch: int = setting(64, least=8)
    learning_rate: float = setting(3e-4, above=0)
    weight_decay: float = 1e-3
    confusion: float = 0.2
    margin: float = 0.3
    auxiliary: float = 0.0
    jigsaw: float = 0.0
    gray: float = 0.3
    seed: int = 0
    encoders: Encoders = "one"
    field_weights: str = ""


class Squares(Protocol):
    """Squares of pixels that are read a batch at a time: an array, or a pack on disk (`PackedSquares`)."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        """The squares of some rows: (rows, side, side, 3) bytes."""
        ...


@dataclass(frozen=True)
class PackedSquares:
    """The squares of a pack, of which no more is in memory than was asked for."""

    photos: Pack | UnpackedPhotos
    number: int

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        chosen = np.arange(self.number)[rows] if isinstance(rows, slice) else np.asarray(rows, dtype=np.int64)
        return self.photos.squares(chosen)[0]


@dataclass(frozen=True)
class DomainPictures:
    """Pictures of two domains.

    Args:
        squares: Their pixels, read a batch at a time.
        labels: The label of each.
        in_field: Whether it is a field photo.
        classes: How many labels there are.
        taxa: For auxiliary heads: for each rank the taxon of every label, -1 for none.
    """

    squares: Squares
    labels: NDArray[np.int64]
    in_field: NDArray[np.bool_]
    classes: int
    taxa: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def both(self) -> NDArray[np.int64]:
        """The labels that both domains have."""
        return np.intersect1d(self.labels[self.in_field], self.labels[~self.in_field])

    @cached_property
    def rows(self) -> Mapping[tuple[int, bool], NDArray[np.int64]]:
        """The pictures of each label in each domain, in order; searched once, and not for every pair."""
        order = np.lexsort((self.in_field, self.labels))
        starts = np.flatnonzero(np.diff(2 * self.labels[order] + self.in_field[order], prepend=-1))
        return {(int(self.labels[own[0]]), bool(self.in_field[own[0]])): own for own in np.split(order, starts[1:])}


class DomainNetwork(nn.Module):  # type: ignore[misc]
    """An encoder with heads: for labels, for taxa of higher ranks, for jigsaws, and an embedding for each domain."""

    def __init__(self, how: Adaptation, classes: int, taxa: Mapping[str, int]) -> None:
        super().__init__()
        self.encoder = make_network(how.network, how.weights, classes=0, size=how.size, seed=how.seed)
        self.field_encoder: Any = None
        if how.encoders == "two":
            begun = how.field_weights or how.weights
            self.field_encoder = make_network(how.network, begun, classes=0, size=how.size, seed=how.seed)
        width = int(self.encoder.num_features)
        with torch.random.fork_rng():
            torch.manual_seed(how.seed)
            self.head = nn.Linear(width, classes)
            self.ranks = nn.ModuleDict({rank: nn.Linear(width, number) for rank, number in taxa.items()})
            self.jigsaw = nn.Linear(width, JIGSAWS)
            self.embeddings = nn.ModuleDict(
                {
                    domain: nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, EMBEDDING))
                    for domain in ("sheet", "field")
                }
            )
        mean, std = normalization(self.encoder)
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor, in_field: Tensor) -> Tensor:
        """What goes into the heads, from pixels between 0 and 1, by the encoder of each picture's domain."""
        shown = (pixels - self.mean) / self.std
        if self.field_encoder is None or not bool(in_field.any()):
            return self.encoder(shown)
        if bool(in_field.all()):
            return self.field_encoder(shown)
        photos = self.field_encoder(shown[in_field])
        made = photos.new_empty((len(shown), photos.shape[1]))
        made[in_field], made[~in_field] = photos, self.encoder(shown[~in_field]).to(photos.dtype)
        return made

    def embed(self, features: Tensor, in_field: Tensor) -> Tensor:
        """Embeddings of unit length, by the head of each picture's domain."""
        both = [self.embeddings[domain](features) for domain in ("sheet", "field")]
        return functional.normalize(torch.where(in_field[:, None], both[1], both[0]), dim=1)


def train_adapted(how: Adaptation, pictures: DomainPictures, say: Callable[[str], None] = print) -> DomainNetwork:
    """Trains a network on two domains.

    Raises:
        MisuseError: When no label has pictures of both domains, which all ways but `both` learn from.
    """
    if how.way != "both" and not len(pictures.both):
        raise MisuseError(f"{how.way} needs labels with pictures of both domains; there are none.")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = {rank: int(taxon.max()) + 1 for rank, taxon in pictures.taxa.items()} if how.auxiliary else {}
    network = DomainNetwork(how, pictures.classes, sizes)
    network.to(device, memory_format=torch.channels_last)
    training = DomainTraining(how, network, pictures, device)
    sheets, photos = np.flatnonzero(~pictures.in_field), np.flatnonzero(pictures.in_field)
    if how.way == "both":
        training.classify(np.arange(len(pictures.labels)), how.sheet_epochs + how.field_epochs)
    else:
        training.classify(sheets, how.sheet_epochs)
        say(f"{how.way}: sheets learned")
        if how.way == "two-stage":
            training.classify(photos, how.field_epochs)
        elif how.way == "fsada":
            training.confuse()
        else:
            if how.encoders == "two":
                training.classify(photos, how.sheet_epochs)
                say(f"{how.way}: photos learned by an encoder of their own")
            training.bring_together()
    network.eval()
    return network


class DomainTraining:
    """The state of one training: network, pictures of both domains, and what is drawn from them."""

    def __init__(self, how: Adaptation, network: DomainNetwork, pictures: DomainPictures, device: Any) -> None:
        self.how, self.network, self.pictures, self.device = how, network, pictures, device
        self.rng = np.random.default_rng(how.seed)
        self.domains = {in_field: np.flatnonzero(pictures.in_field == in_field) for in_field in (False, True)}
        self.labels = torch.from_numpy(pictures.labels).to(device)
        self.in_field = torch.from_numpy(pictures.in_field).to(device)
        self.taxa = {rank: torch.from_numpy(taxon).to(device) for rank, taxon in pictures.taxa.items()}
        self.half = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()

    def optimizer(self) -> Any:
        named, encoders = list(self.network.named_parameters()), ("encoder.", "field_encoder.")
        heads = [value for name, value in named if not name.startswith(encoders)]
        rate = self.how.learning_rate
        slow = [value for name, value in named if name.startswith(encoders)]
        groups = [{"params": slow, "lr": rate}, {"params": heads, "lr": 10 * rate}]
        return torch.optim.AdamW(groups, weight_decay=self.how.weight_decay)

    def batches(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        order = self.rng.permutation(rows)
        for start in range(0, max(len(order) - 1, 1), self.how.batch):
            batch = order[start : start + self.how.batch]
            if len(batch) > 1:  # a batch norm cannot learn from one picture
                yield batch

    def features(self, rows: NDArray[np.int64]) -> Tensor:
        where = torch.from_numpy(rows).to(self.device)
        shown = augmented(self.pictures.squares[rows], self.how, self.rng, self.device)
        with self.half:
            return self.network(shown, self.in_field[where]).float()

    def label_loss(self, features: Tensor, rows: NDArray[np.int64]) -> Tensor:
        where = torch.from_numpy(rows).to(self.device)
        labels = self.labels[where]
        loss = functional.cross_entropy(self.network.head(features), labels, label_smoothing=0.1)
        for rank, head in self.network.ranks.items():
            taxa = self.taxa[rank][labels]
            if bool((taxa >= 0).any()):
                loss = loss + self.how.auxiliary * functional.cross_entropy(head(features), taxa, ignore_index=-1)
        if self.how.jigsaw:
            pixels = augmented(self.pictures.squares[rows], self.how, self.rng, self.device)
            shuffled, order = shuffled_tiles(pixels, self.rng)
            with self.half:
                told = self.network.jigsaw(self.network(shuffled, self.in_field[where]).float())
            loss = loss + self.how.jigsaw * functional.cross_entropy(told, order)
        return loss

    def classify(self, rows: NDArray[np.int64], epochs: int) -> None:
        """Plain epochs over some pictures, the learning rate falling to 0 along a cosine."""
        optimizer = self.optimizer()
        steps = epochs * -(-len(rows) // self.how.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
        self.network.train()
        for _ in range(epochs):
            for batch in self.batches(rows):
                step(optimizer, self.label_loss(self.features(batch), batch))
                schedule.step()

    def pairs(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """So many pairs of each kind: the first (a sheet), the second, and the kind."""
        first, second, kinds = [], [], []
        for kind, label in ((kind, self.rng.choice(self.pictures.both)) for kind in range(4) for _ in range(number)):
            in_field = kind in (SAME_ACROSS, OTHER_ACROSS)
            first.append(self.rng.choice(self.pictures.rows[int(label), False]))
            own = self.pictures.rows[int(label), in_field]
            pool = self.domains[in_field]
            if kind in (SAME, SAME_ACROSS):
                second.append(self.rng.choice(own))
            elif len(own) == len(pool):  # there is no other label
                second.append(self.rng.choice(pool))
            else:  # one of the others, without listing them all
                place = int(self.rng.integers(len(pool) - len(own)))
                skipped = np.searchsorted(pool, own) - np.arange(len(own))
                second.append(pool[place + int(np.searchsorted(skipped, place, side="right"))])
            kinds.append(kind)
        return np.array(first), np.array(second), np.array(kinds)

    def confuse(self) -> None:
        """The second and third phase of FSADA: a discriminator of pairs, then encoder and classifier against it."""
        width = int(self.network.encoder.num_features)
        judge = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, 4)).to(self.device)
        judging = torch.optim.AdamW(judge.parameters(), lr=1e-3)
        optimizer, each = self.optimizer(), max(2, self.how.batch // 8)
        steps = self.how.field_epochs * max(1, len(self.pictures.labels) // self.how.batch)
        for number in range(2 * steps):
            encoder_turn = number >= steps and number % 2
            self.network.train(bool(encoder_turn))
            first, second, kinds = self.pairs(each)
            with nullcontext() if encoder_turn else torch.no_grad():
                features = self.features(np.concatenate([first, second]))
            left, right = features.chunk(2)
            kind = torch.from_numpy(kinds).to(self.device)
            said = judge(torch.cat([left, right], dim=1))
            if not encoder_turn:
                step(judging, functional.cross_entropy(said, kind))
                continue
            across = (kind == SAME_ACROSS) | (kind == OTHER_ACROSS)
            fooled = functional.cross_entropy(said[across], kind[across] - 1)  # as if both were sheets
            rows = np.concatenate([first, second])
            step(optimizer, self.label_loss(features, rows) + self.how.confusion * fooled)

    def bring_together(self) -> None:
        """Triplets over labels with both domains; the classifier goes on learning beside them."""
        optimizer = self.optimizer()
        steps = self.how.field_epochs * max(1, len(self.pictures.labels) // self.how.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        self.network.train()
        for _ in range(steps):
            rows = self.across_domains(max(2, self.how.batch // 8))
            where = torch.from_numpy(rows).to(self.device)
            features = self.features(rows)
            embedding = self.network.embed(features, self.in_field[where])
            same = self.labels[where][:, None] == self.labels[where][None, :]
            loss = batch_hard(embedding, same, self.how.margin) + self.label_loss(features, rows)
            step(optimizer, loss)
            schedule.step()

    def across_domains(self, labels: int) -> NDArray[np.int64]:
        """Up to four sheets and four photos of each of some labels that have both."""
        rows = []
        chosen = self.rng.permutation(self.pictures.both)[:labels]
        for label in chosen:
            for in_field in (False, True):
                rows.append(self.rng.permutation(self.pictures.rows[int(label), in_field])[:4])
        return np.concatenate(rows)


def step(optimizer: Any, loss: Tensor) -> None:
    """One step of an optimizer."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def augmented(squares: NDArray[np.uint8], how: Adaptation, rng: np.random.Generator, device: Any) -> Tensor:
    """Random crops of half to all of a picture, mirrored, brighter or darker, some of them gray."""
    number = len(squares)
    pixels = torch.from_numpy(squares).to(device).permute(0, 3, 1, 2).float().div(255)
    scale = np.sqrt(rng.uniform(0.4, 1.0, number))
    shift = rng.uniform(-1, 1, (number, 2)) * (1 - scale)[:, None]
    turn = np.zeros((number, 2, 3), dtype=np.float32)
    turn[:, 0, 0], turn[:, 1, 1] = scale * rng.choice([-1, 1], number), scale
    turn[:, :, 2] = shift
    grid = functional.affine_grid(
        torch.from_numpy(turn).to(device), [number, 3, how.size, how.size], align_corners=False
    )
    shown = functional.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)
    light = torch.from_numpy(rng.uniform(0.75, 1.25, (number, 1, 1, 1)).astype(np.float32)).to(device)
    gray = torch.from_numpy(rng.random((number, 1, 1, 1)) < how.gray).to(device)
    shown = torch.where(gray, shown.mean(dim=1, keepdim=True).expand_as(shown), shown)
    return (shown * light).clamp(0, 1).contiguous(memory_format=torch.channels_last)


def shuffled_tiles(pixels: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Pictures with their nine tiles in one of the orders of a fixed list, and which order it was (Noroozi 2016)."""
    orders = np.stack([np.random.default_rng(number).permutation(TILES**2) for number in range(JIGSAWS)])
    which = rng.integers(JIGSAWS, size=len(pixels))
    side = pixels.shape[-1] // TILES
    tiles = [
        pixels[:, :, row * side : (row + 1) * side, column * side : (column + 1) * side]
        for row in range(TILES)
        for column in range(TILES)
    ]
    stacked = torch.stack(tiles, dim=1)
    places = torch.from_numpy(orders[which]).to(pixels.device)
    moved = stacked[torch.arange(len(pixels), device=pixels.device)[:, None], places]
    rows = [torch.cat([moved[:, TILES * row + column] for column in range(TILES)], dim=3) for row in range(TILES)]
    return torch.cat(rows, dim=2), torch.from_numpy(which).to(pixels.device)


@torch.inference_mode()  # type: ignore[untyped-decorator]
def outputs(
    network: DomainNetwork,
    squares: Squares,
    size: int,
    in_field: NDArray[np.bool_],
    wanted: Sequence[str] = ("features", "logits", "embedding"),
) -> dict[str, NDArray[np.float32]]:
    """What a trained network says of pictures: those of `features`, `logits` and `embedding` that are wanted."""
    device = next(network.parameters()).device
    parts: dict[str, list[Any]] = {name: [] for name in wanted}
    for start in range(0, len(squares), 128):
        pixels = torch.from_numpy(squares[start : start + 128]).to(device).permute(0, 3, 1, 2).float().div(255)
        pixels = functional.interpolate(pixels, (size, size), mode="bilinear", antialias=True, align_corners=False)
        flags = torch.from_numpy(in_field[start : start + 128]).to(device)
        features = network(pixels.contiguous(memory_format=torch.channels_last), flags)
        for name in wanted:
            values = network.head(features) if name == "logits" else features
            values = network.embed(features, flags) if name == "embedding" else values
            parts[name].append(values.float().cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def nearest_sheets(
    sheets: NDArray[np.float32], labels: NDArray[np.int64], classes: int, asked: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Log weights of labels by Neuon's rule: (1 / d)^5, d the cosine distance to the mean embedding of the sheets.

    Labels without sheets get the lowest weight.
    """
    sums = np.zeros((classes, sheets.shape[1]), dtype=np.float64)
    np.add.at(sums, labels, sheets)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means = sums / np.maximum(lengths, 1e-12)
    distance = np.maximum(1 - asked @ means.T, 1e-6)
    logs = np.where(lengths[:, 0] > 0, -5 * np.log(distance), -5 * np.log(2.0) - 10)
    logs -= np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + logs.max(
        axis=1, keepdims=True
    )
    return np.asarray(logs, dtype=np.float32)
