"""What cameras note about a photo, and what they note that cannot be."""

from __future__ import annotations

import datetime
import io

from PIL import ExifTags, Image

from fieldmark.identification.exif import Taken, taken


def photo(date: str | None, gps: dict[int, object] | None) -> bytes:
    exif = Image.Exif()
    if date is not None:
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = date
    if gps is not None:
        exif.get_ifd(ExifTags.IFD.GPSInfo).update(gps)
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


GPS = ExifTags.GPS
SYDNEY = {
    GPS.GPSLatitudeRef: "S",
    GPS.GPSLatitude: (33.0, 51.0, 36.0),
    GPS.GPSLongitudeRef: "E",
    GPS.GPSLongitude: (151.0, 12.0, 0.0),
}


def test_date_time_and_place_are_read():
    assert taken(photo("2021:09:30 06:15:00", SYDNEY)) == Taken(
        datetime.date(2021, 9, 30), datetime.time(6, 15), -33.86, 151.2
    )


def test_what_cannot_be_is_not_told():
    assert taken(photo("0000:00:00 00:00:00", None)) == Taken()
    assert taken(photo("1970:01:01 00:00:00", {**SYDNEY, GPS.GPSLatitude: (133.0, 0.0, 0.0)})) == Taken()
    assert taken(photo(None, {GPS.GPSLatitude: (0.0, 0.0, 0.0), GPS.GPSLongitude: (0.0, 0.0, 0.0)})) == Taken()
    assert taken(b"no photo") == Taken() and taken(b"") == Taken()
