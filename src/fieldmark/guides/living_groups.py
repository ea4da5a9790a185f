"""What kind of living thing each label of a model is: a fungus, a snake, a plant, a bird, an insect, or something else.

It follows from the ranks of the taxa. Where they say nothing, the genus or family is looked up in short lists
(`known_genera`); a label that is in none takes the group of all others, where these agree.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from fieldmark.datasets.scientific_names import parse_name
from fieldmark.guides.known_genera import FUNGUS_GENERA, SNAKE_FAMILIES, SNAKE_GENERA
from fieldmark.labels import Labels

FUNGI, SNAKES, PLANTS, BIRDS, INSECTS, OTHER = "fungi", "snakes", "plants", "birds", "insects", "other"
KINGDOMS: Final = {"fungi": FUNGI, "plantae": PLANTS}
CLASSES: Final = {"aves": BIRDS, "insecta": INSECTS}
ORDERS: Final = {"serpentes": SNAKES, "agaricales": FUNGI, "boletales": FUNGI, "russulales": FUNGI}


def groups_of(labels: Labels, taxa: pl.DataFrame) -> tuple[str, ...]:
    """The group of each label.

    >>> taxa = pl.DataFrame({"label": ["a", "b"], "kingdom": ["Fungi", None], "poisonous": [None, None]})
    >>> groups_of(Labels(("a", "b", "Naja naja")), taxa)
    ('fungi', 'other', 'snakes')
    """
    row_of = {row["label"]: row for row in taxa.iter_rows(named=True)}
    found = [_group(label, row_of.get(label, {})) for label in labels.names]
    agreed = {group for group in found if group}
    rest = agreed.pop() if len(agreed) == 1 else OTHER
    return tuple(group or rest for group in found)


def is_genus(label: str) -> bool:
    """Whether a label is the name of a genus in the short lists."""
    return label.lower() in FUNGUS_GENERA or label.lower() in SNAKE_GENERA


def _group(label: str, row: dict[str, str | None]) -> str:
    """The group by the ranks of one label; empty where nothing tells."""
    ranks = {name: str(row.get(name) or "").lower() for name in ("kingdom", "class", "order", "family", "genus")}
    genus = ranks["genus"] or (parse_name(label.replace("_", " ")).genus or label).lower()
    if ranks["family"] in SNAKE_FAMILIES or ORDERS.get(ranks["order"]) == SNAKES or genus in SNAKE_GENERA:
        return SNAKES
    by_rank = KINGDOMS.get(ranks["kingdom"]) or CLASSES.get(ranks["class"]) or ORDERS.get(ranks["order"])
    if by_rank:
        return by_rank
    if ranks["kingdom"] or ranks["class"]:
        return OTHER
    return FUNGI if genus in FUNGUS_GENERA else ""
