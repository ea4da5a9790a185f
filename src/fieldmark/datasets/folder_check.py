"""A check of a researcher's own photos or recordings: what cannot be learned, what is broken or passed over.

An observation in two parts is refused by the reader itself.
"""

from __future__ import annotations

from pathlib import PurePosixPath

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.datasets.checking import CheckReport, Count, PartCount, Problems
from fieldmark.datasets.folder import PARTS, SUFFIXES, open_folder
from fieldmark.datasets.photo_checks import check_photos
from fieldmark.errors import MisuseError
from fieldmark.release import Release

# What the part is called where the folders are classes and the parts are drawn later.
WHOLE = "all"


def check_folder(release: Release, *, photos: bool = False, near_duplicates: bool = False) -> CheckReport:
    """Checks what is there.

    Args:
        release: The root.
        photos: Whether each photo is opened.
        near_duplicates: Whether photos that look the same are sought across parts.

    Raises:
        InputError: When the folders or tables cannot be opened at all.
    """
    problems, dataset = Problems(), open_folder(release)
    media = dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")
    media = media.with_columns(pl.col("parts").list.first().fill_null(WHOLE).alias("part"))
    present = [part for part in (*PARTS, WHOLE) if part in set(media["part"])]
    counts = [PartCount(part, _count(dataset, media.filter(pl.col("part") == part))) for part in present]
    _check_classes(media, problems)
    _check_passed_over(release, problems)
    if photos or near_duplicates:
        if dataset.media_kind != "photo":
            raise MisuseError(f"{release.root} holds recordings; --photos and --near-duplicates open photos.")
        paths, splits = media["path"].to_list(), media["part"].to_list()
        check_photos(release, paths, splits, problems, near_duplicates=near_duplicates)
    return CheckReport("folder", release.root, release.world is not None, tuple(counts), problems.listed())


def _count(dataset: Dataset, media: pl.DataFrame) -> Count:
    photo = dataset.media_kind == "photo"
    return Count(
        observations=media["observation_id"].n_unique(),
        photos=len(media) if photo else None,
        classes=media["label"].n_unique(),
        recordings=None if photo else len(media),
    )


def _check_classes(media: pl.DataFrame, problems: Problems) -> None:
    learned = media.filter(pl.col("part").is_in(["train", WHOLE]))
    unlearned = sorted(set(media["label"]) - set(learned["label"]))
    if unlearned:
        problems.add("warning", "a class has nothing to learn from in train", unlearned)
    seen = learned.group_by("label").agg(pl.col("observation_id").n_unique())
    single = sorted(seen.filter(pl.col("observation_id") == 1)["label"])
    if single:
        problems.add("note", "a class is learned from a single observation", single)


def _check_passed_over(release: Release, problems: Problems) -> None:
    """Files beside the photos that have another ending, such as the HEIC of a telephone, and folders without any."""
    parts = [part for part in PARTS if part in release.folders()]
    folders = [f"{part}/{name}" for part in parts for name in release.folders(part)] or release.folders()
    other, empty = [], []
    for folder in folders:
        files = release.files(folder)
        strange = [name for name in files if PurePosixPath(name).suffix.lower() not in SUFFIXES]
        other += [f"{folder}/{name}" for name in strange]
        empty += [folder] if len(strange) == len(files) else []
    if other:
        known = ", ".join(sorted(SUFFIXES))
        problems.add("warning", f"a file is passed over, since it ends in none of {known}", other)
    if empty:
        problems.add("warning", "a folder of a class holds nothing that is read", empty)
