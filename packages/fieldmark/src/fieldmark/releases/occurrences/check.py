"""A check of occurrences: rows that cannot be, photos that are missing or copies, labels that cannot be learned."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from fieldmark.benchmarks.occurrences import SPLIT
from fieldmark.errors import InputError
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.identical import across, identical_files, observations_together
from fieldmark.releases.occurrences.disdat import region_of
from fieldmark.releases.occurrences.records import Records, open_occurrences, read_records
from fieldmark.releases.occurrences.regions import has_records
from fieldmark.releases.occurrences.site_tables import find_table
from fieldmark.releases.occurrences.sources import SITES
from fieldmark.releases.photo_checks import LOOK_THE_SAME_DRAWN, alike_pairs, check_headers, check_photos, far_away
from fieldmark.splits import cut
from fieldmark.storage.release import Release
from fieldmark.tables.known_columns import read_settings


def check_occurrences(check: CheckRun) -> list[PartCount]:
    """Lists and counts what is wrong with the rows, by line; the root may be the folder of the table that was named.

    Photos that look the same are sought across labels and the parts that `fit` draws.

    Raises:
        InputError: When the table cannot be opened at all.
    """
    release, problems = check.release, check.problems
    settings = read_settings(release)
    if region_of(release) or not has_records(release, settings):
        return _check_region(release, problems, [])
    records = read_records(release)
    if records.rows.is_empty():
        raise InputError(records.source.where, found="no record", expected="at least one")
    problems.add("note", f"read as {records.source.kind.value}: {records.source.columns}")
    records.problems.report(problems)
    if records.without_file:
        problems.add("note", f"{records.without_file:,} photos have an address and no file here")
    _check_labels(records, problems)
    _check_photos(release, records, problems, media=check.media, near_duplicates=check.near_duplicates)
    with_photo = pl.col("observation_id").is_in(records.photos["observation_id"].implode())
    counts = [
        PartCount("all", _count(records, records.rows)),
        PartCount("places", _count(records, records.rows.filter(pl.col("lat").is_not_null()))),
        PartCount("photos", _count(records, records.rows.filter(with_photo))),
    ]
    if find_table(release, SITES, settings.sites.get("file", "")):
        return _check_region(release, problems, counts)
    return counts


def _check_region(release: Release, problems: Problems, counts: list[PartCount]) -> list[PartCount]:
    """Adds what there is and what is wrong with sites, background and environment."""
    dataset = open_occurrences(release, "presence")
    if not counts:
        for remark in dataset.remarks:
            problems.add("note", remark.rstrip("."))
    places = dataset.observations
    for kind, title in (("record", "records"), ("site", "sites"), ("background", "background")):
        own = places.filter(pl.col("kind") == kind)
        if len(own):
            classes = own["labels"].explode().drop_nulls().n_unique()
            counts.append(PartCount(f"presence: {title}", Count(observations=len(own), classes=classes or None)))
    sites = places.filter(pl.col("kind") == "site")
    learned = set(places.filter(pl.col("kind") == "record")["label"].drop_nulls())
    unlearned = sorted(set(sites["labels"].explode().drop_nulls()) - learned) if learned else []
    problems.at("warning", "a species of the sites has no record to learn from", unlearned)
    environment = dataset.layers.get("environment")
    if environment is None:
        problems.add("warning", "nothing describes places: there are no rasters and no columns of numbers")
    else:
        values = environment.numbers(places["observation_id"].to_list())
        empty = places["observation_id"].filter(pl.Series(np.isnan(values).all(axis=1))).to_list()
        problems.at("warning", "a place has no value of the environment", empty)
    return counts


def _count(records: Records, rows: pl.DataFrame) -> Count:
    photos = records.photos.join(rows, on="observation_id", how="semi")
    return Count(observations=len(rows), photos=len(photos), classes=rows["label"].drop_nulls().n_unique())


def _check_labels(records: Records, problems: Problems) -> None:
    seen = records.rows.drop_nulls("label").group_by("label").len()
    single = sorted(seen.filter(pl.col("len") == 1)["label"])
    problems.at("note", "a label has a single record, which can only be learned from", single)


def _check_photos(
    release: Release, records: Records, problems: Problems, *, media: bool, near_duplicates: bool
) -> None:
    if records.photos.is_empty():
        return
    labels = records.photos.join(records.rows.select("observation_id", "label"), on="observation_id", how="left")
    label_of = {path: label or "" for path, label in labels.select("path", "label").iter_rows()}
    several = across(identical_files(release, label_of), label_of)
    problems.at("warning", "the same photo has two labels", several)
    if not (media or near_duplicates):
        if not far_away(release):
            check_headers(release, list(label_of), problems)
        return
    looks = check_photos(release, list(label_of), problems, looks=near_duplicates)
    if near_duplicates:
        dataset = open_occurrences(release, "photos")
        listed = dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")
        members = cut(SPLIT, listed, together=partial(observations_together, dataset)).members
        part_of = {path: part for part, member in members.items() for path in listed["path"].filter(member)}
        pairs = alike_pairs(release, looks, [part_of[path] for path in looks.paths])
        problems.at("error", LOOK_THE_SAME_DRAWN, [f"{one} and {other}" for one, other in pairs], every=True)
