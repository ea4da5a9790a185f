"""A researcher's own photos with masks.

```
ROOT/
  images/<photo>.jpg           the photos; or images/train/, images/val/, images/test/ (val and test may be missing)
  masks/<photo>.png            white where the object is (values above 127) ...
  masks/<part>/<photo>.png     ... or one folder per part (cap, stem, ...)
  observations.csv             optional: file[,observation,part,label,...]
  boxes.csv                    optional: photo,x,y,width,height (see `photo_boxes`)
```

Quirks:

- A mask bears the photo's name with any ending, or that name with something after an underscore (`0010001_seg0.png`).
  Two masks of one part of a photo are refused; a mask without a photo is counted and passed over.
- A photo without a mask is neither learned from nor scored, and is counted.
- A mask may be larger or smaller than its photo: what is answered is brought to the size of the mask.
- `file` in `observations.csv` is the name of the photo. `observation` says which photos show one specimen, `part` is
  train, val or test (for those who have no such folders), `label` a class that the parts are drawn by.
- Without parts, they are drawn with a seed, whole observations at a time.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import polars as pl
from PIL import Image, UnidentifiedImageError

from fieldmark.datasets.base import Dataset
from fieldmark.datasets.inputs import CONTEXT, PHOTO, Input, Layer, MaskLayer
from fieldmark.datasets.photo_boxes import BOXES, BOXES_FILE, MediaBoxes, has_boxes, with_boxes
from fieldmark.errors import InputError, MisuseError
from fieldmark.foundation.masks import WHOLE, Mask
from fieldmark.foundation.media_files import PICTURE_SUFFIXES
from fieldmark.foundation.runlengths import MaskRow
from fieldmark.release import Release
from fieldmark.tables import read_csv

IMAGES, MASKS, OBSERVATIONS_FILE = "images", "masks", "observations.csv"
SET_NAMES = ("train", "val", "test")
NO_CLASS = "photo"
WHITE_ABOVE = 127
RENAMED = {"observation": "observation_id"}


def open_folder_masks(release: Release, subset: str = "all") -> Dataset:
    """Opens a folder of photos and masks as a dataset; there are no subsets."""
    if subset != "all":
        raise MisuseError(f"A folder of photos and masks has no subset called {subset!r}.")
    photos = _photos(release)
    masks, without_photo = _masks(release, photos["media_id"].to_list())
    photos = _described(release, photos)
    remarks = _remarks(without_photo)
    parts = pl.when(pl.col("part").is_null()).then(pl.lit([], pl.List(pl.String))).otherwise(pl.concat_list("part"))
    media = with_boxes(release, photos.select("media_id", "observation_id", "path", parts.alias("parts")))
    context = [name for name in photos.columns if name not in ("media_id", "path", "part", "observation_id")]
    observations = photos.group_by("observation_id", maintain_order=True).agg(pl.col(context).first())
    for name, kind in {"date": pl.Date, "lat": pl.Float64, "lon": pl.Float64}.items():
        if name not in observations.columns:
            observations = observations.with_columns(pl.lit(None, dtype=kind).alias(name))
    taxa = photos.select(pl.col("label").unique().sort()).with_columns(poisonous=pl.lit(None, dtype=pl.Boolean))
    layers: dict[str, Layer] = {"masks": FolderMasks(release, masks)}
    inputs: tuple[Input, ...] = (PHOTO, *CONTEXT)
    if has_boxes(media):
        layers["boxes"], inputs = MediaBoxes(media, release.where(BOXES_FILE)), (*inputs, BOXES)
    return Dataset("folder-masks", release, taxa, observations, media, remarks, layers=layers, inputs=inputs)


def _photos(release: Release) -> pl.DataFrame:
    """One row per photo with `media_id`, `path` and `part`."""
    if not release.exists(IMAGES) or not release.exists(MASKS):
        missing = IMAGES if not release.exists(IMAGES) else MASKS
        found = f"no folder {missing}/"
        raise InputError(release.root, found=found, expected="photos in images/ and their masks in masks/")
    sets = [name for name in SET_NAMES if name in release.folders(IMAGES)]
    if sets and "train" not in sets:
        raise InputError(release.where(IMAGES), found=f"{' and '.join(sets)} but no train", expected="images/train/")
    folders: list[tuple[str | None, str]] = [(name, f"{IMAGES}/{name}") for name in sets] or [(None, IMAGES)]
    rows = [(name, f"{folder}/{name}", part) for part, folder in folders for name in _pictures(release, folder)]
    if not rows:
        raise InputError(release.where(IMAGES), found="no photos", expected="photos directly in it, or in train/")
    schema = {"media_id": pl.String, "path": pl.String, "part": pl.String}
    photos = pl.DataFrame(rows, schema=schema, orient="row")
    for twice in photos.filter(pl.col("media_id").is_duplicated())["media_id"].head(1):
        found = f"two photos called {twice}"
        raise InputError(release.where(IMAGES), found=found, expected="names that differ: masks are found by them")
    return photos


def _pictures(release: Release, folder: str) -> list[str]:
    return [name for name in release.files(folder) if PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES]


def _masks(release: Release, photos: Sequence[str]) -> tuple[dict[str, dict[str, str]], int]:
    """For each photo the path of its mask by part, and how many masks belong to no photo."""
    photo_of = {PurePosixPath(name).stem: name for name in photos}
    folders = [(WHOLE, MASKS), *((part, f"{MASKS}/{part}") for part in release.folders(MASKS))]
    masks: dict[str, dict[str, str]] = {}
    without_photo = 0
    for part, folder in folders:
        for name in _pictures(release, folder):
            photo = _photo_of(name, photo_of)
            if photo is None:
                without_photo += 1
                continue
            earlier = masks.setdefault(photo, {}).setdefault(part, f"{folder}/{name}")
            if earlier != f"{folder}/{name}":
                found = f"a second mask of {photo} (the other is {earlier})"
                raise InputError(
                    release.where(f"{folder}/{name}"), found=found, expected="one for each part of a photo"
                )
    if not masks:
        found = "no mask that bears the name of a photo"
        raise InputError(release.where(MASKS), found=found, expected="masks/<photo>.png or masks/<part>/<photo>.png")
    return masks, without_photo


def _photo_of(mask: str, photo_of: Mapping[str, str]) -> str | None:
    """The photo that a mask belongs to: of the same name, or of what stands before an underscore."""
    name = PurePosixPath(mask).name
    while PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES:  # 1.jpg.png is the mask of 1.jpg
        name = PurePosixPath(name).stem
    while name not in photo_of and "_" in name:
        name = name.rpartition("_")[0]
    return photo_of.get(name)


def _described(release: Release, photos: pl.DataFrame) -> pl.DataFrame:
    """The photos with `observation_id`, `label` and what else the table says."""
    if release.exists(OBSERVATIONS_FILE):
        where = release.where(OBSERVATIONS_FILE)
        with release.open(OBSERVATIONS_FILE) as file:
            rows = read_csv(file, where, required=("file",))
        rows = rows.rename({old: new for old, new in RENAMED.items() if old in rows.columns})
        names = set(photos["media_id"])
        for line, name in enumerate(rows["file"], start=2):
            if name not in names:
                hint = "Restore the photo, or remove the line."
                raise InputError(where, line=line, found=f"{name!r}, which is not there", expected="a photo", hint=hint)
        if "part" in rows.columns:
            for line, part in enumerate(rows["part"], start=2):
                if part not in SET_NAMES:
                    raise InputError(where, line=line, found=f"the part {part!r}", expected="train, val or test")
            photos = photos.drop("part")
        photos = photos.join(rows, left_on="media_id", right_on="file", how="left", maintain_order="left")
    own = pl.col("media_id")
    observation = pl.coalesce("observation_id", own) if "observation_id" in photos.columns else own
    label = pl.col("label").fill_null(NO_CLASS) if "label" in photos.columns else pl.lit(NO_CLASS)
    return photos.with_columns(observation.alias("observation_id"), label.alias("label"))


def _remarks(without_photo: int) -> tuple[str, ...]:
    return (f"{without_photo:,} mask(s) belong to no photo and are passed over.",) if without_photo else ()


@dataclass(frozen=True)
class FolderMasks(MaskLayer):
    """The masks of a photo by part, from pictures.

    Args:
        release: The root.
        path_of: For each photo the picture of each part.
    """

    release: Release
    path_of: Mapping[str, Mapping[str, str]]

    def rows(self, ids: Sequence[str]) -> list[tuple[MaskRow, ...]]:
        # The whole last; all pictures are asked for at once.
        parts = [sorted(self.path_of.get(one, {}).items(), key=lambda pair: pair[0] == WHOLE) for one in ids]
        pictures = self.release.read_many(path for of_one in parts for _, path in of_one)
        return [tuple(MaskRow.of(part, self._mask(path, next(pictures))) for part, path in of_one) for of_one in parts]

    def names(self, ids: Sequence[str]) -> set[str]:
        """The parts that are drawn in some photos, without opening a picture."""
        return {part for media_id in ids for part in self.path_of.get(media_id, {})}

    def _mask(self, path: str, data: bytes) -> Mask:
        try:
            with Image.open(io.BytesIO(data)) as picture:
                return np.asarray(picture.convert("L")) > WHITE_ABOVE
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            where = self.release.where(path)
            raise InputError(where, found="something unreadable", expected="a picture of a mask") from error
