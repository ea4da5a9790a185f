"""What the JSON file of a recording says, in the formats of several authors.

Recordings of xeno-canto come with the keys of its API (`gen`, `sp`, `en`, `cnt`, `lat`, `lng`, `also`, ...),
soundscapes and older releases with those of the organizers (`MediaId`, `Genus`, `Latitude`, `BackgroundSpecies`, ...).
Keys are taken in any case, a recording may be wrapped in `{"recordings": [...]}`, and whatever cannot be read is left
out: a day of "2014-05-00" or a place of "?" is no reason to lose a recording.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from fieldmark.errors import InputError
from fieldmark.tables.schema import MOST_EAST, MOST_NORTH

# Each thing that is known about a recording, with the keys it goes by; the first that is there counts.
KEYS: dict[str, tuple[str, ...]] = {
    "media_id": ("mediaid",),
    "genus": ("gen", "genus"),
    "epithet": ("sp",),
    "species": ("species", "scientificname", "sci_name", "scientific_name"),
    "common_name": ("en", "english", "vernacularnames", "commonname", "common_name"),
    "class_id": ("classid", "ebird_code", "ebirdcode"),
    "date": ("date",),
    "time": ("time",),
    "lat": ("lat", "latitude"),
    "lon": ("lng", "lon", "longitude"),
    "elevation_m": ("alt", "elevation"),
    "country": ("cnt", "country"),
    "locality": ("loc", "locality"),
    "recordist": ("rec", "author", "recordist"),
    "quality": ("q", "quality"),
    "vocalization": ("type", "content"),
    "site": ("site",),
    "background": ("also", "backgroundspecies", "background"),
}
NUMBERS = ("lat", "lon", "elevation_m")
TIME = re.compile(r"([01]?[0-9]|2[0-3])[:.]([0-5][0-9])")
_NOTHING = {"", "?", "-", "none", "null", "unknown"}


def read_metadata(data: bytes, where: object) -> dict[str, Any]:
    """Reads one JSON file as the keys of `KEYS`; what is not there, cannot be read or lies off the globe is None.

    Raises:
        InputError: When the file is no JSON object.
    """
    try:
        content = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(where, found=f"broken JSON ({error})", expected="the metadata of a recording") from error
    if isinstance(content, dict) and isinstance(content.get("recordings"), list) and content["recordings"]:
        content = content["recordings"][0]
    if not isinstance(content, dict):
        what = f"a JSON {type(content).__name__}"
        raise InputError(where, found=what, expected="a JSON object with the metadata of a recording")
    by_key = {str(key).lower(): value for key, value in content.items()}
    values = {name: _first(by_key, keys) for name, keys in KEYS.items()}
    for name in NUMBERS:
        values[name] = _number(values[name])
    for name, most in (("lat", MOST_NORTH), ("lon", MOST_EAST)):
        if values[name] is not None and abs(values[name]) > most:
            values[name] = None
    values["date"], values["time"] = _date(values["date"]), _time(values["time"])
    values["background"] = _names(values["background"])
    values["species"] = _binomial(values)
    values["genus"] = values["genus"] or (values["species"] or "").partition(" ")[0] or None
    for name in set(KEYS) - {*NUMBERS, "date", "background"}:
        values[name] = None if values[name] is None else str(values[name]).strip()
    return values


def _first(by_key: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = by_key.get(key)
        if value is not None and str(value).strip().lower() not in _NOTHING:
            return value
    return None


def _number(value: Any) -> float | None:
    """A number, also from texts such as "350 m" or "1,200"."""
    match = re.search(r"-?[0-9]+(?:\.[0-9]+)?", str(value).replace(",", "")) if value is not None else None
    return float(match.group()) if match else None


def _date(value: Any) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(str(value).strip()[:10].replace("/", "-"))
    except ValueError:
        return None


def _time(value: Any) -> str | None:
    """A time of day as hh:mm.

    >>> _time("7:05 am"), _time("07:05 pm"), _time("23:00 UTC"), _time("morning")
    ('07:05', '19:05', '23:00', None)
    """
    match = TIME.match(str(value).strip()) if value is not None else None
    if match is None:
        return None
    hour = int(match.group(1))
    rest = str(value).lower()
    hour += 12 if "pm" in rest and hour < 12 else -12 if "am" in rest and hour == 12 else 0
    return f"{hour:02d}:{match.group(2)}"


def _names(value: Any) -> list[str]:
    """A list of names, also from a text with commas."""
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return [text for part in parts if (text := str(part).strip()) and text.lower() not in _NOTHING]


def _binomial(values: Mapping[str, Any]) -> str | None:
    """Genus and epithet, however they are given: `gen` and `sp`, or `Genus` and `Species`, or one binomial."""
    genus, epithet, species = (values[name] for name in ("genus", "epithet", "species"))
    if species and " " in str(species).strip():
        return str(species).strip()
    epithet = epithet or species
    return f"{str(genus).strip()} {str(epithet).strip()}" if genus and epithet else None
