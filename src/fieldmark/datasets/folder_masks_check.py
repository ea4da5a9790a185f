"""A check of a researcher's own photos with masks: what has no mask, what is broken, what leaks from part to part."""

from __future__ import annotations

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.datasets.checking import CheckReport, Count, PartCount, Problems
from fieldmark.datasets.folder_layout import PART_NAMES
from fieldmark.datasets.folder_masks import FolderMasks, open_folder_masks
from fieldmark.datasets.mask_pictures import TINTED, read_mask
from fieldmark.datasets.photo_checks import check_split_photos
from fieldmark.errors import InputError
from fieldmark.foundation.progress import progress
from fieldmark.release import Release

# What the part is called where parts are drawn later.
ALL = "all"


def check_folder_masks(release: Release, *, media: bool = False, near_duplicates: bool = False) -> CheckReport:
    """Checks what is there. Photos with the same bytes are found in any case.

    Args:
        release: The root.
        media: Whether each photo and each mask is opened.
        near_duplicates: Whether photos that look the same are sought across parts.

    Raises:
        InputError: When the folders or tables cannot be opened at all.
    """
    problems, dataset = Problems(), open_folder_masks(release)
    release = dataset.release
    masks = dataset.layers["masks"]
    assert isinstance(masks, FolderMasks)
    files = dataset.media.with_columns(pl.col("parts").list.first().fill_null(ALL).alias("part"))
    for remark in dataset.remarks:
        problems.add("note", remark)
    _check_drawn(files, masks, problems)
    split_of = dict(files.select("path", "part").iter_rows())
    check_split_photos(release, split_of, problems, media=media, near_duplicates=near_duplicates)
    if media:
        _check_pictures(dataset, masks, problems)
    present = [part for part in (*PART_NAMES, ALL) if part in set(files["part"])]
    counts = [PartCount(part, _count(files.filter(pl.col("part") == part))) for part in present]
    return CheckReport("folder-masks", release.root, release.world is not None, tuple(counts), problems.listed())


def _count(files: pl.DataFrame) -> Count:
    return Count(observations=files["observation_id"].n_unique(), photos=len(files))


def _check_drawn(files: pl.DataFrame, masks: FolderMasks, problems: Problems) -> None:
    """Photos without any mask, and parts of the object that are drawn in some photos only."""
    bare = [path for one, path in files.select("media_id", "path").iter_rows() if one not in masks.path_of]
    if bare:
        problems.add("warning", "a photo has no mask and is neither learned from nor scored", bare)
    drawn = [set(parts) for parts in masks.path_of.values()]
    for name in sorted(set.union(*drawn)):
        number = sum(name in parts for parts in drawn)
        if number < len(drawn):
            problems.add("note", f"{name} is drawn in {number:,} of {len(drawn):,} photos with masks")


def _check_pictures(dataset: Dataset, masks: FolderMasks, problems: Problems) -> None:
    """Masks that cannot be read, or in which nothing is drawn."""
    paths = [path for parts in masks.path_of.values() for path in parts.values()]
    broken, empty, tinted = list[str](), list[str](), list[str]()
    with progress("reading masks", len(paths)) as tick:
        for path, data in zip(paths, dataset.release.read_many(paths), strict=True):
            try:
                mask, how = read_mask(data, path)
                if not mask.any():
                    empty.append(path)
                if how == TINTED:
                    tinted.append(path)
            except InputError as error:
                broken.append(str(error))
            tick(1)
    if broken:
        problems.add("error", "a mask cannot be read", broken)
    if tinted:
        problems.add("note", f"a mask is read by {TINTED}", tinted)
    if empty:
        problems.add("note", "nothing is drawn in a mask", empty)
