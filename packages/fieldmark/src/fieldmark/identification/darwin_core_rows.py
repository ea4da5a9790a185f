"""An answer as one record of Darwin Core: a machine's identification, marked as such and verified by nobody."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Final

from fieldmark.exporting.identifications import MACHINE, UNVERIFIED
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.identification.text import headline
from fieldmark.models.guides.rollup import OF_LABEL
from fieldmark.version import __version__

# Coordinates of threatened species are given to one decimal of a degree, which is about 11 km.
COARSE_DEGREES: Final = 1
COARSE_M: Final = 11_000
WITHHELD: Final = "Coordinates were rounded to 0.1 degrees, because a likely species is threatened."
TERMS: Final = (
    *("occurrenceID", "basisOfRecord", "occurrenceStatus", "eventDate", "decimalLatitude", "decimalLongitude"),
    *("coordinateUncertaintyInMeters", "geodeticDatum", "country", "habitat", "informationWithheld"),
    *("scientificName", "taxonRank", "kingdom", "phylum", "class", "order", "family", "genus", "vernacularName"),
    *("identifiedBy", "dateIdentified", "identificationVerificationStatus", "identificationRemarks"),
    "associatedMedia",
)


def darwin_core_row(answer: PhotoAnswer, *, model: str = "", today: datetime.date | None = None) -> dict[str, str]:
    """One row of Simple Darwin Core; terms of which nothing is known are left out.

    Args:
        answer: The answer.
        model: What the model is called.
        today: The day of the identification, if not this one.
    """
    claim, where = answer.claim, answer.circumstances
    by = f"Fieldmark {__version__}{f', model {model}' if model else ''}"
    row: dict[str, object] = {
        "occurrenceID": answer.file.name,
        "basisOfRecord": "Occurrence",
        "occurrenceStatus": "present",
        "eventDate": where.date,
        "country": where.country,
        "habitat": where.habitat,
        "identifiedBy": by,
        "dateIdentified": today or datetime.date.today(),
        "identificationVerificationStatus": UNVERIFIED,
        "identificationRemarks": " ".join([MACHINE, headline(answer), *(_simulated(answer))]),
        "associatedMedia": " | ".join(photo.name for photo in answer.photos),
    }
    if claim is not None:
        row |= {"scientificName": claim.name, "vernacularName": claim.common_name, **claim.lineage}
        row |= {} if claim.rank == OF_LABEL else {"taxonRank": claim.rank}
        if claim.label is not None and answer.names and answer.names[0].label == claim.label:
            row["vernacularName"] = answer.names[0].common_name  # a table of the user may know one
    if where.lat is not None and where.lon is not None:
        row |= _place(where.lat, where.lon, coarse=answer.threatened)
    return {term: str(row[term]) for term in TERMS if row.get(term) not in (None, "")}


def _place(lat: float, lon: float, *, coarse: bool) -> dict[str, object]:
    place: dict[str, object] = {"decimalLatitude": lat, "decimalLongitude": lon, "geodeticDatum": "WGS84"}
    if coarse:
        place |= {"decimalLatitude": round(lat, COARSE_DEGREES), "decimalLongitude": round(lon, COARSE_DEGREES)}
        place |= {"coordinateUncertaintyInMeters": COARSE_M, "informationWithheld": WITHHELD}
    return place


def _simulated(answer: PhotoAnswer) -> list[str]:
    return ["The model was trained on simulated data."] if answer.simulated else []


def as_darwin_core(answer: PhotoAnswer, *, model: str = "") -> str:
    """The row as a table with a header, values parted by commas."""
    row = darwin_core_row(answer, model=model)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(row), lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    return text.getvalue()
