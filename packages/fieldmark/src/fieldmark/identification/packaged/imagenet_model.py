"""A photo model out of the box: the ImageNet classifier of the packaged EfficientNet-Lite2, read as taxa.

Its thousand classes become some three hundred taxa (`imagenet_taxa`): the probability of a taxon is the sum over its
classes, and what lies on things, food and people is the probability that the photo shows nothing the model knows.
Two habits of the network are undone first. It was trained with smoothed labels, so that each class has a ten-thousandth
of every photo, the 118 breeds of dogs more than one percent; and it expects a taxon the more often the more classes it
has, here by their square root only.
It answers at the lowest rank that is sure enough. The lines of the ranks (`imagenet_lines.json`) were drawn on photos
that are neither its training photos nor those it is judged by (`studies/evidence/packaged_photos.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.features.efficientnet_lite import VARIANTS, LiteNetwork
from fieldmark.features.packaged import packaged_weights
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.packaged.imagenet_taxa import CLASSES, classes, label_table
from fieldmark.identification.photo_answers import PhotoAnswer, RankedClaim
from fieldmark.identification.pretrained import TrainedElsewhere
from fieldmark.methods.base import Arrays, Fitted, features_of
from fieldmark.models import Model
from fieldmark.models.guides import Guide
from fieldmark.models.guides.dangers import DangerLine, allowed_by
from fieldmark.models.guides.living_groups import BIRDS, FUNGI, INSECTS, MAMMALS, OTHER, PLANTS, SNAKES
from fieldmark.models.guides.novelty import ACCEPTED, Strangers
from fieldmark.models.guides.rollup import BANDS, RollUp
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.steps.base import Step
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.views.parts import Part

NAME: Final = "imagenet"
BACKBONE: Final = "efficientnet_lite2"
# The share of each training label that was spread evenly over all classes (Tan and Le, EfficientNet, 2019).
SMOOTHED: Final = 0.1
# A group of living things is claimed from this probability on, under the name of the taxon that it is.
SURE_GROUP: Final = 0.8
GROUP_TAXA: Final = {
    BIRDS: ("class", "Aves"),
    FUNGI: ("kingdom", "Fungi"),
    INSECTS: ("class", "Insecta"),
    MAMMALS: ("class", "Mammalia"),
    PLANTS: ("kingdom", "Plantae"),
    SNAKES: ("order", "Squamata"),
}
# Where more than this lies on things, food and people, the photo shows nothing that the model knows.
MOSTLY_THINGS: Final = 0.5


@dataclass(frozen=True)
class ImageNetHead(TrainedElsewhere):
    """The classifier that a packaged network was trained with; nothing is learned here."""

    @property
    def scale(self) -> Scale:
        return "log_probability"

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return self._columns(arrays, part)[:, :-1]

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> LabelScores:
        columns = self._columns(arrays, part)
        return LabelScores(part.item_ids, labels, columns[:, :-1], self.scale, unknown_label=columns[:, -1])

    def plainly(self, model: Model, answer: PhotoAnswer) -> PhotoAnswer:
        """The answer with how little the model knows, and without a list that it could promise nothing about."""
        species = model.taxa["species"].n_unique() - 1  # labels of higher ranks share an empty one
        fungi = model.taxa.filter(pl.col("kingdom") == "Fungi").height
        knows = (
            f"This pretrained model knows few species: {len(model.labels)} classes of ImageNet, {species} of them "
            f"species, mostly vertebrates; {fungi} classes of fungi, none below family; almost no plants. Train one "
            f"on your own species: fieldmark fit folder --data FOLDER --method linear."
        )
        verdict, claim = answer.verdict, answer.claim
        if claim is not None and not tells_something(claim.rank, claim.name):
            claim = None
        if claim is None and verdict.known is not False:
            claim = _group_claim(model, answer.groups)
        if claim is None:
            because = "None of them: no organism that the model knows stands out in the photo."
            verdict = replace(verdict, known=False, because=because)
        return replace(answer, claim=claim, short_list=None, verdict=verdict, remarks=(*answer.remarks, knows))

    def _columns(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        """The log-probability of each taxon, and in a last column that of everything else."""
        logits = features_of(part) @ arrays["weight"].T + arrays["bias"]
        return np.log(taxon_chances(logits, arrays["code"])).astype(np.float32)


def taxon_chances(logits: NDArray[Any], codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """The probability of each taxon, and in a last column that of everything else, from the logits of the classes.

    Args:
        logits: One row per photo, one column per class.
        codes: The taxon of each class, -1 for everything else.
    """
    chances = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    chances = np.maximum(chances - SMOOTHED / len(codes), np.finfo(np.float32).tiny)
    classes_of = np.bincount(codes[codes != UNKNOWN])
    sums = np.zeros((len(chances), len(classes_of) + 1))
    np.add.at(sums.T, codes, chances.T)  # -1, which stands for everything else, is the last column
    sums[:, :-1] *= np.sqrt(classes_of.mean() / classes_of)
    return np.asarray(sums / sums.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class NothingKnown(Step):
    """Answers unknown where classes that are no organisms have most of the probability.

    Args:
        line: How much of it they must have.
    """

    line: float = MOSTLY_THINGS
    name: ClassVar[str] = "nothing-known"
    decides: ClassVar[bool] = True

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = predictions.chances()
        return predictions.decided(np.where(chances.sum(axis=1) < 1 - self.line, UNKNOWN, chances.argmax(axis=1)))


@cache
def imagenet_model() -> Model:
    """The model.

    Raises:
        MissingExtraError: When the package of its weights is not installed.
    """
    table = label_table()
    labels = Labels(tuple(table["label"]))
    tensors = LiteNetwork(VARIANTS[BACKBONE], packaged_weights(BACKBONE)).tensors
    code = np.full(CLASSES, UNKNOWN, dtype=np.int32)
    for index, (_, taxon) in classes().items():
        code[index] = labels.code_of[taxon]
    arrays = {"weight": tensors["classifier.weight"], "bias": tensors["classifier.bias"], "code": code}
    return Model(
        name=NAME,
        fitted=Fitted(ImageNetHead(), arrays),
        steps=(NothingKnown(),),
        labels=labels,
        taxa=table,
        features={"": FeatureSettings(BACKBONE)},
        trained={"benchmark": "ImageNet-1k (ILSVRC 2012), by others"},
        license="Apache-2.0 (weights of EfficientNet-Lite)",
        guide=_guide(len(labels)),
    )


def _guide(labels: int) -> Guide:
    text = resources.files(__package__).joinpath("imagenet_lines.json").read_text(encoding="utf-8")
    data = json.loads(text)
    right = {rank: (given, right) for rank, (given, right) in data["claims_right"].items()}
    highest = {rank: (right + 1) / (given + 2) for rank, (given, right) in right.items()}
    bands = {rank: (share,) * len(BANDS) for rank, share in highest.items()}
    allowed = allowed_by()
    strangers = Strangers(np.zeros(0), np.ones(1), ACCEPTED)  # what claims nothing is unknown, whatever its doubt
    return Guide(
        RollUp(data["lines"], bands, right), strangers, DangerLine(allowed, allowed), {}, np.zeros(labels, np.int64)
    )


def _group_claim(model: Model, groups: Mapping[str, float]) -> RankedClaim | None:
    """The group that a photo shows (`photo_groups`), where it is sure enough and is a taxon."""
    best = max(groups, key=groups.__getitem__, default=OTHER)
    if best not in GROUP_TAXA or groups[best] < SURE_GROUP:
        return None
    rank, taxon = GROUP_TAXA[best]
    own = model.taxa.filter(pl.col(rank) == taxon)
    return RankedClaim(rank, taxon, groups[best], tuple(own["label"]), common_name=best)


def tells_something(rank: str, taxon: str) -> bool:
    """Whether a claim says more than that something lives. That it is a fungus does: it must not be eaten.

    >>> tells_something("class", "Aves"), tells_something("kingdom", "Animalia"), tells_something("kingdom", "Fungi")
    (True, False, True)
    """
    return rank != "kingdom" or taxon == "Fungi"
