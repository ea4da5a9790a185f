"""What is known about a specimen besides its photos: what a person says, and what the camera noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fieldmark.identification.exif import taken
from fieldmark.identification.results import Circumstances


def with_camera_notes(context: Circumstances, photos: Sequence[Path]) -> tuple[Circumstances, tuple[str, ...]]:
    """The circumstances with date and place from the first photo that tells them, and a sentence about what was read.

    What a person said stays as it is.
    """
    notes = [taken(photo.read_bytes()) for photo in photos if photo.is_file()]
    remarks = []
    date = next((one.date for one in notes if one.date is not None), None)
    if context.date is None and date is not None:
        context = replace(context, date=date)
        remarks.append(f"The date was read from the photo: {date}.")
    place = next(((one.lat, one.lon) for one in notes if one.lat is not None), None)
    if context.lat is None and place is not None:
        context = replace(context, lat=place[0], lon=place[1])
        remarks.append(f"The place was read from the photo: {place[0]:.3f}, {place[1]:.3f}.")
    if not remarks and notes:
        remarks.append("The photos tell neither date nor place that was not given.")
    return context, tuple(remarks)
