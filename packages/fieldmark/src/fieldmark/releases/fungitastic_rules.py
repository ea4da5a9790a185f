"""The rules that FungiTastic is cut by, and whether a release follows them.

Train holds observations up to the end of 2021, val those of 2022, test those of 2023. Unknown species have no photo in
train; a few-shot species has fewer than five observations there, and is not in the main set. A release that was drawn
from other records by these rules (`fieldmark split --fungitastic`) says in `metadata/rules.json` which days it has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.checks import Problems
from fieldmark.splits.by_date import DateCut
from fieldmark.storage.release import Release
from fieldmark.tables.labels import UNKNOWN_NAME

RULES_FILE = "metadata/rules.json"
MARK = "fieldmark_rules"
# The tables of one subset by part, with their lines, and the path of each.
Subset = tuple[Mapping[str, str], Mapping[str, pl.DataFrame]]


def drawn_by(release: Release) -> dict[str, Any] | None:
    """What a release says about how it was drawn from other records; None for FungiTastic itself.

    Raises:
        InputError: When the file cannot be read.
    """
    if not release.exists(RULES_FILE):
        return None
    try:
        rules = dict(json.loads(release.read(RULES_FILE)))
        DateCut.from_data(rules)
        return rules
    except (ValueError, TypeError) as error:
        hint = "Draw the release again, or remove the file if this is FungiTastic itself."
        raise InputError(
            release.where(RULES_FILE), found="no rules", expected="how the release was drawn", hint=hint
        ) from error


def remark_on_rules(release: Release) -> tuple[str, ...]:
    """The sentence that a reader of scores on a drawn release needs; none for FungiTastic itself."""
    rules = drawn_by(release)
    if rules is None:
        return ()
    cut = DateCut.from_data(rules)
    days = ", ".join(f"{part} {cut.span(part)}" for part in ("train", "val", "test"))
    drawn = f"Drawn from {rules.get('records', 'other records')} by the rules of FungiTastic ({days})"
    return (f"{drawn}: scores cannot be compared with those on FungiTastic.",)


def check_rules(cut: DateCut, subsets: Mapping[str, Subset], problems: Problems) -> None:
    """Reports what breaks the rules.

    Args:
        cut: The days of each part, and how many observations are few.
        subsets: The tables of each subset, each with a column `line`.
        problems: Where to report.
    """
    for files, parts in subsets.values():
        _check_days(cut, files, parts, problems)
        _check_unknown(files, parts, problems)
    if "FewShot" in subsets:
        _check_few_shot(cut, subsets, problems)


def _check_days(cut: DateCut, files: Mapping[str, str], parts: Mapping[str, pl.DataFrame], problems: Problems) -> None:
    for part, rows in parts.items():
        split = part.rpartition("-")[2].lower()
        other = rows.filter((cut.parts(rows["date"]) != split) & rows["date"].is_not_null())
        what = f"an observation is outside the days of {part}, which holds those {cut.span(split)}"
        places = [
            f"{files[part]}, line {line}: {media}, {day}"
            for line, media, day in other.select("line", "media_id", "date").iter_rows()
        ]
        problems.at("error", what, places)


def _check_unknown(files: Mapping[str, str], parts: Mapping[str, pl.DataFrame], problems: Problems) -> None:
    if "Train" not in parts:
        return
    learned = parts["Train"]["scientific_name"].drop_nulls().unique().implode()
    for part, rows in parts.items():
        seen = rows.filter((pl.col("label") == UNKNOWN_NAME) & pl.col("scientific_name").is_in(learned))
        places = [f"{files[part]}, line {line}: {name}" for line, name in seen.select("line", "scientific_name").rows()]
        problems.at("error", "an unknown species (-1) has photos in train", places)


def _check_few_shot(cut: DateCut, subsets: Mapping[str, Subset], problems: Problems) -> None:
    files, parts = subsets["FewShot"]
    if "Train" not in parts:
        return
    times = _observations(parts["Train"])
    many = [f"{files['Train']}: {name} has {number}" for name, number in times.items() if number >= cut.few]
    problems.at("error", f"a few-shot species has {cut.few} or more observations in train", many)
    main_files, main = subsets.get("all", ({}, {}))
    if "Train" not in main:
        return
    known = _observations(main["Train"])
    both = [f"{main_files['Train']}: {name}" for name in known if name in times]
    problems.at("error", "a few-shot species is in train of the main set as well", both)
    fewer = [f"{main_files['Train']}: {name} has {number}" for name, number in known.items() if number < cut.few]
    problems.at("note", f"a species of the main set has fewer than {cut.few} observations in train", fewer)


def _observations(train: pl.DataFrame) -> dict[str, int]:
    """How many observations each species has."""
    named = train.drop_nulls("scientific_name").group_by("scientific_name", maintain_order=True)
    return dict(named.agg(pl.col("observation_id").n_unique()).iter_rows())
