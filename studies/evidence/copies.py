"""Copies of photos: how many does `fieldmark check --near-duplicates` find, and what else does it take for a copy?

Detection: real photos of five sets as train and one changed copy of each as test, by the check's own way (patches,
candidates, comparison); beside it what `fit` finds by the looks that it stores with features. False alarms: every photo
of a set is compared with every other. A reported pair counts as false where a person who looks at both sees two photos
and not one (`TWO_PHOTOS`); the sets have copies of their own.

The thresholds were chosen on fungi_genera, the training photos of birds_cub_odd and fungi_amanita. The other sets were
looked at while the finder was written, without moving a threshold for them; the test photos of the birds were not.
"""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image, ImageEnhance, ImageOps

from fieldmark.features.photo_blocks import look_of
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.fitting.copies import copied
from fieldmark.releases.checks import Problems
from fieldmark.releases.identical import identical_files
from fieldmark.releases.photo_checks import alike_pairs, check_photos
from fieldmark.storage.release import Release
from fieldmark.tables.media import PHOTO
from studies.evidence.results import real_data

PHOTOS_EACH, SEED = 40, 37
# Folders of real photos; whether the thresholds were chosen on them.
SETS = {
    "birds_cub_odd/test": False,
    "butterflies_leeds/images": False,
    "camera_traps_jura": False,
    "plants_sheets_and_field": False,
    "snakes_philippines": False,
    "fungi_amanita": True,
    "fungi_genera": True,
}
# Pairs that were reported and show two photos of a series, as a person sees them, or may do so.
TWO_PHOTOS = frozenset(
    {
        ("test/Ptyas_carinata/test_0001.jpg", "train/Ptyas_carinata/train_0005.jpg"),
        ("train/Xenopeltis_unicolor/train_0009.jpg", "train/Xenopeltis_unicolor/train_0010.jpg"),
        ("val/Naja_samarensis/val_0009.jpg", "val/Naja_samarensis/val_0010.jpg"),
    }
)
ABOUT = (
    f"{5 * PHOTOS_EACH} real photos as train, {PHOTOS_EACH} of each of five sets, and a changed copy of each as test; "
    "cuts lie at random places. Then all photos of a set are compared with each other: those of equal bytes, pairs "
    "that share patches and are opened again, pairs that are reported, and reported ones that show two photos by eye."
)
SQUARE = Preprocessing(224, 0.875, (0.5,) * 3, (0.5,) * 3)
Change = Callable[[Image.Image, random.Random], bytes]


def _jpeg(picture: Image.Image, quality: int = 92) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _smaller(picture: Image.Image) -> Image.Image:
    return picture.resize((round(0.8 * picture.width), round(0.8 * picture.height)), Image.Resampling.LANCZOS)


def _cut(picture: Image.Image, share: float, draw: random.Random) -> Image.Image:
    """A part of a picture with this share of both sides, at a random place."""
    width, height = round(share * picture.width), round(share * picture.height)
    left, top = draw.randint(0, picture.width - width), draw.randint(0, picture.height - height)
    return picture.crop((left, top, left + width, top + height))


def _turned(picture: Image.Image) -> Image.Image:
    return picture.transpose(Image.Transpose.ROTATE_90)


KINDS: dict[str, Change] = {
    "re-encoded (JPEG quality 70)": lambda photo, _: _jpeg(photo, 70),
    "resized (0.8)": lambda photo, _: _jpeg(_smaller(photo)),
    "resized (0.8) and re-encoded (70)": lambda photo, _: _jpeg(_smaller(photo), 70),
    "brighter (1.3)": lambda photo, _: _jpeg(ImageEnhance.Brightness(photo).enhance(1.3)),
    "mirrored": lambda photo, _: _jpeg(ImageOps.mirror(photo)),
    "turned (90°)": lambda photo, _: _jpeg(_turned(photo)),
    "cropped (80 % of each side)": lambda photo, draw: _jpeg(_cut(photo, 0.8, draw)),
    "cropped (70 %)": lambda photo, draw: _jpeg(_cut(photo, 0.7, draw)),
    "cropped (60 %)": lambda photo, draw: _jpeg(_cut(photo, 0.6, draw)),
    "cropped (80 %), mirrored, resized (0.8), re-encoded (70)": lambda photo, draw: _jpeg(
        _smaller(ImageOps.mirror(_cut(photo, 0.8, draw))), 70
    ),
}


def run() -> dict[str, Any] | None:
    """Detection by kind of change, and reported pairs by set."""
    folders = {name: real_data(name) for name in SETS}
    if not all(folders.values()):
        return None
    draw = random.Random(SEED)
    photos: list[Path] = []
    for name, chosen in SETS.items():
        if not chosen:
            photos += draw.sample(_photos(Path(folders[name] or "")), PHOTOS_EACH)
    with tempfile.TemporaryDirectory() as folder:
        detection = {kind: _detected(photos, KINDS.get(kind), Path(folder)) for kind in ("exact", *KINDS)}
    alarms = {name: _reported(name, Path(folders[name] or "")) for name in SETS}
    return {"about": ABOUT, "photos": len(photos), "detection": detection, "alarms": alarms}


def _photos(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if PHOTO.owns(path))


def _detected(photos: list[Path], change: Change | None, folder: Path) -> dict[str, int]:
    """How many copies the check finds, how many pairs of other photos it takes for copies, and what `fit` finds."""
    draw = random.Random(SEED)
    paths = []
    for number, photo in enumerate(photos):
        data = photo.read_bytes()
        copy = data
        if change is not None:
            with Image.open(io.BytesIO(data)) as opened:
                copy = change(opened.convert("RGB"), draw)
        for part, content in (("train", data), ("test", copy)):
            paths.append(f"{part}-{number:03}.jpg")
            (folder / paths[-1]).write_bytes(content)
    release = Release(folder)
    looks = check_photos(release, paths, Problems(), looks=True)
    pairs = alike_pairs(release, looks, pl.Series([path[:5] for path in looks.paths]))
    right = sum(one[-7:] == other[-7:] for one, other in pairs)
    squares = [look_of(decode_square((folder / path).read_bytes(), SQUARE)) for path in paths]
    place = np.array([0, 3] * len(photos))
    by_fit = copied(np.stack([one for one in squares if one is not None]), place, lambda row: release.read(paths[row]))
    return {"found": right, "others": len(pairs) - right, "by_fit": len(by_fit)}


def _reported(name: str, folder: Path) -> dict[str, Any]:
    """Pairs of photos of a set that are taken for copies, without those of equal bytes."""
    release = Release(folder)
    paths = [str(path.relative_to(folder)) for path in _photos(folder)]
    same = {path for group in identical_files(release, paths) for path in group[1:]}
    paths = [path for path in paths if path not in same]
    looks = check_photos(release, paths, Problems(), looks=True)
    pairs = alike_pairs(release, looks, looks.paths)
    return {
        "chosen_on": SETS[name],
        "photos": len(looks.paths),
        "equal_bytes": len(same),
        "candidates": len(looks.candidates(looks.paths)),
        "reported": len(pairs),
        "two_photos": sum(pair in TWO_PHOTOS for pair in pairs),
        "pairs": [list(pair) for pair in pairs],
    }
