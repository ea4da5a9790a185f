from __future__ import annotations

import io

import numpy as np
from PIL import ExifTags, Image

from fieldmark.releases.exif import WIDTH, ExifLayer, exif_numbers, exif_of
from fieldmark.storage.release import Release


def photo(**tags) -> bytes:
    made, exif = io.BytesIO(), Image.Exif()
    for name, value in tags.items():
        own = exif if name == "Make" else exif.get_ifd(ExifTags.IFD.Exif)
        own[ExifTags.Base[name].value] = value
    Image.new("RGB", (8, 8)).save(made, "JPEG", exif=exif)
    return made.getvalue()


def test_what_a_camera_noted_becomes_numbers_and_a_photo_without_notes_has_none(tmp_path):
    noted = photo(Make="Canon", ExposureTime=0.25, FNumber=4.0, ISOSpeedRatings=800, Flash=1, MeteringMode=5)
    (tmp_path / "a.jpg").write_bytes(noted)
    (tmp_path / "b.jpg").write_bytes(photo())
    (tmp_path / "c.jpg").write_bytes(b"no photo")
    layer = ExifLayer(Release(str(tmp_path)), {name: f"{name}.jpg" for name in "abc"})
    tags, *others = layer.read(["a", "b", "c", "nowhere"])
    assert tags["Make"] == "Canon" and others == [None, None, None]
    numbers = layer.numbers(["a", "b"])
    assert numbers.shape == (2, WIDTH) and np.isnan(numbers[1]).all()
    exposure, shutter, aperture, iso, focal = numbers[0, :5]
    assert (exposure, aperture) == (-2.0, 2.0) and round(iso, 2) == 9.64 and np.isnan([shutter, focal]).all()
    assert numbers[0, 5:12].tolist() == [0, 0, 0, 0, 0, 1, 0]  # metering mode 5
    assert numbers[0, -16:].sum() == 1  # one maker


def test_the_same_maker_is_the_same_whatever_its_spelling():
    one, other = (exif_numbers({"Make": make}) for make in ("NIKON  Corporation", "Nikon corporation"))
    np.testing.assert_array_equal(one, other)
    assert exif_of(b"") is None
