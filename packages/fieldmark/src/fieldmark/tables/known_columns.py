"""Which column of a table of occurrences is which: by the terms of its format, by common names, or as stated.

`occurrences.toml` beside the table states what cannot be found:

```toml
file = "sightings.csv"         # which table, where there are several
separator = ";"                # encoding = "cp1252", quote = "" for tables that write quotes as they are
date_format = "%d/%m/%Y"       # where days and months could be taken for each other
photos = "pictures"            # the folder of photos called by the id of their record
crs = "EPSG:32632"             # what lat and lon are northings and eastings of, where they are not degrees
environment = ["bio1", "ph"]   # columns of numbers that describe the place of a record (`regions.py`)

[columns]                      # role = "name of the column"
label = "kind of butterfly"    # a stated label is taken as it is: no author is cut off, no rank looked for
lat = "north"

[sites]                        # places where every species was looked for (`site_tables.py`)
file = "plots.csv"             # sites.csv where it is not stated
id = "plot"
presences = "seen.csv"         # a table with a row for each species at each site, instead of a column for each species
species = "taxon"              # its column of names
tables = ["climate.csv"]       # tables of numbers by the id of the site: the environment, in place of its own columns
```
"""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from fieldmark.errors import InputError, did_you_mean
from fieldmark.storage.release import Release

SETTINGS_FILE: Final = "occurrences.toml"

# Names of columns by role, the best first. Case, spaces, dots, dashes and underscores do not matter.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    # No catalog numbers: they are unique within a collection only.
    "id": ("gbifID", "occurrenceID", "observation_id", "observation", "specimen_id", "record_id", "id", "uuid", "key"),
    "label": ("label",),
    "species": ("species", "taxon_species_name"),
    "accepted_name": ("acceptedScientificName", "acceptedNameUsage", "accepted_name"),
    "scientific_name": ("scientificName", "scientific name", "latin_name", "binomial"),
    # Only where there is nothing better: a name may be that of an observer.
    "name": ("taxon_name", "taxon", "species_name", "name", "category", "species_id"),
    "epithet": ("specificEpithet",),
    "rank": ("taxonRank", "rank"),
    "kingdom": ("kingdom", "taxon_kingdom_name"),
    "phylum": ("phylum", "taxon_phylum_name"),
    "class": ("class", "taxon_class_name"),
    "order": ("order", "taxon_order_name"),
    "family": ("family", "taxon_family_name"),
    "genus": ("genus", "taxon_genus_name"),
    "common_name": ("vernacularName", "common_name"),
    "date": (
        *("eventDate", "observed_on", "date", "observation_date", "date_observed", "observed_at", "collection_date"),
        *("date_collected", "earliestDateCollected"),
    ),
    "year": ("year",),
    "month": ("month",),
    "day": ("day",),
    "lat": ("decimalLatitude", "latitude", "lat"),
    "lon": ("decimalLongitude", "longitude", "lon", "long", "lng"),
    "coordinate_uncertainty_m": (
        *("coordinateUncertaintyInMeters", "public_positional_accuracy", "positional_accuracy", "accuracy_m"),
        *("coordUncertaintyM", "coordinate_uncertainty_m"),
    ),
    "country": ("countryCode", "country", "ISO2", "country_code"),
    "license": ("license", "licence"),
    "observer": ("recordedBy", "observer", "user_login", "collector", "user_id"),
    "basis_of_record": ("basisOfRecord",),
    "status": ("occurrenceStatus",),
    "image_path": ("image_path", "photo_path", "image_file", "photo_file", "file_name", "file", "photo", "image"),
    "image_url": ("image_url", "photo_url", "associatedMedia"),
    "image_license": ("image_license", "photo_license"),
    "habitat": ("habitat",),
    "substrate": ("substrate",),
    "elevation_m": ("elevation", "minimumElevationInMeters", "altitude", "elevation_m"),
    "site": ("site", "locationID"),
    "captive": ("captive_cultivated", "captive"),
    "obscured": ("coordinates_obscured",),
    "quality_grade": ("quality_grade",),
}
SITE_SETTINGS: Final = ("file", "id", "presences", "species", "tables")
_KINDS: Final[Mapping[str, type]] = {"columns": dict, "sites": dict, "environment": list}
# Where two columns of one of these roles are there and no format says which is meant, a person has to.
ONE_OF: Final = ("scientific_name", "name", "date", "lat", "lon")
NAME_ROLES: Final = ("label", "species", "accepted_name", "scientific_name")
# Columns of iNaturalist that look like something else.
NOT_OF_INATURALIST: Final = frozenset({"name", "label", "site", "key"})


class Format(Enum):
    """What a table is, by its header; the value is how a person is told."""

    ARCHIVE = "a Darwin Core Archive"
    INATURALIST = "an iNaturalist export"
    GBIF = "a simple download of GBIF"
    DARWIN_CORE = "a table with Darwin Core terms"
    ANY = "a table of its own kind"

    @property
    def has_terms(self) -> bool:
        """Whether names of columns mean what the format says, so that the best of several is taken."""
        return self is not Format.ANY


@dataclass(frozen=True)
class TableSettings:
    """What `occurrences.toml` states.

    Args:
        file: The table; empty where it is not stated.
        separator, encoding, quote: How it is written, None where it is not stated.
        date_format: As `strptime` takes it.
        photos: The folder of photos.
        crs: The coordinate system of `lat` and `lon`; empty for degrees.
        environment: The columns of numbers that describe places.
        sites: What is stated about places where every species was looked for (`SITE_SETTINGS`).
        columns: The name of the column of each role that is stated.
    """

    file: str = ""
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    date_format: str | None = None
    photos: str | None = None
    crs: str = ""
    environment: Sequence[str] = ()
    sites: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


def read_settings(release: Release) -> TableSettings:
    """Reads `occurrences.toml`, where there is one.

    Raises:
        InputError: When it is no TOML, or states something that is not known.
    """
    if not release.exists(SETTINGS_FILE):
        return TableSettings()
    where = release.where(SETTINGS_FILE)
    try:
        stated = tomllib.loads(release.read(SETTINGS_FILE).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(where, found=f"no TOML ({error})", expected="settings such as separator = ';'") from error
    settings = list(TableSettings.__dataclass_fields__)
    for name, value in stated.items():
        if name not in settings:
            hint = did_you_mean(name, settings)
            raise InputError(where, found=f"the setting {name!r}", expected="one that there is", hint=hint)
        _check_kind(name, value, _KINDS.get(name, str), where)
    for name, value in stated.get("sites", {}).items():
        if name not in SITE_SETTINGS:
            hint = did_you_mean(name, SITE_SETTINGS)
            raise InputError(where, found=f"the setting {name!r} of sites", expected="one that there is", hint=hint)
        _check_kind(f"sites.{name}", value, list if name == "tables" else str, where)
    _check_settings(stated, where)
    return TableSettings(**stated)


def _check_kind(name: str, value: Any, kind: type, where: str) -> None:
    expected = "a table" if kind is dict else "a list of texts" if kind is list else "text"
    texts = kind is not list or (isinstance(value, list) and all(isinstance(one, str) for one in value))
    if not isinstance(value, kind) or not texts:
        raise InputError(where, found=f"{name} = {value!r}", expected=expected)


def _check_settings(stated: Mapping[str, Any], where: str) -> None:
    for role, column in stated.get("columns", {}).items():
        if role not in NAMES:
            raise InputError(where, found=f"the role {role!r}", expected="another", hint=did_you_mean(role, NAMES))
        if not isinstance(column, str):
            raise InputError(where, found=f"{role} = {column!r}", expected="the name of a column")
    for name, fewest in (("separator", 1), ("quote", 0)):
        if name in stated and not fewest <= len(stated[name].encode()) <= 1:
            raise InputError(where, found=f"{name} = {stated[name]!r}", expected="one ASCII character")
    if "encoding" in stated:
        try:
            codecs.lookup(stated["encoding"])
        except LookupError as error:
            raise InputError(where, found=f"encoding = {stated['encoding']!r}", expected="one that is known") from error


def recognize(columns: Iterable[str]) -> Format:
    """What a table is, by the names of its columns.

    >>> recognize(["gbifID", "datasetKey", "species"]), recognize(["species", "lon", "lat"])
    (<Format.GBIF: 'a simple download of GBIF'>, <Format.ANY: 'a table of its own kind'>)
    """
    names = set(columns)
    if "gbifID" in names:
        return Format.GBIF
    if "quality_grade" in names and names & {"observed_on", "taxon_id", "scientific_name", "taxon_name"}:
        return Format.INATURALIST
    if "scientificName" in names and names & {"decimalLatitude", "occurrenceID", "basisOfRecord", "eventDate"}:
        return Format.DARWIN_CORE
    return Format.ANY


def find_columns(
    columns: Sequence[str], kind: Format, where: str, stated: Mapping[str, str] | None = None
) -> dict[str, int]:
    """The place of the column of each role, from 0.

    Args:
        columns: The names in the header, in their order.
        kind: What the table is.
        where: What to call the table in messages.
        stated: The column of each role that a person has stated.

    Raises:
        InputError: When no column holds names of taxa, a latitude has no longitude, two columns could be meant, or a
            stated one is not there.
    """
    place_of = _stated_places(columns, stated or {}, where)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(columns):
        places.setdefault(_plain(name), []).append(place)
    passed_over = {_plain(name) for name in NOT_OF_INATURALIST} if kind is Format.INATURALIST else set()
    for role, names in NAMES.items():
        if role in place_of or (role == "name" and any(better in place_of for better in NAME_ROLES)):
            continue
        wanted = dict.fromkeys(_plain(name) for name in names)
        fits = [place for name in wanted if name not in passed_over for place in places.get(name, ())]
        fits = [place for place in fits if place not in place_of.values()]
        if fits:
            if len(fits) > 1 and role in ONE_OF and not kind.has_terms:
                raise _ambiguous(role, [columns[place] for place in fits], where)
            place_of[role] = fits[0]
    _refuse_missing(place_of, columns, where)
    return place_of


def _stated_places(columns: Sequence[str], stated: Mapping[str, str], where: str) -> dict[str, int]:
    place_of = {}
    for role, name in stated.items():
        if name not in columns:
            found_columns = f"the columns {', '.join(columns)}"
            hint = f"{SETTINGS_FILE} states it for {role}. {did_you_mean(name, columns).partition('Known:')[0]}".strip()
            raise InputError(where, line=1, found=found_columns, expected=f"a column {name!r}", hint=hint)
        place_of[role] = columns.index(name)
    return place_of


def _ambiguous(role: str, names: Sequence[str], where: str) -> InputError:
    hint = f'State which one counts in {SETTINGS_FILE}: [columns] {role} = "{names[0]}".'
    return InputError(where, line=1, found=f"the columns {' and '.join(names)}", expected=f"one for {role}", hint=hint)


def _refuse_missing(place_of: Mapping[str, int], columns: Sequence[str], where: str) -> None:
    listed = f"the columns {', '.join(columns)}"
    if not any(role in place_of for role in (*NAME_ROLES, "name")) and not {"genus", "epithet"} <= set(place_of):
        hint = f'State the one that holds it in {SETTINGS_FILE}: [columns] label = "...".'
        expected = "one with the name of what was seen, such as scientificName, species or label"
        raise InputError(where, line=1, found=listed, expected=expected, hint=hint)
    for one, other in (("lat", "lon"), ("lon", "lat")):
        if one in place_of and other not in place_of:
            hint = f'State the other in {SETTINGS_FILE}: [columns] {other} = "...".'
            expected = f"a column for {other} beside {columns[place_of[one]]!r}"
            raise InputError(where, line=1, found=listed, expected=expected, hint=hint)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())
