"""A check of a researcher's own photos or recordings: what cannot be learned, what is broken or passed over.

An observation in two parts is refused by the reader itself.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from fieldmark.benchmarks.folder import SPLIT
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.folder import read_folder
from fieldmark.releases.folder_layout import PART_NAMES, Listing
from fieldmark.releases.identical import across, identical_files, observations_together
from fieldmark.releases.photo_checks import (
    LOOK_THE_SAME,
    LOOK_THE_SAME_DRAWN,
    Looks,
    alike_pairs,
    check_headers,
    check_photos,
    far_away,
    note_copies,
    unlike,
)
from fieldmark.releases.recording_checks import check_recordings
from fieldmark.splits import cut
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import EVERY_SUFFIX
from fieldmark.tables.row_problems import Severity

# What the part is called where the folders are classes and the parts are drawn later.
WHOLE = "all"


def check_folder(check: CheckRun) -> list[PartCount]:
    """Checks what is there. Files with the same bytes are found in any case.

    Photos that look the same are sought across classes, parts and observations.

    Raises:
        InputError: When the folders or tables cannot be opened at all.
    """
    problems, reading = check.problems, read_folder(check.release)
    dataset = reading.dataset
    release = check.release = dataset.release
    files = _files(dataset)
    present = [part for part in (*PART_NAMES, WHOLE) if part in set(files["part"])]
    counts = [PartCount(part, _count(dataset, files.filter(pl.col("part") == part))) for part in present]
    _check_classes(files, problems)
    _check_passed_over(reading.listing, problems)
    for remark in reading.remarks:
        problems.add("note", remark)
    _check_copies(dataset, files, problems)
    if not dataset.medium.visual:
        paths = files["path"].to_list()
        if not check.media:
            paths = [] if far_away(release) else unlike(release, paths, dataset.medium)
        check_recordings(release, paths, problems)
    elif check.media or check.near_duplicates:
        looks = check_photos(release, files["path"], problems, looks=check.near_duplicates)
        if check.near_duplicates:
            _check_looks(dataset, files, looks, problems)
    elif not far_away(release):
        check_headers(release, files["path"], problems)
    return counts


def _files(dataset: Dataset) -> pl.DataFrame:
    """One row per file: `path`, `observation_id`, `label`, `part`, and what a draw of parts asks for."""
    media, observations = dataset.media, dataset.observations
    columns = [name for name in ("path", "observation_id", "parts", "domain") if name in media.columns]
    files, labels = media.select(columns), observations.select("observation_id", "label")
    # A join of as many rows on both sides takes far more memory than what comes out of it.
    if files["observation_id"].equals(labels["observation_id"]):
        files = files.with_columns(labels["label"])
    else:
        files = files.join(labels, on="observation_id", how="left", maintain_order="left")
    return files.with_columns(pl.col("parts").list.first().fill_null(WHOLE).alias("part"))


def _check_copies(dataset: Dataset, files: pl.DataFrame, problems: Problems) -> None:
    """Files with the same bytes: in two parts they leak, in two classes one label is wrong."""
    groups = identical_files(dataset.release, files["path"])
    copies = files.filter(pl.col("path").is_in([path for group in groups for path in group]))
    part_of = dict(copies.select("path", "part").iter_rows())
    label_of = dict(copies.select("path", "label").iter_rows())
    note_copies(groups, part_of, problems, dataset.medium)
    several = across(groups, label_of)
    problems.at("warning", f"the same {dataset.medium} is in two classes", several)
    same = [group for group in groups if len({(part_of[path], label_of[path]) for path in group}) == 1]
    what = f"the same {dataset.medium} is there twice (parts that are drawn keep copies together)"
    problems.at("note", what, [" and ".join(group) for group in same])


def _check_looks(dataset: Dataset, files: pl.DataFrame, looks: Looks, problems: Problems) -> None:
    """Photos of two observations that look the same: across classes, parts, and parts that `fit` would draw."""
    read = files if len(looks.paths) == len(files) else files.filter(pl.col("path").is_in(looks.paths.implode()))
    pairs = alike_pairs(dataset.release, looks, read["observation_id"])
    if not pairs:
        return
    alike = files["path"].is_in({path for pair in pairs for path in pair})
    members = cut(SPLIT, files, together=partial(observations_together, dataset)).members
    drawn = {path: part for part, member in members.items() for path in files["path"].filter(member & alike)}
    about = {row["path"]: row for row in files.filter(alike).iter_rows(named=True)}
    photos_by_problem: dict[tuple[Severity, str], list[str]] = {}
    for one, other in pairs:
        first, second = about[one], about[other]
        whats: list[tuple[Severity, str]] = []
        if first["label"] != second["label"]:
            whats.append(("warning", "photos in two classes look the same"))
        if first["part"] != second["part"]:
            whats.append(("error", LOOK_THE_SAME))
        elif drawn[one] != drawn[other]:
            whats.append(("error", LOOK_THE_SAME_DRAWN))
        elif first["part"] == WHOLE and not whats:
            whats.append(("note", "photos of two observations look the same; with another seed fit may part them"))
        for kind in whats:
            photos_by_problem.setdefault(kind, []).append(f"{one} and {other}")
    for (severity, what), places in photos_by_problem.items():
        problems.add(severity, what, places, every=True)


def _count(dataset: Dataset, media: pl.DataFrame) -> Count:
    return Count(
        observations=media["observation_id"].n_unique(),
        classes=media["label"].drop_nulls().n_unique() or None,
        **{dataset.medium.plural: len(media)},
    )


def _check_classes(media: pl.DataFrame, problems: Problems) -> None:
    learned = media.filter(pl.col("part").is_in(["train", WHOLE]))
    unlearned = sorted(set(media["label"].drop_nulls()) - set(learned["label"]))
    problems.at("warning", "a class has nothing to learn from in train", unlearned)
    seen = learned.group_by("label").agg(pl.col("observation_id").n_unique())
    single = sorted(seen.filter(pl.col("observation_id") == 1)["label"])
    problems.at("note", "a class is learned from a single observation", single)


def _check_passed_over(listing: Listing, problems: Problems) -> None:
    """Files beside the photos that have another ending, folders that are no part, and those of classes without any."""
    if listing.passed_over:
        endings = ", ".join(sorted(EVERY_SUFFIX))
        problems.add("warning", f"a file is skipped, since it ends in none of {endings}", listing.passed_over)
    if listing.no_parts:
        problems.add("warning", "a folder is no part (train, val, test) and is skipped", listing.no_parts)
    if listing.loose:
        problems.add("warning", "a photo lies beside the folders of classes and is skipped", listing.loose)
    if listing.empty:
        problems.add("warning", "a folder of a class holds nothing that is read", listing.empty)
