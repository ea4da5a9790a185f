"""A check of a FungiTastic release: counts beside tables 2 and 9, and what is missing, broken or leaking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from fieldmark.errors import InputError
from fieldmark.masks.parts import MICROSCOPIC
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.fungitastic import FILES_OF_PART, SUBSETS, metadata_files, open_fungitastic, read_part
from fieldmark.releases.fungitastic_masks import instance_counts, mask_files, read_masks
from fieldmark.releases.fungitastic_rules import Subset, check_rules, drawn_by
from fieldmark.splits.by_date import DateCut
from fieldmark.storage.release import Release
from fieldmark.tables.labels import UNKNOWN_NAME

TABLE_2 = "FungiTastic, table 2"
TABLE_9 = "FungiTastic, table 9"

# Table 2 prints the unknown classes of the open sets one row too high: Train 1,054, Val 1,013, Test 1,013, and for
# Mini 10, 34, 34. Both readings stand here.
TABLE_2_LOWER = "FungiTastic, table 2, a row lower"
# The same training photos stand in table 9 once more as the open set's, with one photo more.
TABLE_9_OPEN = "FungiTastic, table 9, open set"
TOTAL = Count(349_307, 632_313, 6_034, 1_678)
PUBLISHED: Mapping[tuple[str, str], Mapping[str, Count]] = {
    ("all", "Train"): {
        TABLE_2: Count(246_884, 433_701, 2_829),
        TABLE_9: Count(246_884, 433_701, 2_829),
        TABLE_9_OPEN: Count(246_884, 433_702, 2_829),
    },
    ("all", "ClosedSet-Val"): {TABLE_2: Count(45_616, 89_659, 2_306), TABLE_9: Count(45_613, 89_659, 2_306)},
    ("all", "ClosedSet-Test"): {TABLE_2: Count(48_379, 91_832, 2_336), TABLE_9: Count(48_378, 91_832, 2_336)},
    ("all", "DNA-Test"): {TABLE_2: Count(2_041, 5_117, 725), TABLE_9: Count(2_041, 5_105, 725)},
    ("all", "OpenSet-Val"): {
        TABLE_2: Count(47_453, 96_756, 3_360, 1_013),
        TABLE_2_LOWER: Count(unknown_classes=1_054),
        TABLE_9: Count(47_450, 96_756, 3_360, 1_053),
    },
    ("all", "OpenSet-Test"): {
        TABLE_2: Count(50_085, 97_551, 3_349, 1_013),
        TABLE_2_LOWER: Count(unknown_classes=1_013),
        TABLE_9: Count(50_084, 97_551, 3_349, 1_000),
    },
    ("Mini", "Train"): {TABLE_2: Count(25_786, 46_842, 215), TABLE_9: Count(25_786, 46_842, 215)},
    ("Mini", "ClosedSet-Val"): {TABLE_2: Count(4_687, 9_412, 193), TABLE_9: Count(4_687, 9_412, 193)},
    ("Mini", "ClosedSet-Test"): {TABLE_2: Count(5_531, 10_738, 196), TABLE_9: Count(5_531, 10_738, 196)},
    ("Mini", "DNA-Test"): {TABLE_2: Count(211, 645, 93), TABLE_9: Count(211, 642, 93)},
    ("Mini", "OpenSet-Val"): {TABLE_2: Count(4_703, 9_450, 203, 34), TABLE_2_LOWER: Count(unknown_classes=10)},
    ("Mini", "OpenSet-Test"): {TABLE_2: Count(5_587, 10_914, 230, 34), TABLE_2_LOWER: Count(unknown_classes=34)},
    ("FewShot", "Train"): {TABLE_2: Count(4_293, 7_819, 2_427), TABLE_9: Count(4_293, 7_819, 2_427)},
    ("FewShot", "ClosedSet-Val"): {TABLE_2: Count(1_099, 2_285, 570), TABLE_9: Count(1_099, 2_285, 570)},
    ("FewShot", "ClosedSet-Test"): {TABLE_2: Count(998, 1_909, 566), TABLE_9: Count(999, 1_911, 567)},
}
EXPECTED_PARTS = {
    "all": tuple(FILES_OF_PART),
    "Mini": ("Train", "ClosedSet-Val", "ClosedSet-Test", "DNA-Test"),
    "FewShot": ("Train", "ClosedSet-Val", "ClosedSet-Test"),
}


def check_fungitastic(check: CheckRun) -> list[PartCount]:
    """Checks every subset that is there."""
    release, problems, counts = check.release, check.problems, list[PartCount]()
    rules, subsets = drawn_by(release), dict[str, Subset]()
    for subset, name in SUBSETS.items():
        files = metadata_files(release, subset)
        missing = [part for part in EXPECTED_PARTS[subset] if part not in files and rules is None]
        if not files and rules is not None:
            continue  # what was drawn from other records has no Mini, and perhaps no few-shot species
        if not files:
            problems.add("warning", "a subset is missing", [f"metadata/{name}"])
            continue
        problems.at("warning", "a metadata file is missing", [f"metadata/{name}/{name}-{part}.csv" for part in missing])
        parts = {part: _numbered(read_part(release, path)) for part, path in files.items()}
        counts += [
            PartCount(f"{name}-{part}", _count(rows), dict(PUBLISHED.get((subset, part), {})) if rules is None else {})
            for part, rows in parts.items()
        ]
        subsets[subset] = files, parts
        _check_rows(files, parts, problems)
        _check_ids(files, parts, problems)
        _check_leaks(files, parts, problems)
        _check_photos(check, subset)
    check_rules(DateCut() if rules is None else DateCut.from_data(rules), subsets, problems)
    if len(subsets) == len(SUBSETS):  # the totals of the table are those of all subsets
        tables = [table for _, parts in subsets.values() for table in parts.values()]
        counts.append(PartCount("all subsets together", _total(tables), {TABLE_9: TOTAL} if rules is None else {}))
    _check_masks(release, problems)
    return counts


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_row_index("line", offset=2)


def _count(rows: pl.DataFrame) -> Count:
    labeled = rows["label"].is_not_null().all()
    unknown = rows.filter(pl.col("label") == UNKNOWN_NAME)
    classes = rows.filter(pl.col("label") != UNKNOWN_NAME)["label"].n_unique()
    unknown_classes = unknown["scientific_name"].drop_nulls().n_unique()
    return Count(
        observations=rows["observation_id"].n_unique(),
        photos=rows["media_id"].n_unique(),
        classes=classes + unknown_classes if labeled else None,
        unknown_classes=unknown_classes if labeled else None,
    )


def _total(tables: Sequence[pl.DataFrame]) -> Count:
    """What all parts of all subsets have together, each observation, photo and species once ("unique values")."""
    rows = pl.concat([table.select("observation_id", "media_id", "label", "scientific_name") for table in tables])
    named = rows.drop_nulls("scientific_name")
    labeled = rows["label"].is_not_null().all()
    return Count(
        observations=rows["observation_id"].n_unique(),
        photos=rows["media_id"].n_unique(),
        classes=named["scientific_name"].n_unique() if labeled else None,
        unknown_classes=named.filter(pl.col("label") == UNKNOWN_NAME)["scientific_name"].n_unique()
        if labeled
        else None,
    )


def _places(path: str, rows: pl.DataFrame, what: str = "media_id") -> list[str]:
    return [f"{path}, line {line}: {value}" for line, value in rows.select("line", what).iter_rows()]


def _check_rows(files: Mapping[str, str], parts: Mapping[str, pl.DataFrame], problems: Problems) -> None:
    for part, rows in parts.items():
        twice = rows.filter(pl.col("media_id").is_duplicated())
        problems.at("error", "a photo is listed more than once in a file", _places(files[part], twice))
        mixed = rows.filter(pl.col("label").n_unique().over("observation_id") > 1)
        problems.at("error", "an observation has photos of several classes", _places(files[part], mixed))
        stray = rows.filter(~pl.col("media_id").str.contains(pl.format("-{}.", "observation_id"), literal=True))
        problems.at("warning", "a file name does not contain its observation", _places(files[part], stray))
        undated = rows.filter(pl.col("date").is_null())
        problems.at("note", "a photo has no date", _places(files[part], undated))


def _check_ids(files: Mapping[str, str], parts: Mapping[str, pl.DataFrame], problems: Problems) -> None:
    """Ids must count from 0 without gaps, mean one name each, and be -1 only in open sets."""
    labeled = pl.concat(
        [
            rows.select("label", "scientific_name", "media_id").with_columns(part=pl.lit(part))
            for part, rows in parts.items()
        ]
    ).drop_nulls("label")
    of_classes = labeled.filter(pl.col("label") != UNKNOWN_NAME)
    ids = of_classes["label"].cast(pl.Int64).unique().sort()
    if len(ids) and ids.to_list() != list(range(len(ids))):
        problems.add("error", "class ids do not count from 0 without gaps", [files.get("Train", "")])
    names = of_classes.drop_nulls("scientific_name").group_by("label").agg(pl.col("scientific_name").unique())
    several = names.filter(pl.col("scientific_name").list.len() > 1).sort("label")
    places = [f"id {label}: {', '.join(sorted(species))}" for label, species in several.iter_rows()]
    problems.at("error", "a class id has several names", places)
    for part, rows in parts.items():
        if not part.startswith("OpenSet"):
            strange = rows.filter(pl.col("label") == UNKNOWN_NAME)
            problems.at("error", "an unknown species (-1) in a closed set", _places(files[part], strange))
        if part != "Train" and "Train" in parts:
            untrained = rows.filter(
                (pl.col("label") != UNKNOWN_NAME) & ~pl.col("label").is_in(parts["Train"]["label"].implode())
            )
            problems.at("error", "a class that train does not have", _places(files[part], untrained, "label"))


def _check_leaks(files: Mapping[str, str], parts: Mapping[str, pl.DataFrame], problems: Problems) -> None:
    """An observation may be in one split only; closed sets are parts of open sets; DNA rows repeat test rows."""
    split_of = {part: folder.removeprefix("dna-") for part, (_, folder) in FILES_OF_PART.items()}
    rows = pl.concat(
        [
            table.select("line", "observation_id", "media_id").with_columns(part=pl.lit(part))
            for part, table in parts.items()
        ]
    ).with_columns(split=pl.col("part").replace_strict(split_of))
    leaking = rows.filter(pl.col("split").n_unique().over("observation_id") > 1).sort("observation_id", "part")
    places = [f"{files[part]}, line {line}: observation {name}" for line, name, _, part, _ in leaking.iter_rows()]
    problems.at("error", "an observation is in two splits", places)
    for half in ("Val", "Test"):
        closed, opened = f"ClosedSet-{half}", f"OpenSet-{half}"
        if closed in parts and opened in parts:
            lost = parts[closed].filter(~pl.col("media_id").is_in(parts[opened]["media_id"].implode()))
            problems.at("warning", "a photo of the closed set is not in the open set", _places(files[closed], lost))
    if "DNA-Test" in parts and "ClosedSet-Test" in parts:
        repeated = parts["DNA-Test"].filter(pl.col("media_id").is_in(parts["ClosedSet-Test"]["media_id"].implode()))
        what = "a photo of DNA-Test is also in ClosedSet-Test (known: the sets are scored apart)"
        problems.at("note", what, _places(files["DNA-Test"], repeated))


def _check_photos(check: CheckRun, subset: str) -> None:
    release, problems = check.release, check.problems
    try:
        listed = open_fungitastic(release, subset).media
    except InputError:
        return  # without a training file there is nothing to open, and that is reported already
    folders = listed["path"].str.replace(r"/[^/]*$", "")
    there = {folder: set(release.files(folder)) for folder in folders.unique()}
    missing_folders = sorted(folder for folder, names in there.items() if not names)
    problems.at("warning", "a folder of photos is missing", missing_folders)
    present = [name in there[folder] for name, folder in zip(listed["media_id"], folders, strict=True)]
    kept = [there[folder] != set() for folder in folders]
    absent = listed.filter(~pl.Series(present) & pl.Series(kept))
    if len(absent):
        problems.add("error", "a photo is listed but absent", absent["path"].to_list())
    if any(present):
        there_are = listed.filter(pl.Series(present))
        folder_of = {part: folder for part, (_, folder) in FILES_OF_PART.items()}
        splits = there_are["parts"].list.first().replace_strict(folder_of)
        split_of = dict(zip(there_are["path"], splits, strict=True))
        check.check_photos(split_of)


def _check_masks(release: Release, problems: Problems) -> None:
    for path in mask_files(release):
        try:
            table = read_masks(release, path)
        except InputError as error:
            problems.add("error", "masks cannot be read", [str(error)])
            continue
        area: dict[str, list[int]] = {}
        for row, photo in enumerate(table.file_names):
            try:
                drawn = table.open(row, complete=False).area
                area.setdefault(photo, []).append(drawn)
            except InputError as error:
                place = f"{path}, row {row}: {photo} has {error.found}, expected {error.expected}"
                problems.add("error", "a mask does not fit its photo", [place])
        smaller = [f"{path}: {photo}" for photo, areas in area.items() if areas[-1] < max(areas)]
        problems.at("warning", "the last row of a photo, which is the whole, is smaller than a part", smaller)
        counts = instance_counts(table)
        spores = len({name for name, label in zip(table.file_names, table.labels, strict=True) if label == MICROSCOPIC})
        listed = ", ".join(f"{number:,} {label}" for label, number in counts.most_common())
        about = f"{path}: {len(area):,} photos with masks, {spores:,} of them microscopic; rows but the last: {listed}"
        problems.add("note", "masks", [about])
