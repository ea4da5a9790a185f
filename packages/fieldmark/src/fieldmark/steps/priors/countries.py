"""Countries by name or code, and the continent of each: UN regions, with the Americas as North and South.

Russia counts as Europe; Turkey, Cyprus and the Caucasus as Asia; Central America and the Caribbean as North America.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

TABLE = "countries.csv"
# What releases write where nobody knows the country.
NOT_KNOWN = frozenset({"", "unknown", "nan", "none", "null", "zz"})


class ListedCountry(NamedTuple):
    """One country or territory with a code of its own."""

    code: str
    name: str
    continent: str


@cache
def countries() -> dict[str, ListedCountry]:
    """Every country under its codes of two and three letters, its name and other names for it, all in lower case."""
    text = files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
    by_name: dict[str, ListedCountry] = {}
    for row in csv.DictReader(text.splitlines()):
        country = ListedCountry(row["code"], row["name"], row["continent"])
        for name in (row["code"], row["code3"], row["name"], *row["other_names"].split("|")):
            if name:
                by_name[name.casefold()] = country
    return by_name


def find_country(text: str | None) -> ListedCountry | None:
    """The country that a text names, whatever its case; None for one that the table does not have.

    >>> find_country("united states of america").continent, find_country("DK").name, find_country("Atlantis")
    ('North America', 'Denmark', None)
    """
    return None if text is None else countries().get(text.strip().casefold())


def country_and_continent(text: str | None) -> tuple[str | None, str | None]:
    """The code of a country and its continent.

    A country that the table does not have keeps its own name, in lower case, and has no continent; both are None where
    nobody knows.

    >>> country_and_continent("Danmark"), country_and_continent("Denmark"), country_and_continent("UNKNOWN")
    (('danmark', None), ('DK', 'Europe'), (None, None))
    """
    if text is None or text.strip().casefold() in NOT_KNOWN:
        return None, None
    country = find_country(text)
    return (text.strip().casefold(), None) if country is None else (country.code, country.continent)


# What releases call continents otherwise.
SAME_CONTINENTS = {"australia": "Oceania", "central america": "North America"}


@cache
def place_of(country: str | None, continent: str | None) -> tuple[str | None, str | None]:
    """The code of a country and its continent, the stated one where the country does not tell.

    >>> place_of("Costa Rica", "South America"), place_of("UNKNOWN", "Australia"), place_of(None, "unknown")
    (('CR', 'North America'), (None, 'Oceania'), (None, None))
    """
    code, own = country_and_continent(country)
    if own is not None or continent is None or continent.strip().casefold() in NOT_KNOWN:
        return code, own
    stated = continent.strip()
    return code, SAME_CONTINENTS.get(stated.casefold(), stated)
