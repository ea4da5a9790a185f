"""A check of an FGVCx Fungi 2018 release: which edition it is, and what is missing, doubled or does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.coco import CocoFile
from fieldmark.releases.fgvcx_fungi import (
    CATEGORY_LIST,
    PHOTO_TREES,
    RELEASED_PARTS,
    annotation_files,
    cut_folders,
    cut_name,
    listed_categories,
    photo_folders,
    read_solution,
    solution_file,
)
from fieldmark.storage.release import Release
from fieldmark.tables.row_problems import Severity

DRAFT, FINAL = "the draft (README of early 2018)", "the final release"
SPECIES = {DRAFT: 3_000, FINAL: 1_394}
LONGEST_SIDE_PX = {DRAFT: 800, FINAL: 1_024}
# The draft left the numbers of photos open. Val and test of the final release have 3 and 7 times as many photos as
# there are species, presumably 3 and 7 of each.
PUBLISHED: Mapping[str, Mapping[str, Count]] = {
    "train": {DRAFT: Count(classes=3_000), FINAL: Count(photos=85_578, classes=1_394)},
    "val": {DRAFT: Count(classes=3_000), FINAL: Count(photos=4_182, classes=1_394)},
    "test": {FINAL: Count(photos=9_758)},
}


def check_fgvcx_fungi(check: CheckRun) -> list[PartCount]:
    """Checks what is there."""
    release, problems = check.release, check.problems
    files = annotation_files(release)
    absent = [f"{part}.json" for part in RELEASED_PARTS if part not in files]
    problems.at("warning", "a file of annotations is missing", absent)
    counts = [PartCount(part, _count(file), dict(PUBLISHED[part])) for part, file in files.items()]
    categories = _categories(release, files)
    if check.real:
        _check_edition(counts, categories, files, problems)
    _check_categories(files, categories, problems)
    for part, file in files.items():
        _check_entries(file, problems, labeled=part != "test", category_ids=set(categories["id"]))
    _check_across(files, problems)
    _check_solution(release, files, set(categories["id"]), problems)
    check.check_photos(_listed_photos(release, files, problems))
    return counts


def _count(file: CocoFile) -> Count:
    classes = file.annotations["category_id"].n_unique() if file.has_annotations else None
    return Count(photos=len(file.images), classes=classes)


def _categories(release: Release, files: Mapping[str, CocoFile]) -> pl.DataFrame:
    tables = [file.categories for file in files.values() if file.has_categories]
    if not tables and release.exists(CATEGORY_LIST):
        tables = [listed_categories(release)]
    schema = {"id": pl.Int64, "name": pl.String, "supercategory": pl.String}
    return pl.concat(tables).unique().sort("id", "name") if tables else pl.DataFrame(schema=schema)


def _check_edition(
    counts: Sequence[PartCount], categories: pl.DataFrame, files: Mapping[str, CocoFile], problems: Problems
) -> None:
    """Says which of the published descriptions the release agrees with, as far as it is there."""
    actual = {"species": categories["id"].n_unique()} if len(categories) else {}
    actual |= {f"photos of {part.part}": part.found.photos or 0 for part in counts}
    agreeing = []
    for edition, species in SPECIES.items():
        wanted = {"species": species} | {
            f"photos of {part}": count.photos
            for part, published in PUBLISHED.items()
            if edition in published and (count := published[edition]).photos is not None
        }
        common = actual.keys() & wanted.keys()
        if common and all(actual[name] == wanted[name] for name in common):
            agreeing.append(edition)
    told = ", ".join(f"{number:,} {name}" for name, number in actual.items()) or "nothing was counted"
    if agreeing:
        problems.add("note", f"the counts are those of {' and of '.join(agreeing)}: {told}")
    else:
        problems.add("warning", f"the counts are neither those of the draft nor those of the final release: {told}")
    sides = [file.images.select(pl.max_horizontal("width", "height").max()).item() for file in files.values()]
    longest = max((side for side in sides if side is not None), default=None)
    if longest is not None and longest not in LONGEST_SIDE_PX.values():
        wanted_px = " or ".join(f"{side:,}" for side in LONGEST_SIDE_PX.values())
        problems.add("warning", f"the longest side of a photo is {longest:,} px, published is {wanted_px} px")


def _check_categories(files: Mapping[str, CocoFile], categories: pl.DataFrame, problems: Problems) -> None:
    several = categories.filter(pl.col("id").is_duplicated())
    places = [f"category {number}: {name!r}" for number, name in several.select("id", "name").iter_rows()]
    problems.at("error", "a category id has several names", places)
    twice = categories.unique("id").filter(pl.col("name").str.strip_chars().is_duplicated()).sort("name", "id")
    if len(twice):
        ids = twice.group_by(pl.col("name").str.strip_chars(), maintain_order=True).agg("id")
        places = [f"{name}: {' and '.join(map(str, sorted(numbers)))}" for name, numbers in ids.iter_rows()]
        problems.add("note", "a name stands for several category ids (two names do as released)", places)
    ids_in_order = categories["id"].unique().sort().to_list()
    if ids_in_order and ids_in_order != list(range(len(ids_in_order))):
        problems.add("warning", "category ids do not count from 0 without gaps")
    for part in ("train", "val"):
        if part in files:
            bare = categories.filter(~pl.col("id").is_in(files[part].annotations["category_id"].implode()))
            places = [f"category {number}: {name}" for number, name in bare.select("id", "name").iter_rows()]
            problems.at("warning", f"a category has no photo in {part}", places)


def _check_entries(file: CocoFile, problems: Problems, *, labeled: bool, category_ids: set[int]) -> None:
    images, annotations = file.images, file.annotations
    for column, what in (("id", "an image id is listed more than once"), ("file_name", "a photo has several entries")):
        twice = images.filter(pl.col(column).is_duplicated())[column].unique(maintain_order=True)
        problems.at("error", what, [f"{file.path}: {value}" for value in twice])
    if labeled:
        bare = images.filter(~pl.col("id").is_in(annotations["image_id"].implode()))["id"]
        problems.at("error", "an image has no annotation", [f"{file.path}: image {number}" for number in bare])
    torn = annotations.unique().filter(pl.col("image_id").is_duplicated())["image_id"].unique(maintain_order=True)
    problems.at("error", "an image is in several categories", [f"{file.path}: image {number}" for number in torn])
    for column, listed, what in (
        ("image_id", set(images["id"]), "an annotation of an image that is not listed"),
        ("category_id", category_ids, "an annotation with a category that is not listed"),
    ):
        strange = annotations.filter(~pl.col(column).is_in(list(listed)))[column].unique(maintain_order=True)
        problems.at("error", what, [f"{file.path}: {value}" for value in strange])


def _check_across(files: Mapping[str, CocoFile], problems: Problems) -> None:
    """No photo may be in two parts; an id that two parts use is only a nuisance."""
    if not files:
        return
    rows = pl.concat([file.images.select("id", "file_name", path=pl.lit(file.path)) for file in files.values()])
    severities: Mapping[str, tuple[Severity, str]] = {
        "file_name": ("error", "a photo is in two parts"),
        "id": ("warning", "two parts use the same image id"),
    }
    for column, (severity, what) in severities.items():
        shared = rows.filter(pl.col("path").n_unique().over(column) > 1).group_by(column, maintain_order=True)
        places = [f"{value}: {' and '.join(paths)}" for value, paths in shared.agg(pl.col("path")).iter_rows()]
        problems.at(severity, what, places)


def _check_solution(
    release: Release, files: Mapping[str, CocoFile], category_ids: set[int], problems: Problems
) -> None:
    try:
        path = solution_file(release)
        solution = read_solution(release, path) if path else None
    except InputError as error:
        problems.add("error", "the solution cannot be used", [str(error)])
        return
    if solution is None or "test" not in files:
        return
    asked = pl.Series(files["test"].images["id"].cast(pl.String))
    unsolved = asked.filter(~asked.is_in(solution["id"].implode()))
    problems.at("warning", "a photo of test is not in the solution", [f"image {name}" for name in unsolved])
    strange = solution.with_row_index("line", offset=2).filter(
        ~pl.col("expected").is_in([str(number) for number in category_ids])
    )
    if category_ids and len(strange):
        places = [f"{path}, line {line}: {name}" for line, name in strange.select("line", "expected").iter_rows()]
        problems.add("error", "the solution has a category that is not listed", places)


def _listed_photos(release: Release, files: Mapping[str, CocoFile], problems: Problems) -> dict[str, str]:
    """The part of each photo that is there; notes ids without a photo and photos without an entry."""
    rows = pl.concat([file.images.select("id", "file_name", part=pl.lit(part)) for part, file in files.items()] or [
        pl.DataFrame(schema={"id": pl.Int64, "file_name": pl.String, "part": pl.String})
    ])  # fmt: skip
    missing = sorted(set(rows["file_name"].str.extract(r"^([^/]+)/").drop_nulls()) - set(release.folders()))
    problems.at("warning", "a folder of photos is missing", [f"{name}/" for name in missing])
    there = {f"{folder}/{file}" for folder in photo_folders(release) for file in release.files(folder)}
    there |= {f"test/{file}" for file in release.files("test")}
    renamed = _renamed(release, rows, problems)
    rows = rows.with_columns(pl.col("file_name").replace(renamed).alias("path"))
    absent = rows.filter(~pl.col("path").is_in(list(there)) & ~pl.col("path").str.extract(r"^([^/]*)").is_in(missing))
    places = [f"image {number}: {name}" for number, name in absent.select("id", "file_name").iter_rows()]
    problems.at("error", "an id has no photo", places)
    # Without train.json nobody can say that a photo of images/ has no entry, and so on.
    complete = set(PHOTO_TREES) if {"train", "val"} <= files.keys() else set()
    complete |= {"test"} if "test" in files else set()
    strays = sorted(name for name in there - set(rows["path"]) if name.partition("/")[0] in complete)
    problems.at("warning", "a photo has no entry", strays)
    present = rows.filter(pl.col("path").is_in(list(there))).unique("path", maintain_order=True)
    return dict(present.select("path", "part").iter_rows())


def _renamed(release: Release, rows: pl.DataFrame, problems: Problems) -> dict[str, str]:
    """Where photos lie whose folder lost the space or the dot at the end of its name."""
    on_disk = cut_folders(release)
    listed = rows["file_name"].str.extract(r"^(.*)/[^/]+$").drop_nulls().unique(maintain_order=True)
    lost = {
        name: on_disk[cut_name(name)] for name in listed if name not in on_disk.values() and cut_name(name) in on_disk
    }
    places = [f"{name!r} lies in {actual!r}" for name, actual in lost.items()]
    problems.at("note", "a folder lost the end of its name on the way (photos are found all the same)", places)
    moved = {}
    for file in rows["file_name"]:
        folder, _, name = file.rpartition("/")
        if folder in lost:
            moved[file] = f"{lost[folder]}/{name}"
    return moved
