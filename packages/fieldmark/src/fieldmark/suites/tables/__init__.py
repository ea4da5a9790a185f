"""Tables of papers, made again: each is a declaration, run cell by cell and compared with the numbers of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.registry import Registry, late_imports

if TYPE_CHECKING:
    from fieldmark.suites.tables.cells import CellOutcome, Reproduced, reproduce
    from fieldmark.suites.tables.declarations import Cell, Table

TABLES: Registry[Table] = Registry(
    "table",
    {
        "fungitastic-table4": (
            "fieldmark.suites.tables.fungitastic:TABLE_4",
            "FungiTastic, table 4 (and 8): eight architectures, closed set",
        ),
        "fungitastic-table5": (
            "fieldmark.suites.tables.fungitastic:TABLE_5",
            "FungiTastic, table 5: few shots, frozen embeddings and classifiers",
        ),
        "semi-inat-table3": (
            "fieldmark.suites.tables.semi:TABLE_3",
            "Semi-iNat 2021, table 3: ResNet-50 on labels and on all hidden labels, from scratch and from ImageNet",
        ),
    },
)

__getattr__ = late_imports(
    __name__,
    "fieldmark.suites.tables.declarations:Cell",
    "fieldmark.suites.tables.declarations:Table",
    "fieldmark.suites.tables.cells:CellOutcome",
    "fieldmark.suites.tables.cells:Reproduced",
    "fieldmark.suites.tables.cells:reproduce",
)
__all__ = ["TABLES", "Cell", "CellOutcome", "Reproduced", "Table", "reproduce"]
