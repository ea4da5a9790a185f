"""Prototypes of one domain moved into another: sheets of a herbarium where the field photos would lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.alignment import (
    BIASES,
    KEEP,
    RELATIVES,
    SHRINKAGES,
    STRENGTHS,
    WAYS,
    TwoDomains,
    Ways,
    align_classes,
    choose_ways,
    principal_axes,
)
from fieldmark.methods.base import USUAL, Arrays, Fitted, OnFeatures, choices, features_of, truth_of, unit_rows
from fieldmark.methods.domains import Domains, pairs_of
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import row_by_row, scored_rows

Floats = NDArray[np.float64]
CHOSEN = -1.0
# Cosines lie close together; as logits they are spread out.
SHARPNESS = 20.0


@dataclass(frozen=True)
class Align(OnFeatures):
    """The nearest prototype by cosine, in a space in which both domains lie over each other.

    Features are brought to unit length, centered in each domain, and whitened by the shrunk covariance within labels.
    The prototype of a label is the mean of its sheets, moved by what labels with both domains teach (`by`) and by the
    way in which the nearest relatives with field photos moved. Labels with field photos mix in those by `field_share`.
    A classifier that saw field photos of some labels prefers those: `bias` is what the others get on top (the trap of
    generalized zero-shot learning).

    What is left open is chosen by leaving species out of train: the field photos of some species with both domains are
    hidden, those species count as unseen, and one plant of each of the others is held out as seen. The best mean
    reciprocal rank of the unseen decides, among what keeps a share of the best for the seen (`keep`). Val and test
    are not looked at.

    Args:
        by: "mean" (domain means alone), "covariance" (sheets take the covariance of the field: CORAL), "subspace"
            (principal axes of the sheets turned to those of the field), or "map" (ridge regression from the prototype
            on sheets to that in the field, over labels with both, and over plants that were photographed and pressed).
        shrinkage: Of the covariance, from 0 to 1; -1 chooses.
        strength: Of the ridge penalty of the map, relative to the spread of the prototypes; -1 chooses.
        relatives: How much of the way that relatives moved a label without field photos follows: of its genus, or else
            of its family; -1 chooses.
        field_share: The weight of field photos in the prototype of a label that has some.
        bias: What the score of a label without field photos is raised by, on the scale of cosines; -1 chooses.
        keep: The share of the best mean reciprocal rank on seen species that must be kept.
        pairs: Whether plants that were photographed and pressed teach the map as well.
        dimensions: How many principal axes of train are kept.
        asked: The domain that is asked about, where val and names do not tell.
    """

    by: str = setting("map", choices=WAYS)
    shrinkage: float = setting(CHOSEN, above=0, most=1, also=(CHOSEN,))
    strength: float = CHOSEN
    relatives: float = setting(CHOSEN, least=0, most=1, also=(CHOSEN,))
    field_share: float = setting(0.5, least=0, most=1)
    bias: float = CHOSEN
    keep: float = setting(KEEP, least=0, most=1, also=(CHOSEN,))
    pairs: bool = True
    dimensions: int = setting(512, least=2)
    asked: str = ""

    second_order: ClassVar[bool] = True
    # The plant is small on a tall sheet.
    feature_defaults: ClassVar[Mapping[str, Any]] = {"views": "zooms"}
    scale: ClassVar[Scale] = "logit"

    def check(self, view: View) -> None:
        Domains.of(view, "align", self.asked)

    def fit(self, view: View) -> Fitted:
        domains = Domains.of(view, "align", self.asked)
        features = features_of(view.train)
        basis = principal_axes(features, self.dimensions, _unit)
        lesson = make_lesson(view, domains, row_by_row(lambda rows: _unit(rows) @ basis, features))
        chosen, curve = self._choose(lesson)
        classes = align_classes(lesson, chosen.ways)
        learned: Arrays = {
            "matrix": (basis @ classes.field_matrix).astype(np.float32),
            "offset": (classes.field_mean @ classes.field_matrix).astype(np.float32),
            "prototypes": classes.prototypes(chosen.field_share).astype(np.float32),
            "bias": np.where(domains.photographed, 0.0, chosen.bias).astype(np.float32),
            "taught": (domains.photographed | domains.pressed),
            "photographed": domains.photographed,
            "curve": curve,
        }
        on = "train, by leaving species out" if len(curve) else USUAL
        settled = replace(chosen, asked=domains.asked)
        return Fitted(settled, learned, (_told(domains),), choices(self, chosen, on))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        def score(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            cosines = aligned(arrays, rows) @ arrays["prototypes"].T + arrays["bias"]
            lowest = cosines.min(axis=1, keepdims=True) - 1
            return np.asarray(SHARPNESS * np.where(arrays["taught"], cosines, lowest), dtype=np.float32)

        return scored_rows(score, features_of(part), len(arrays["taught"]))

    @property
    def ways(self) -> Ways:
        """How prototypes are moved, by these settings."""
        return Ways(self.by, self.shrinkage, self.strength, self.relatives, self.pairs)

    def _choose(self, lesson: TwoDomains) -> tuple[Align, Floats]:
        """The settings that are left open by leave-species-out, and the trade-off curve (bias, unseen, seen)."""
        candidates = [
            Ways(self.by, *one, self.pairs)
            for one in product(
                _open(self.shrinkage, SHRINKAGES),
                _open(self.strength, STRENGTHS if self.by == "map" else (1.0,)),
                _open(self.relatives, RELATIVES),
            )
        ]
        chosen = choose_ways(lesson, candidates, self.field_share, _open(self.bias, BIASES), self.keep)
        ways = {name: getattr(chosen.ways, name) for name in ("shrinkage", "strength", "relatives")}
        return replace(self, **ways, bias=chosen.bias), chosen.curve


def make_lesson(view: View, domains: Domains, features: Floats) -> TwoDomains:
    """What there is to learn the alignment from."""
    ranks = [view.taxonomy.ranks[rank][1] for rank in ("genus", "family") if rank in view.taxonomy.ranks]
    observation = np.unique(view.train.items["observation_id"].to_list(), return_inverse=True)[1]
    return TwoDomains(
        features,
        truth_of(view.train),
        domains.field,
        observation.astype(np.int64),
        pairs_of(view.train, domains.field),
        len(view.labels),
        tuple(np.asarray(rank, dtype=np.int64) for rank in ranks),
    )


def _unit(rows: NDArray[np.floating]) -> Floats:
    return unit_rows(rows).astype(np.float64)


def aligned(arrays: Mapping[str, Any], features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features of the domain that is asked about, in the aligned space, at unit length."""
    moved = unit_rows(features) @ arrays["matrix"] - arrays["offset"]
    return np.asarray(unit_rows(moved), dtype=np.float32)


def _told(domains: Domains) -> str:
    return (
        f"Asked about: {domains.asked}. {int(domains.both.sum())} labels have both domains, "
        f"{int((domains.pressed & ~domains.photographed).sum())} none of it."
    )


def _open(value: float, choices: Sequence[float]) -> Sequence[float]:
    return choices if value == CHOSEN else (value,)
