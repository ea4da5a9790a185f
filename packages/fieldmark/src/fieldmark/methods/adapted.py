"""Networks trained on sheets and field photos: `two-stage`, `fsada` and `triplet`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.alignment import Ways, align_classes
from fieldmark.features.embeddings import unit_rows
from fieldmark.features.settings import data_behind
from fieldmark.methods.align import SHARPNESS, make_lesson
from fieldmark.methods.base import Arrays, Fitted, Method, Need, truth_of
from fieldmark.methods.domains import Domains
from fieldmark.methods.photo_networks import PhotoReading, unreadable
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting_of
from fieldmark.training.adaptation import (
    Adaptation,
    DomainNetwork,
    DomainPictures,
    Encoders,
    PackedSquares,
    nearest_sheets,
    outputs,
    train_adapted,
)
from fieldmark.training.boxes import Crops
from fieldmark.views.parts import Part, View
from fieldmark.work.progress import say

WEIGHTS = "network."
# What of a network answers, and of which the pictures of train are needed as well.
NEEDED = {"align": ("features",), "classifier": ("logits",), "nearest": ("embedding",)}
LEARNED = ("align", "nearest")


@dataclass(frozen=True, kw_only=True)
class AdaptedNetwork(Method):
    """A network that learns from two domains (`training.adaptation.Adaptation`).

    Args:
        network: A packaged backbone, or any name timm knows.
        weights: "pretrained", "random", or a file.
        size: The side of the photo in pixels.
        sheet_epochs: Epochs of the first stage: sheets, or everything.
        field_epochs: Epochs of the last stage.
        batch: Pictures in a step.
        learning_rate: The learning rate of the encoder; heads learn ten times as fast.
        weight_decay: How strongly weights are drawn to zero.
        auxiliary: The weight of heads for genus and family; 0 for none.
        jigsaw: The weight of the head that tells how the tiles of a picture were shuffled; 0 for none.
        gray: The share of pictures that lose their color, which pressed plants have lost already.
        seed: The seed of everything that is drawn.
        answers: What answers: "align", prototypes moved from sheets to the field on the features of the network, with
            a bias for labels without field photos; "classifier", its head, which prefers labels with field photos;
            or "nearest", the mean embedding of a label's sheets by Neuon's rule, after triplets.
        bias: With `align`, what labels without field photos get on top. It cannot be chosen here: the network has seen
            the photos that would have to be hidden.
        asked: The domain that is asked about, where val and names do not tell.
        pack: How resized photos are kept on disk: "raw" (64 GB for the 327,586 pictures of PlantCLEF 2020 at 224 px),
            "jpeg" (an eighth of it, decoded anew each time), or "none".
    """

    network: str = "efficientnet_lite0"
    weights: str = "pretrained"
    size: int = 224
    sheet_epochs: int = setting_of(Adaptation, "sheet_epochs")
    field_epochs: int = setting_of(Adaptation, "field_epochs")
    batch: int = setting_of(Adaptation, "batch")
    learning_rate: float = setting_of(Adaptation, "learning_rate")
    weight_decay: float = 1e-3
    auxiliary: float = 0.0
    jigsaw: float = 0.0
    gray: float = 0.3
    seed: int = 0
    answers: str = "align"
    bias: float = 0.08
    asked: str = ""
    pack: Literal["raw", "jpeg", "none"] = "raw"

    added_settings: ClassVar[tuple[str, ...]] = ("pack",)
    way: ClassVar[str]
    scale: ClassVar[Scale] = "logit"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)

    def check_settings(self) -> None:
        allowed = ("align", "classifier", "nearest") if self.way == "triplet" else ("align", "classifier")
        if self.answers not in allowed:
            raise MisuseError(f"{self.way} has no answers={self.answers}: expected {', '.join(allowed)}.")

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pixels"),)

    @property
    def external_data(self) -> tuple[str, ...]:
        return data_behind(self.network, self.weights)

    @property
    def network_name(self) -> str:
        return self.network

    @property
    def how(self) -> Adaptation:
        """The settings of the training."""
        named = {one.name for one in fields(Adaptation)} - {"way"}
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name in named}
        return Adaptation(way=self.way, **own)

    def check(self, view: View) -> None:
        Domains.of(view, self.way, self.asked)

    def fit(self, view: View) -> Fitted:
        domains = Domains.of(view, self.way, self.asked)
        squares, each = self._squares(view.train)
        labels = np.repeat(truth_of(view.train), each).astype(np.int64)
        in_field = np.repeat(domains.field, each)
        ranks = view.taxonomy.ranks
        taxa: dict[str, NDArray[np.int64]] = {
            rank: ranks[rank][1].astype(np.int64) for rank in ("genus", "family") if rank in ranks
        }
        if self.auxiliary and not taxa:
            raise MisuseError(f"auxiliary={self.auxiliary}: the release names neither genus nor family.")
        pictures = DomainPictures(squares, labels, in_field, len(view.labels), taxa)
        network = train_adapted(self.how, pictures, say)
        arrays: Arrays = {f"{WEIGHTS}{name}": tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
        taught = np.bincount(labels, minlength=len(view.labels)) > 0
        arrays |= {"taught": taught, "photographed": domains.photographed}
        said = outputs(network, squares, self.size, in_field, NEEDED[self.answers]) if self.answers in LEARNED else {}
        if self.answers == "nearest":
            arrays |= {"sheets": said["embedding"][~in_field], "sheet_labels": labels[~in_field]}
        elif self.answers == "align":
            features = unit_rows(_pooled(said["features"], each)).astype(np.float64)
            classes = align_classes(make_lesson(view, domains, features), Ways())
            arrays["prototypes"] = classes.prototypes(0.5).astype(np.float32)
            arrays["matrix"] = classes.field_matrix.astype(np.float32)
            arrays["offset"] = (classes.field_mean @ classes.field_matrix).astype(np.float32)
        return Fitted(replace(self, asked=domains.asked), arrays)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        squares, each = self._squares(part)
        in_field = np.ones(len(squares), dtype=np.bool_)
        said = outputs(self._load(arrays), squares, self.size, in_field, NEEDED[self.answers])
        if self.answers == "classifier":
            scores = _pooled(said["logits"], each)
        elif self.answers == "nearest":
            asked = _pooled(said["embedding"], each)
            scores = nearest_sheets(arrays["sheets"], arrays["sheet_labels"], len(arrays["taught"]), asked)
        else:
            moved = unit_rows(_pooled(said["features"], each)) @ arrays["matrix"] - arrays["offset"]
            cosines = unit_rows(moved.astype(np.float32)) @ arrays["prototypes"].T
            raised = np.where(arrays["photographed"], 0.0, self.bias)
            scores = (SHARPNESS * (cosines + raised)).astype(np.float32)
        lowest = scores.min(axis=1, keepdims=True) - 1
        return np.asarray(np.where(arrays["taught"], scores, lowest), dtype=np.float32)

    def _squares(self, part: Part) -> tuple[PackedSquares, NDArray[np.int64]]:
        """The photos of a part, on disk, and how many each item has."""
        reading = PhotoReading(self.size, self.pack, Crops(), self.batch, 0)
        photos = reading.photos(part)
        if problems := photos.find_problems():
            raise unreadable(problems)
        each = part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        return PackedSquares(photos, int(each.sum())), each

    def _load(self, arrays: Arrays) -> DomainNetwork:
        weights = {
            name.removeprefix(WEIGHTS): torch.from_numpy(np.array(array))
            for name, array in arrays.items()
            if name.startswith(WEIGHTS)
        }
        ranks = {name.split(".")[1]: len(tensor) for name, tensor in weights.items() if name.startswith("ranks.")}
        network = DomainNetwork(replace(self.how, weights="random", field_weights=""), len(arrays["taught"]), ranks)
        network.load_state_dict(weights)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network.eval().to(device, memory_format=torch.channels_last)
        return network


def _pooled(rows: NDArray[np.float32], each: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean over the photos of each item."""
    return np.asarray(np.add.reduceat(rows, np.cumsum(each) - each, axis=0) / each[:, None], dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class TwoStage(AdaptedNetwork):
    """Sheets first, field photos next: a naive way from one domain to the other (ITCR PlantNet, run 2)."""

    way: ClassVar[str] = "two-stage"


@dataclass(frozen=True, kw_only=True)
class FewShotAdversary(AdaptedNetwork):
    """Few-shot adversarial domain adaptation (Motiian et al. 2017), in its three phases.

    Args:
        confusion: The weight of the loss that fools the discriminator of pairs.
    """

    confusion: float = 0.2

    way: ClassVar[str] = "fsada"


@dataclass(frozen=True, kw_only=True)
class DomainTriplets(AdaptedNetwork):
    """A head or an encoder for each domain, brought together by triplets over labels of both domains (Neuon AI).

    Args:
        margin: By how much nearer a picture of the same label must be than one of another.
        encoders: "one" for both domains, or "two": one learns sheets, one field photos, and triplets bring them
            together, as Neuon AI did.
        field_weights: With two encoders, a file with the weights that the one for field photos begins with, such as
            those of a network trained on PlantCLEF 2017; empty for the same as the other.
    """

    margin: float = 0.3
    encoders: Encoders = "one"
    field_weights: str = ""

    added_settings: ClassVar[tuple[str, ...]] = ("pack", "encoders", "field_weights")

    def check_settings(self) -> None:
        super().check_settings()
        if self.field_weights and self.encoders == "one":
            raise MisuseError("field_weights are those of a second encoder: set encoders=two.")

    @property
    def external_data(self) -> tuple[str, ...]:
        behind = data_behind(self.network, self.field_weights) if self.field_weights else ()
        return tuple(dict.fromkeys((*super().external_data, *behind)))

    way: ClassVar[str] = "triplet"
