"""What is known about the labels of a model before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.identification.taxon_records import TaxonRecords
from fieldmark.models import Model
from fieldmark.models.guides.dangers import dangerous_labels
from fieldmark.models.guides.living_groups import groups_of

# Categories of the Red List whose places are not told exactly.
THREATENED = ("CR", "EN", "VU", "EW")


class TaxonOfLabel(NamedTuple):
    """What is known about one label."""

    label: str
    species: str | None
    common_name: str | None
    poisonous: bool | None


def taxa_of(model: Model) -> list[TaxonOfLabel]:
    """What is known about each label of a model, in the order of their codes."""
    row_of = {row["label"]: row for row in model.taxa.iter_rows(named=True)}
    rows = [row_of.get(label, {}) for label in model.labels.names]
    return [
        TaxonOfLabel(label, _species(row), row.get("common_name"), row.get("poisonous"))
        for label, row in zip(model.labels.names, rows, strict=True)
    ]


def _species(row: Mapping[str, Any]) -> str | None:
    return row.get("species") or row.get("scientific_name")


@dataclass(frozen=True)
class LabelFacts:
    """What is known about the labels of a model, the same for every question.

    Args:
        taxa: The taxon of each label.
        groups: The group of living things that each belongs to.
        dangerous: Whether each is poisonous or venomous, or must be taken for it.
        records: How claims of them are recorded.
    """

    taxa: Sequence[TaxonOfLabel]
    groups: Sequence[str]
    dangerous: NDArray[np.bool_]
    records: TaxonRecords

    @classmethod
    def of(cls, model: Model) -> LabelFacts:
        groups = groups_of(model.labels, model.taxa)
        dangerous = dangerous_labels(model.labels, model.taxa, groups)
        return cls(taxa_of(model), groups, dangerous, TaxonRecords(model.taxa.iter_rows(named=True)))
