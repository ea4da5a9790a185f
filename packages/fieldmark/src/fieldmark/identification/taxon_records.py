"""A claimed name as it is recorded: which scientific name, rank and lineage it stands for.

Answers on a terminal and on pages, folders of answers and every format that they are exported to ask here, so that a
claim of a genus is never written as one of its species.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fieldmark.tables.schema import RANKS


class TaxonRecord(NamedTuple):
    """A taxon as it is written into a record.

    Args:
        name: The scientific name; where none is known, the label in words.
        rank: Its rank, None where it is not known.
        lineage: The taxa above it by rank, as far as they are known.
        common_name: What people call it, where that is known.
    """

    name: str
    rank: str | None
    lineage: Mapping[str, str]
    common_name: str | None


class TaxonRecords:
    """The records of names, by the taxa of a model.

    Args:
        taxa: One row per label: `label`, and the ranks, `scientific_name` and `common_name` as far as they are known.
    """

    def __init__(self, taxa: Iterable[Mapping[str, Any]]) -> None:
        self._of_label = {str(row["label"]): row for row in taxa}
        self._member: dict[tuple[str, str], Mapping[str, Any]] = {}
        for row in self._of_label.values():
            for rank in RANKS:
                if row.get(rank):
                    self._member.setdefault((rank, str(row[rank])), row)

    def of(self, name: str, rank: str | None = None) -> TaxonRecord:
        """The record of a name.

        Args:
            name: A label, or a taxon that labels belong to.
            rank: The rank at which it was claimed; None for a label as such, whose rank its taxa tell.

        >>> records = TaxonRecords([{"label": "zea_mays", "species": "Zea mays", "genus": "Zea"}])
        >>> records.of("zea_mays", "genus"), records.of("zea_mays")[0]
        (TaxonRecord(name='Zea', rank='genus', lineage={}, common_name=None), 'Zea mays')
        """
        own = self._of_label.get(name, {})
        row = self._member.get((rank or "", name), own)
        stated = row.get(rank or "") or own.get("species") or own.get("scientific_name") or name.replace("_", " ")
        if rank is None:  # what the name itself is, where the taxa of the label tell
            rank = next((one for one in reversed(RANKS) if own.get(one) == stated), None)
        place = RANKS.index(rank) if rank in RANKS else len(RANKS)
        return TaxonRecord(
            str(stated),
            rank,
            {above: str(row[above]) for above in RANKS[:place] if row.get(above)},
            None if self._is_group(name, rank) else own.get("common_name"),  # a group does not bear that of a label
        )

    def claimed(self, name: str, rank: str | None) -> str:
        """The name itself; for a label that stands for a group it belongs to, the group."""
        return self.of(name, rank).name if self._is_group(name, rank) else name

    def _is_group(self, name: str, rank: str | None) -> bool:
        """Whether a label was named at a rank above its own."""
        row = self._of_label.get(name, {})
        return rank in RANKS and any(row.get(below) for below in RANKS[RANKS.index(rank) + 1 :])
