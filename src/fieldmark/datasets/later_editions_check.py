"""Checks of the releases of later editions: what is published about them, and files that are missing."""

from __future__ import annotations

from collections.abc import Mapping

from fieldmark.datasets import DATASETS
from fieldmark.datasets.base import Dataset
from fieldmark.datasets.checking import Checker, CheckReport, Count, PartCount, Problems
from fieldmark.datasets.photo_checks import check_photos
from fieldmark.datasets.recording_checks import check_recordings
from fieldmark.release import Release

KAGGLE = "the competition's page"
ORGANIZERS = "the organizers' code"
PUBLISHED: Mapping[str, Mapping[str, Mapping[str, Count]]] = {
    "birdclef-2021": {"train": {KAGGLE: Count(classes=397)}, "val": {KAGGLE: Count(recordings=20)}},
    "birdclef-2023": {"train": {KAGGLE: Count(classes=264)}},
    "birdclef-2024": {"train": {KAGGLE: Count(classes=182)}},
    "birdclef-2025": {"train": {KAGGLE: Count(classes=206)}},
    # 28 of the 234 classes have no focal recording.
    "birdclef-2026": {"train": {KAGGLE: Count(classes=206)}},
    "animalclef-2025": {"query": {ORGANIZERS: Count(photos=946 + 689 + 500)}},
    "animalclef-2026": {"test": {ORGANIZERS: Count(photos=946 + 689 + 500 + 274)}},
}


def checker(name: str) -> Checker:
    """The check of one edition."""

    def check(release: Release, *, media: bool = False, near_duplicates: bool = False) -> CheckReport:
        """Checks what is there.

        Args:
            release: The root.
            media: Whether each photo or recording is opened; otherwise only its presence is checked.
            near_duplicates: Nothing is compared: parts of these editions are cut by the organizers alone.
        """
        problems = Problems()
        dataset = DATASETS[name](release)
        missing = [path for path in dataset.media["path"] if not release.exists(path)]
        if missing:
            problems.add("error", f"a {dataset.media_kind} that a table names is missing", missing)
        for remark in dataset.remarks:
            problems.add("note", remark.rstrip("."))
        counts = tuple(
            PartCount(part, _count(dataset, part), dict(PUBLISHED.get(name, {}).get(part, {})))
            for part in sorted({part for parts in dataset.media["parts"] for part in parts})
        )
        there = [path for path in dataset.media["path"] if path not in set(missing)]
        if media and dataset.media_kind == "photo":
            check_photos(release, there, problems)
        elif media:
            check_recordings(release, there, problems)
        return CheckReport(name, str(release.root), release.world is not None, counts, problems.listed())

    return check


def _count(dataset: Dataset, part: str) -> Count:
    media = dataset.media.filter(dataset.media["parts"].list.contains(part))
    labels = media.join(dataset.observations, on="observation_id", how="left")["label"].drop_nulls()
    classes = labels.n_unique() or None
    if dataset.media_kind == "photo":
        return Count(observations=media["observation_id"].n_unique(), photos=len(media), classes=classes)
    return Count(recordings=len(media), classes=classes)


CHECK_2021, CHECK_2022, CHECK_2023, CHECK_2024, CHECK_2025, CHECK_2026 = (
    checker(f"birdclef-{year}") for year in range(2021, 2027)
)
CHECK_ANIMALS_2025, CHECK_ANIMALS_2026 = (checker(f"animalclef-{year}") for year in (2025, 2026))
