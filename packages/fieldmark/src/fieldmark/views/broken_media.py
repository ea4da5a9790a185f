"""Photos and recordings that cannot be read, left out of a release on request, and never out of an official test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import polars as pl

from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.errors import InputError
from fieldmark.releases.checks import Problems
from fieldmark.releases.photo_checks import check_photos
from fieldmark.releases.record import record_of
from fieldmark.releases.recording_checks import check_recordings
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import PHOTO


def broken_media(dataset: Dataset) -> dict[str, str]:
    """What is wrong with each file that cannot be read to its end, by its path in the release."""
    problems = Problems()
    paths = dataset.media["path"].to_list()
    if dataset.medium is PHOTO:
        check_photos(dataset.release, paths, problems)
    else:
        check_recordings(dataset.release, paths, problems)
    return {path: why for path, _, why in (place.partition(": ") for place in problems.places())}


def without_media(dataset: Dataset, paths: Collection[str]) -> Dataset:
    """The release without some files, and without the observations that have no others."""
    if not paths:
        return dataset
    media = dataset.media.filter(~pl.col("path").is_in(list(paths)))
    gone = set(dataset.media["observation_id"]) - set(media["observation_id"])
    observations = dataset.observations.filter(~pl.col("observation_id").is_in(list(gone)))
    return replace(dataset, media=media, observations=observations)


def refuse_official(benchmark: Benchmark, dataset: Dataset, paths: Collection[str]) -> None:
    """Refuses to leave files of the test part of a published release out: scores would be of another test.

    Raises:
        InputError: When there are such files.
    """
    known = record_of(benchmark.dataset)
    if known is None or known.homepage is None:
        return  # somebody's own photos
    test = benchmark.split.test
    parts = dict(dataset.media.select("path", "parts").iter_rows())
    asked = [path for path in paths if test in (parts[path] or ())]
    if asked:
        raise InputError(
            f"{dataset.release.root}/{asked[0]}",
            found=f"{len(asked)} broken file(s) in the official test part of {benchmark.name}",
            expected="an official test part as it was published",
            hint="--skip-broken leaves none of its files out: fetch them again.",
        )
