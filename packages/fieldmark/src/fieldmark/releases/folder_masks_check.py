"""A check of a researcher's own photos with masks: what has no mask, what is broken, what leaks from part to part."""

from __future__ import annotations

import polars as pl

from fieldmark.errors import InputError
from fieldmark.masks.pictures import TINTED, read_mask
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.folder_layout import PART_NAMES
from fieldmark.releases.folder_masks import FolderMasks, open_folder_masks
from fieldmark.tables.dataset import Dataset
from fieldmark.work.progress import progress

# What the part is called where parts are drawn later.
ALL = "all"


def check_folder_masks(check: CheckRun) -> list[PartCount]:
    """Checks what is there. Photos with the same bytes are found in any case; masks are opened with the photos.

    Raises:
        InputError: When the folders or tables cannot be opened at all.
    """
    problems, dataset = check.problems, open_folder_masks(check.release)
    check.release = dataset.release
    masks = dataset.layers["masks"]
    assert isinstance(masks, FolderMasks)
    files = dataset.media.with_columns(pl.col("parts").list.first().fill_null(ALL).alias("part"))
    for remark in dataset.remarks:
        problems.add("note", remark)
    _check_drawn(files, masks, problems)
    split_of = dict(files.select("path", "part").iter_rows())
    check.check_photos(split_of)
    if check.media:
        _check_pictures(dataset, masks, problems)
    present = [part for part in (*PART_NAMES, ALL) if part in set(files["part"])]
    return [PartCount(part, _count(files.filter(pl.col("part") == part))) for part in present]


def _count(files: pl.DataFrame) -> Count:
    return Count(observations=files["observation_id"].n_unique(), photos=len(files))


def _check_drawn(files: pl.DataFrame, masks: FolderMasks, problems: Problems) -> None:
    """Photos without any mask, and parts of the object that are drawn in some photos only."""
    bare = [path for one, path in files.select("media_id", "path").iter_rows() if one not in masks.path_of]
    problems.at("warning", "a photo has no mask and is neither learned from nor scored", bare)
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
    problems.at("error", "a mask cannot be read", broken)
    problems.at("note", f"a mask is read by {TINTED}", tinted)
    problems.at("note", "nothing is drawn in a mask", empty)
