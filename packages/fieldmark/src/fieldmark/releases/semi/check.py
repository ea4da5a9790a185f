"""Checks of Semi-iNat 2021 and Semi-Aves 2020 against tables 1 and 2 of the document of Semi-iNat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.photo_checks import FileWords
from fieldmark.releases.semi.aves import open_semi_aves
from fieldmark.releases.semi.inat import all_taxa, open_semi_inat
from fieldmark.releases.semi.photo_lists import IN_CLASS, OUT_OF_CLASS, TEST_PARTS
from fieldmark.tables.dataset import Dataset

TABLE_1, TABLE_2 = "Semi-iNat 2021, table 1", "Semi-iNat 2021, table 2"
# Species in class and out of class by phylum, in the order of table 1.
PHYLA: Mapping[str, tuple[str, int, int]] = {
    "Mollusca": ("Animalia", 11, 24),
    "Chordata": ("Animalia", 113, 228),
    "Arthropoda": ("Animalia", 301, 605),
    "Echinodermata": ("Animalia", 4, 8),
    "Tracheophyta": ("Plantae", 336, 674),
    "Bryophyta": ("Plantae", 6, 12),
    "Basidiomycota": ("Fungi", 29, 58),
    "Ascomycota": ("Fungi", 10, 20),
}
SPECIES, ANIMALS = 2_439, 1_294
FILES = FileWords("a photo is missing", ("note", "a folder of photos is not there"), empty="a photo is an empty file")


class PublishedPart(NamedTuple):
    """A row of table 2: photos, classes, and how many photos a class has at least and at most."""

    photos: int
    classes: int
    least: int
    most: int


INAT_PARTS = {
    "l_train": PublishedPart(9_721, 810, 5, 80),
    "u_train": PublishedPart(313_248, 2_439, 19, 400),
    "val": PublishedPart(4_050, 810, 5, 5),
    "test": PublishedPart(16_200, 810, 20, 20),
}
AVES_PARTS = {
    "l_train": PublishedPart(3_959, 200, 5, 43),
    "u_train_in": PublishedPart(26_640, 200, 16, 229),
    "u_train_out": PublishedPart(122_208, 800, 23, 250),
    "val": PublishedPart(2_000, 200, 10, 10),
    "test": PublishedPart(8_000, 200, 40, 40),
}


def check_semi_inat(check: CheckRun) -> list[PartCount]:
    """Checks what is there against tables 1 and 2, and names what the document says in two ways."""
    data, every = open_semi_inat(check.release), all_taxa(check.release)
    counts = _phylum_counts(data, every, real=check.real) + _part_counts(data, INAT_PARTS, check)
    counts += _test_part_counts(data, 8_100, 810, real=check.real)
    if every is not None:
        _check_taxonomies(data, every, check.problems)
    _name_readings(data, every, check.problems, real=check.real)
    check.check_files(data.media, FILES)
    return counts


def check_semi_aves(check: CheckRun) -> list[PartCount]:
    """Checks what is there against table 2."""
    data = open_semi_aves(check.release)
    counts = _part_counts(data, AVES_PARTS, check)
    counts += _test_part_counts(data, 4_000, 200, real=check.real)
    check.check_files(data.media, FILES)
    return counts


def _phylum_counts(data: Dataset, every: pl.DataFrame | None, *, real: bool) -> list[PartCount]:
    """Species in class and out of class by phylum, beside table 1; out of class where the full taxonomy is there."""
    inside = Counter(data.taxa["phylum"]) if "phylum" in data.taxa.columns else Counter()
    outside: Counter[str] = Counter()
    if every is not None:
        outside = Counter(every.filter(~pl.col("label").is_in(data.taxa["label"].implode()))["phylum"])
    counts = []
    for phylum in [*PHYLA, *sorted(set(inside | outside) - set(PHYLA))]:
        found = Count(classes=inside[phylum], unknown_classes=outside[phylum] if every is not None else None)
        published = {}
        if phylum in PHYLA and real:
            published = {TABLE_1: Count(classes=PHYLA[phylum][1], unknown_classes=PHYLA[phylum][2])}
        counts.append(PartCount(f"species of {phylum}", found, published))
    return counts


def _part_counts(data: Dataset, published: Mapping[str, PublishedPart], check: CheckRun) -> list[PartCount]:
    """Photos and classes of each part, beside table 2; what deviates is a warning."""
    rows = data.media.join(data.observations, on="observation_id", how="left")
    counts = []
    for part, told in published.items():
        own = rows.filter(pl.col("parts").list.contains(part))
        labels = own["hidden_label" if part.startswith("u_train") else "label"]
        classes = labels.n_unique() if len(own) and labels.is_not_null().all() else None
        beside = {TABLE_2: Count(photos=told.photos, classes=told.classes)} if check.real else {}
        counts.append(PartCount(part, Count(photos=len(own), classes=classes), beside))
        if not check.real or classes is None:
            continue
        if (len(own), classes) != (told.photos, told.classes):
            found = f"{len(own):,} photos of {classes:,} classes; published are {told.photos:,} of {told.classes:,}"
            check.problems.add("warning", f"{part} is not what table 2 says", [found])
        each = list(Counter(labels).values())
        if (min(each), max(each)) != (told.least, told.most):
            found = f"{min(each)} to {max(each)} photos for each class; published are {told.least} to {told.most}"
            check.problems.add("warning", f"photos for each class of {part} are not what table 2 says", [found])
    return counts


def _test_part_counts(data: Dataset, each: int, classes: int, *, real: bool) -> list[PartCount]:
    """Photos and classes of the public and the private test, beside table 2; nothing where no solution tells them."""
    counts = []
    for part in TEST_PARTS:
        own = data.observations.filter(pl.col("test_part") == part)
        if len(own):
            beside = {TABLE_2: Count(photos=each, classes=classes)} if real else {}
            counts.append(PartCount(f"test, {part}", Count(photos=len(own), classes=own["label"].n_unique()), beside))
    return counts


def _check_taxonomies(data: Dataset, every: pl.DataFrame, problems: Problems) -> None:
    """Annotations and the full taxonomy must tell the same ranks of a class."""
    ranks = [rank for rank in every.columns if rank in data.taxa.columns and rank != "label"]
    both = data.taxa.join(every, on="label", how="left", suffix="_listed")
    for rank in ranks:
        other = both.filter(pl.col(rank) != pl.col(f"{rank}_listed"))
        places = [f"class {row['label']}: {row[rank]}, {row[f'{rank}_listed']}" for row in other.to_dicts()]
        problems.at("warning", f"annotations and the full taxonomy differ in {rank}", places)
    absent = data.taxa.filter(~pl.col("label").is_in(every["label"].implode()))["label"].to_list()
    problems.at("error", "a class is missing from the full taxonomy", absent)


def _name_readings(data: Dataset, every: pl.DataFrame | None, problems: Problems, *, real: bool) -> None:
    """The document says two things twice; both readings are named, and which of them the files bear out."""
    unlabeled = data.observations.join(data.media, on="observation_id").filter(pl.col("parts").list.contains("u_train"))
    said = "coarse labels: for all unlabeled photos (abstract), or for out-of-class photos alone (section 2)"
    told = unlabeled.filter(pl.col("phylum").is_not_null())
    place = f"here: {len(told):,} of {len(unlabeled):,} unlabeled photos have a phylum"
    if unlabeled["membership"].is_not_null().any():
        groups = [
            f"{told.filter(pl.col('membership') == group).height:,} of "
            f"{unlabeled.filter(pl.col('membership') == group).height:,} {group}"
            for group in (IN_CLASS, OUT_OF_CLASS)
        ]
        place += f" ({', '.join(groups)})"
    problems.add("note", said, [place] if len(unlabeled) else ["here: no unlabeled photos to tell by"])
    if not real:
        return
    said = f'"{SPECIES} animal species" (section 1), or {SPECIES:,} species, {ANIMALS:,} of them animals (table 1)'
    if every is not None and "kingdom" in every.columns:
        animals = every.filter(pl.col("kingdom") == "Animalia").height
        place = f"here: {len(every):,} species, {animals:,} of them animals"
    else:
        place = "here: no full taxonomy to tell by"
    problems.add("note", said, [place])
