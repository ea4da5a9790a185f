"""The family of a plant by its genus: a table of our own, by APG IV and, for ferns, PPG I.

It holds every genus of PlantCLEF 2020 (genera of the Guiana Shield, and trees and flowers that are planted there).
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

TABLE = "plant_families.csv"


@cache
def families() -> dict[str, str]:
    """The family of every genus of the table."""
    text = files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
    return {row["genus"]: row["family"] for row in csv.DictReader(text.splitlines())}


def family_of(genus: str | None) -> str | None:
    """The family of a genus; None for one that the table does not have.

    >>> family_of("Erythroxylum"), family_of("Amanita")
    ('Erythroxylaceae', None)
    """
    return None if genus is None else families().get(genus)
