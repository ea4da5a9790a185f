"""A photo model out of the box: the ImageNet classifier of the packaged EfficientNet-Lite2, read as taxa.

Its thousand classes become some three hundred taxa (`imagenet_taxa`): the probability of a taxon is the sum over its
classes, and what lies on things, food and people is the probability that the photo shows nothing the model knows.
It answers at the lowest rank that is sure enough. The lines of the ranks (`imagenet_lines.json`) were drawn on photos
that are neither its training photos nor those it is judged by (`studies/evidence/packaged_photos.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.features.efficientnet_lite import VARIANTS, LiteNetwork
from fieldmark.features.packaged import packaged_weights
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.packaged.imagenet_taxa import CLASSES, classes, label_table
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.identification.pretrained import TrainedElsewhere
from fieldmark.methods.base import Arrays, Fitted, features_of
from fieldmark.models import Model
from fieldmark.models.guides import Guide
from fieldmark.models.guides.dangers import DangerLine, allowed_by
from fieldmark.models.guides.novelty import ACCEPTED, Strangers
from fieldmark.models.guides.rollup import BANDS, RollUp
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.steps.base import Step
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.views.parts import Part

NAME: Final = "imagenet"
BACKBONE: Final = "efficientnet_lite2"
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
            f"This pretrained model knows little: {len(model.labels)} kinds of ImageNet, {species} of them "
            f"species, most of them vertebrates; {fungi} kinds of fungi, none below the family; hardly a plant. Nearly "
            "all species of the world are strange to it. For yours: fieldmark fit folder --data FOLDER --method linear."
        )
        verdict, claim = answer.verdict, answer.claim
        if claim is not None and not tells_something(claim.rank, claim.name):
            claim = None
        if claim is None:
            because = "None that I know: no kind of organism that the model has learned stands out in the photo."
            verdict = replace(verdict, known=False, because=because)
        return replace(answer, claim=claim, short_list=None, verdict=verdict, remarks=(*answer.remarks, knows))

    def _columns(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        """The log-probability of each taxon, and in a last column that of everything else."""
        logits = features_of(part) @ arrays["weight"].T + arrays["bias"]
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        codes = arrays["code"]
        sums = np.zeros((len(chances), int(codes.max()) + 2), dtype=np.float64)
        np.add.at(sums.T, codes, chances.T)  # -1, which stands for everything else, is the last column
        return np.log(np.maximum(sums, np.finfo(np.float32).tiny)).astype(np.float32)


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
    strangers = Strangers(np.zeros(0), np.array(data["doubt"]), ACCEPTED)
    return Guide(
        RollUp(data["lines"], bands, right), strangers, DangerLine(allowed, allowed), {}, np.zeros(labels, np.int64)
    )


def tells_something(rank: str, taxon: str) -> bool:
    """Whether a claim says more than that something lives. That it is a fungus does: it must not be eaten.

    >>> tells_something("class", "Aves"), tells_something("kingdom", "Animalia"), tells_something("kingdom", "Fungi")
    (True, False, True)
    """
    return rank != "kingdom" or taxon == "Fungi"
