"""Checks of the releases of later editions: what is published about them, and files that are missing."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from fieldmark.datasets import DATASETS
from fieldmark.datasets.base import Dataset
from fieldmark.datasets.checking import Checker, CheckReport, Count, PartCount, Problems
from fieldmark.datasets.photo_checks import check_split_photos
from fieldmark.datasets.recording_checks import check_recordings
from fieldmark.release import Release

KAGGLE = "the competition's page"
ORGANIZERS = "the organizers' code"
PAGE = "the challenge's page"
PUBLISHED: Mapping[str, Mapping[str, Mapping[str, Count]]] = {
    "birdclef-2021": {"train": {KAGGLE: Count(classes=397)}, "val": {KAGGLE: Count(recordings=20)}},
    "birdclef-2023": {"train": {KAGGLE: Count(classes=264)}},
    "birdclef-2024": {"train": {KAGGLE: Count(classes=182)}},
    "birdclef-2025": {"train": {KAGGLE: Count(classes=206)}},
    # 28 of the 234 classes have no focal recording.
    "birdclef-2026": {"train": {KAGGLE: Count(classes=206)}},
    "animalclef-2025": {"query": {ORGANIZERS: Count(photos=946 + 689 + 500)}},
    "animalclef-2026": {"test": {ORGANIZERS: Count(photos=946 + 689 + 500 + 274)}},
    "fungiclef-2022": {
        "train and val": {PAGE: Count(photos=295_938, classes=1_604)},
        "test": {PAGE: Count(observations=59_420, photos=118_676)},
    },
    "snakeclef-2022": {"train": {PAGE: Count(classes=1_572)}},
    "plantclef-2022": {
        "train": {PAGE: Count(classes=80_000)},
        "test": {PAGE: Count(observations=26_868, photos=55_306)},
    },
    "plantclef-2024": {"test": {f"{PAGE} of 2025": Count(photos=2_105)}},
    "fathomnet-2025": {"train": {PAGE: Count(photos=79 * 300, classes=79)}},
}
# What is published in rounded figures alone, or not at all.
ROUNDED: Mapping[str, str] = {
    "fungiclef-2022": "published of test: 1,165 known and 1,969 unknown species, which only the organizers can count",
    "fungiclef-2023": "how many photos each part has is not known from any page that could be read",
    "snakeclef-2022": "published: 1,572 species; how many photos there are is not known from any page",
    "snakeclef-2023": "how many photos each part has is not known from any page that could be read",
    "snakeclef-2024": "how many photos each part has is not known from any page that could be read",
    "plantclef-2022": "published in rounded figures: 4 million photos, 2.9 million of them trusted",
    "plantclef-2024": "published in rounded figures: 1.7 million single plants (2024), 1.4 million (2025)",
    "geolifeclef-2023": "published in rounded figures: 5 million records, 5,000 surveys for val, over 20,000 for test",
    "geolifeclef-2024": "published: 11,255 species ids; how many surveys and records there are is not known",
    "geolifeclef-2025": "how many surveys and records there are is not known from any page that could be read",
    "fathomnet-2025": "published in rounded figures: about 10 regions of each of 79 names in test",
}


def checker(name: str) -> Checker:
    """The check of one edition."""

    def check(release: Release, *, media: bool = False, near_duplicates: bool = False) -> CheckReport:
        """Checks what is there.

        Args:
            release: The root.
            media: Whether each photo or recording is opened; otherwise only its presence is checked.
            near_duplicates: Whether photos that look the same are sought across parts.
        """
        problems = Problems()
        dataset = DATASETS[name](release)
        paths = dataset.media["path"].to_list()
        there = release.sizes(paths)
        missing = [path for path in paths if path not in there]
        if missing:
            problems.add("error", f"a {dataset.media_kind} that a table names is missing", missing)
        _check_overlaps(dataset, problems)
        for remark in dataset.remarks:
            problems.add("note", remark.rstrip("."))
        if release.world is None and name in ROUNDED:
            problems.add("note", ROUNDED[name])
        if dataset.media_kind == "photo":
            part_of = dict(dataset.media.select("path", pl.col("parts").list.first().fill_null("")).iter_rows())
            split_of = {path: part for path, part in part_of.items() if path in there}
            check_split_photos(release, split_of, problems, media=media, near_duplicates=near_duplicates)
        elif media:
            check_recordings(release, [path for path in paths if path in there], problems)
        counts = tuple(_counts(name, dataset))
        return CheckReport(name, str(release.root), release.world is not None, counts, problems.listed())

    return check


def _counts(name: str, dataset: Dataset) -> list[PartCount]:
    """Every part, and those that are published together."""
    published = PUBLISHED.get(name, {})
    listed = _listed(dataset)
    parts = listed["parts"].explode().drop_nulls().unique().sort().to_list()
    together = [part for part in published if " and " in part]
    return [
        PartCount(part, _count(dataset, listed, part.split(" and ")), dict(published.get(part, {})))
        for part in (*together, *parts)
    ]


def _listed(dataset: Dataset) -> pl.DataFrame:
    """What the parts list: media with the labels of their observations, or places."""
    if "parts" in dataset.observations.columns:
        return dataset.observations
    labels = dataset.observations.drop([one for one in dataset.media.columns if one != "observation_id"], strict=False)
    return dataset.media.join(labels, on="observation_id", how="left", maintain_order="left")


def _count(dataset: Dataset, listed: pl.DataFrame, parts: list[str]) -> Count:
    rows = listed.filter(listed["parts"].list.set_intersection(parts).list.len() > 0)
    labels = rows["labels"].explode() if "labels" in rows.columns else rows["label"]
    classes = labels.drop_nulls().n_unique() or None
    if dataset.media.is_empty():
        return Count(observations=len(rows), classes=classes)
    if dataset.media_kind == "photo":
        return Count(observations=rows["observation_id"].n_unique(), photos=len(rows), classes=classes)
    return Count(recordings=len(rows), classes=classes)


def _check_overlaps(dataset: Dataset, problems: Problems) -> None:
    """Observations with photos in train and in a part that is asked about give answers away."""
    parts = dataset.media.explode("parts").group_by("observation_id").agg(pl.col("parts").unique().sort())
    both = parts.filter((pl.col("parts").list.len() > 1) & pl.col("parts").list.contains("train")).sort(
        "observation_id"
    )
    if len(both):
        places = [f"{name}: {' and '.join(one)}" for name, one in both.head(100).iter_rows()]
        problems.add("warning", f"{len(both):,} observation(s) have photos in train and in another part", places)


CHECK_2021, CHECK_2022, CHECK_2023, CHECK_2024, CHECK_2025, CHECK_2026 = (
    checker(f"birdclef-{year}") for year in range(2021, 2027)
)
CHECK_ANIMALS_2025, CHECK_ANIMALS_2026 = (checker(f"animalclef-{year}") for year in (2025, 2026))
CHECK_FUNGI_2022, CHECK_FUNGI_2023 = (checker(f"fungiclef-{year}") for year in (2022, 2023))
CHECK_SNAKES_2022, CHECK_SNAKES_2023, CHECK_SNAKES_2024 = (checker(f"snakeclef-{year}") for year in (2022, 2023, 2024))
CHECK_PLANTS_2022, CHECK_PLANTS_2024 = (checker(f"plantclef-{year}") for year in (2022, 2024))
CHECK_SURVEYS_2023, CHECK_SURVEYS_2024, CHECK_SURVEYS_2025 = (
    checker(f"geolifeclef-{year}") for year in (2023, 2024, 2025)
)
CHECK_FATHOMNET = checker("fathomnet-2025")
