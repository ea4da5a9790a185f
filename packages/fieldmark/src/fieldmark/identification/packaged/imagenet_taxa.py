"""Which of the thousand classes of ImageNet are organisms, and what taxon each stands for.

```
imagenet_classes.csv  index, common_name, taxon            one row for each class that is an organism
imagenet_taxa.csv     taxon, rank, parent, common_name, harm   every taxon up to its kingdom
```

Both were written for this purpose. A class whose photos show several species stands for the genus or family that holds
them: "jay" is Corvidae, "garter snake" is Thamnophis. Breeds are their species. Fungi go no lower than the family,
whatever the class is called. Classes of people, food and scenery have no row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import polars as pl

from fieldmark.tables.schema import RANKS

CLASSES = 1000


@dataclass(frozen=True)
class NamedTaxon:
    """One taxon of the table; `harm` says how it can hurt, and where it is empty nothing is promised."""

    name: str
    rank: str
    parent: str
    common_name: str
    harm: str


@cache
def taxa() -> dict[str, NamedTaxon]:
    """The taxa by name."""
    return {
        row["taxon"]: NamedTaxon(row["taxon"], row["rank"], row["parent"], row["common_name"], row["harm"])
        for row in _rows("imagenet_taxa.csv")
    }


@cache
def classes() -> dict[int, tuple[str, str]]:
    """Common name and taxon of each class that is an organism, by its index."""
    return {int(row["index"]): (row["common_name"], row["taxon"]) for row in _rows("imagenet_classes.csv")}


def lineage(name: str) -> Iterator[NamedTaxon]:
    """A taxon and everything above it, up to its kingdom.

    >>> [taxon.name for taxon in lineage("Vulpes vulpes")][:3]
    ['Vulpes vulpes', 'Vulpes', 'Canidae']
    """
    while name:
        yield taxa()[name]
        name = taxa()[name].parent


def label_table() -> pl.DataFrame:
    """The taxa that classes stand for, as the labels of a model: ranks, common names, and what is known of harm."""
    return pl.DataFrame(
        [_label(name) for name in sorted({taxon for _, taxon in classes().values()})],
        schema={
            "label": pl.String,
            **dict.fromkeys(RANKS, pl.String),
            "common_name": pl.String,
            "poisonous": pl.Boolean,
        },
    )


def _label(name: str) -> dict[str, Any]:
    above = list(lineage(name))
    ranks = {taxon.rank: taxon.name for taxon in above}
    harmful = True if any(taxon.harm for taxon in above) else None
    common = above[0].common_name or None
    if above[0].rank != "species" and common:  # what is shown must not read like the name of a species
        common = f"{name} ({above[0].rank}: {common})"
    return {"label": name, **ranks, "common_name": common, "poisonous": harmful}


def _rows(file: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
