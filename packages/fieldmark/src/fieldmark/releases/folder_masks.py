"""A researcher's own photos with masks.

```
ROOT/                          a folder, or a .zip; also one that holds nothing but this folder
  images/<photo>.jpg           the photos; or images/train/, images/val/, images/test/ (val and test may be missing)
  masks/<photo>.png            white where the object is, or another color on black (`mask_pictures`) ...
  masks/<part>/<photo>.png     ... or one folder per part (cap, stem, ...)
  observations.csv             optional: file[,observation,part,label,...]
  boxes.csv                    optional: photo,x,y,width,height (see `photo_boxes`)
```

Quirks:

- A mask bears the photo's name with any ending, or that name with something after an underscore (`0010001_seg0.png`).
  Two masks of one part of a photo are refused; a mask without a photo is counted and passed over.
- A photo without a mask is neither learned from nor scored, and is counted.
- A mask may be larger or smaller than its photo: what is answered is brought to the size of the mask.
- Parts go by the names that `folder_layout` knows, tables by those that `own_tables` does; files in `images` and
  `masks` that are no pictures are counted.
- `file` in `observations.csv` is the name of the photo. `observation` says which photos show one specimen, `part` is
  train, val or test (for those who have no such folders), `label` a class that the parts are drawn by.
- Without parts, they are drawn with a seed, whole observations at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.masks.parts import WHOLE, Mask
from fieldmark.masks.pictures import read_mask
from fieldmark.masks.runlengths import MaskRow
from fieldmark.releases.folder import refuse_single_file
from fieldmark.releases.folder_layout import find_parts, named, told_parts, unwrapped
from fieldmark.releases.folder_tables import PHOTO_TABLES, read_photo_table, told_parts_of
from fieldmark.releases.own_tables import LINE, find_table, unread_tables
from fieldmark.releases.photo_boxes import BOXES, BOXES_TABLES, MediaBoxes, has_boxes, with_boxes
from fieldmark.releases.record import ReleaseRecord
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, PHOTO_INPUT, Input, Layer, MaskLayer
from fieldmark.tables.media import PICTURE_SUFFIXES, is_leftover

IMAGES, MASKS = "images", "masks"
NO_CLASS = "photo"
# How many masks are looked at to tell how they are read.
LOOKED_AT = 24
OFFERED = ("observations.csv", "boxes.csv")


def open_folder_masks(release: Release, subset: str = "all") -> Dataset:
    """Opens a folder of photos and masks as a dataset; there are no subsets."""
    if subset != "all":
        raise MisuseError(f"A folder of photos and masks has no subset called {subset!r}.")
    refuse_single_file(release)
    release, remarks = unwrapped(release)
    photos, told = _photos(release)
    masks, without_photo = _masks(release, photos["media_id"].to_list())
    photos, told_by_table = _described(release, photos)
    parts = pl.when(pl.col("part").is_null()).then(pl.lit([], pl.List(pl.String))).otherwise(pl.concat_list("part"))
    media, boxes_remarks = with_boxes(
        release, photos.select("media_id", "observation_id", "path", parts.alias("parts"))
    )
    tables = [find_table(release, names) for names in (PHOTO_TABLES, BOXES_TABLES)]
    remarks = (*remarks, *told, *told_by_table, *boxes_remarks, *unread_tables(release, tables, OFFERED))
    remarks = (*remarks, *_remarks(without_photo), *_told_masks(release, masks))
    context = [name for name in photos.columns if name not in ("media_id", "path", "part", "observation_id")]
    observations = photos.group_by("observation_id", maintain_order=True).agg(pl.col(context).first())
    for name, kind in {"date": pl.Date, "lat": pl.Float64, "lon": pl.Float64}.items():
        if name not in observations.columns:
            observations = observations.with_columns(pl.lit(None, dtype=kind).alias(name))
    taxa = photos.select(pl.col("label").unique().sort()).with_columns(poisonous=pl.lit(None, dtype=pl.Boolean))
    layers: dict[str, Layer] = {"masks": FolderMasks(release, masks)}
    inputs: tuple[Input, ...] = (PHOTO_INPUT, *CONTEXT)
    if has_boxes(media):
        layers["boxes"], inputs = MediaBoxes(media, release.where(tables[1] or "")), (*inputs, BOXES)
    return Dataset("folder-masks", release, taxa, observations, media, remarks, layers=layers, inputs=inputs)


def _photos(release: Release) -> tuple[pl.DataFrame, list[str]]:
    """One row per photo with `media_id`, `path` and `part`; and what to say about how they were read."""
    for wanted in (IMAGES, MASKS):
        if wanted not in release.folders():
            expected = "photos in images/ and their masks in masks/"
            raise InputError(release.root, found=f"no folder {wanted}/", expected=expected)
    sets = find_parts(release, IMAGES)
    folders: list[tuple[str | None, str]] = [(part, f"{IMAGES}/{name}") for part, name in sets.items()]
    folders = folders or [(None, IMAGES)]
    rows = [(name, f"{folder}/{name}", part) for part, folder in folders for name in _pictures(release, folder)]
    if not rows:
        raise InputError(release.where(IMAGES), found="no photos", expected="photos directly in it, or in train/")
    schema = {"media_id": pl.String, "path": pl.String, "part": pl.String}
    photos = pl.DataFrame(rows, schema=schema, orient="row")
    for twice in photos.filter(pl.col("media_id").is_duplicated())["media_id"].head(1):
        found = f"two photos called {twice}"
        raise InputError(release.where(IMAGES), found=found, expected="names that differ: masks are found by them")
    return photos, [*told_parts(sets), *_told_others(release, [folder for _, folder in folders])]


def _told_others(release: Release, folders: Sequence[str]) -> list[str]:
    """A remark on what lies beside the photos and is not read."""
    others = [f"{folder}/{name}" for folder in folders for name in release.files(folder) if not _is_picture(name)]
    inner = {name for folder in folders for name in release.folders(folder) if not is_leftover(name)}
    others = [path for path in others if not is_leftover(path.rpartition("/")[2])]
    beside = [f"{IMAGES}/{name}" for name in release.files(IMAGES) if _is_picture(name) and IMAGES not in folders]
    others += [
        *beside,
        *(f"{folder}/{name}/" for folder in folders for name in release.folders(folder) if name in inner),
    ]
    return [f"Not read in `{IMAGES}/`: {named(others)}."] if others else []


def _is_picture(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in PICTURE_SUFFIXES


def _pictures(release: Release, folder: str) -> list[str]:
    return [name for name in release.files(folder) if _is_picture(name)]


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


def _described(release: Release, photos: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The photos with `observation_id`, `label` and what else the table says; and how that was read."""
    told = read_photo_table(release, photos["path"].to_list())
    if told is not None:
        rows = told.table.rows.drop(LINE)
        if "part" in rows.columns:
            rows = rows.with_columns(told_parts_of(told.table))
            photos = photos.drop("part")
        photos = photos.join(rows, left_on="path", right_on="file", how="left", maintain_order="left")
    own = pl.col("media_id")
    observation = pl.coalesce("observation_id", own) if "observation_id" in photos.columns else own
    label = pl.col("label").fill_null(NO_CLASS) if "label" in photos.columns else pl.lit(NO_CLASS)
    described = photos.with_columns(observation.alias("observation_id"), label.alias("label"))
    return described, () if told is None else told.remarks()


def _remarks(without_photo: int) -> tuple[str, ...]:
    return (f"{without_photo:,} mask(s) belong to no photo and are skipped.",) if without_photo else ()


def _told_masks(release: Release, masks: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """How masks are read that are not black and white, by a look at some of them; the first must be readable."""
    paths = [path for parts in masks.values() for path in parts.values()]
    some = paths[:: -(-len(paths) // LOOKED_AT)]
    found: dict[str, list[str]] = {}
    for path, data in zip(some, release.read_many(some), strict=True):
        try:
            how = read_mask(data, release.where(path)).how
        except InputError:
            if path == paths[0]:
                raise
            continue  # refused where it is used, and listed by `check --photos`
        if how:
            found.setdefault(how, []).append(path)
    share = f"of {len(some):,} masks" if some == paths else f"of {len(some):,} masks looked at"
    return tuple(f"Read {len(own):,} {share}, such as `{own[0]}`, by {how}." for how, own in found.items())


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
        return read_mask(data, self.release.where(path)).mask


RECORDS = (
    ReleaseRecord(
        name="folder-masks",
        about="your own photos with masks",
        open=open_folder_masks,
        check="fieldmark.releases.folder_masks_check:check_folder_masks",
        single_file=True,
    ),
)
