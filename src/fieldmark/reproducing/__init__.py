"""Tables of papers, made again: each is a declaration, run cell by cell and compared with the numbers of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.foundation.late_imports import late_imports
from fieldmark.foundation.registry import Registry

if TYPE_CHECKING:
    from fieldmark.reproducing.declarations import Cell, Table
    from fieldmark.reproducing.running import CellOutcome, Reproduced, reproduce

TABLES: Registry[Table] = Registry(
    "table",
    {
        "fungitastic-table4": (
            "fieldmark.reproducing.fungitastic:TABLE_4",
            "FungiTastic, table 4 (and 8): eight architectures, closed set",
        ),
        "fungitastic-table5": (
            "fieldmark.reproducing.fungitastic:TABLE_5",
            "FungiTastic, table 5: few shots, frozen embeddings and classifiers",
        ),
        "semi-inat-table3": (
            "fieldmark.reproducing.semi:TABLE_3",
            "Semi-iNat 2021, table 3: ResNet-50 on labels and on all hidden labels, from scratch and from ImageNet",
        ),
    },
)

__getattr__ = late_imports(
    __name__,
    "fieldmark.reproducing.declarations:Cell",
    "fieldmark.reproducing.declarations:Table",
    "fieldmark.reproducing.running:CellOutcome",
    "fieldmark.reproducing.running:Reproduced",
    "fieldmark.reproducing.running:reproduce",
)
__all__ = ["TABLES", "Cell", "CellOutcome", "Reproduced", "Table", "reproduce"]
