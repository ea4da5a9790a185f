"""Lists of photos as the organizers' training code reads them, and the table that a release becomes.

    l_train/0/12.jpg 0
    images/10020_Agaricus arvensis/photo one.JPG 3
    u_train/0a1b.jpg -1

The last word is the class, whatever spaces the path has; -1 stands for none. Lists called `*_oracle.txt` have the
hidden classes of unlabeled photos, and classes past the known ones are out-of-class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.numbers import is_digits
from fieldmark.tables.reader import read_csv

# Where the tables of a release may lie: beside the photos, or where they were unpacked or downloaded to.
FOLDERS = ("", "labels", "annotation", "annotations")
NO_CLASS = "-1"
SOLUTION = "solution.csv"
TEST_PARTS = ("public", "private")
EXPECTED_LINE = "a path, a space and the number of a class"
IN_CLASS, OUT_OF_CLASS = "in-class", "out-of-class"


@dataclass
class ListedPhoto:
    """What is known of one photo while a release is read.

    Attributes:
        path: Where it lies.
        part: l_train, val, test or u_train.
        label: Its class where that is given to everybody.
        hidden_label: Of an unlabeled photo, the class that methods do not see.
        membership: Of an unlabeled photo, whether it is of one of the classes, where somebody says so.
        ranks: Its kingdom and phylum, where they are given.
        media_id: What runs call it; its path if nothing else.
        test_part: Of a photo of test, whether it counted on the public or the private board, where somebody says so.
    """

    path: str
    part: str
    label: str | None = None
    hidden_label: str | None = None
    membership: str | None = None
    ranks: Mapping[str, str] = field(default_factory=dict)
    media_id: str = ""
    test_part: str | None = None


def find_table(release: Release, *names: str) -> str | None:
    """The first of some tables that the release has, wherever such tables lie; None where it has none of them."""
    places = [f"{folder}/{name}" if folder else name for name in names for folder in FOLDERS]
    return next((place for place in places if release.exists(place)), None)


def read_list(release: Release, path: str) -> list[tuple[str, str | None]]:
    """The lines of a list: the path of each photo and its class, None where it has none.

    Raises:
        InputError: For a line that is no path with a class, or a photo that is listed twice.
    """
    where = release.where(path)
    try:
        text = release.read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(where, found="bytes that are not UTF-8", expected="a list of photos") from error
    rows: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        photo, _, label = line.rstrip().rpartition(" ")
        if not photo or not is_digits(label.removeprefix("-")):
            raise InputError(where, line=number, found=repr(line), expected=EXPECTED_LINE)
        if photo in rows:
            raise InputError(where, line=number, found=f"{photo!r} again", expected="each photo once")
        rows[photo] = None if label == NO_CLASS else label
    return list(rows.items())


class Solved(NamedTuple):
    """The class of a photo of test, and on which board it counted, where the solution says so."""

    label: str
    test_part: str | None


def read_solution(release: Release, path: str) -> dict[str, Solved]:
    """The classes of test by what runs call a photo: `Id,Category` and, as Kaggle keeps it, `Usage`.

    Raises:
        InputError: For a line without an id or a class, an id that comes twice, or a usage that is neither.
    """
    where = release.where(path)
    with release.open(path) as file:
        table = read_csv(file, where, required=("Id", "Category"))
    if "Usage" not in table.columns:
        table = table.with_columns(Usage=pl.lit(None, pl.String))
    rows: dict[str, Solved] = {}
    for number, (one, label, usage) in enumerate(table.select("Id", "Category", "Usage").iter_rows(), 2):
        if not one or not label or one in rows:
            found = f"the id {one!r} again" if one in rows else "a line without an id or a class"
            raise InputError(where, line=number, found=found, expected="an id and its class, each id once")
        test_part = usage.strip().lower() if usage else None
        if test_part not in (None, *TEST_PARTS):
            raise InputError(where, line=number, found=f"the usage {usage!r}", expected="Public or Private")
        rows[one] = Solved(label, test_part)
    return rows


class ListedPhotos:
    """The photos of a release as its folders, lists and annotations name them, each once."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.by_path: dict[str, ListedPhoto] = {}

    def add(self, path: str, part: str) -> ListedPhoto:
        """The photo with this path, which is entered where it is new."""
        return self.by_path.setdefault(path, ListedPhoto(path, part))

    def add_folder(self, part: str, *, by_class: bool) -> None:
        """Enters the photos of a folder; where they lie in folders by class, with that class."""
        for folder in self.release.folders(part) if by_class else [""]:
            inside = f"{part}/{folder}" if folder else part
            for name in self.release.files(inside):
                photo = self.add(f"{inside}/{name}", part)
                photo.label = folder or None

    def add_list(self, name: str, part: str, *, membership: str | None = None) -> None:
        """Enters the photos of a list, where the release has it.

        Raises:
            InputError: When a photo is of another class than elsewhere.
        """
        path = find_table(self.release, name)
        if path is None:
            return
        hidden = part == "u_train"
        for number, (photo_path, label) in enumerate(read_list(self.release, path), 1):
            photo = self.add(photo_path, part)
            photo.membership = membership or photo.membership
            before = photo.hidden_label if hidden else photo.label
            if label is None:
                continue
            if before not in (None, label):
                found, expected = f"{photo_path} of class {label}", f"class {before}, as elsewhere in the release"
                raise InputError(self.release.where(path), line=number, found=found, expected=expected)
            if hidden:
                photo.hidden_label = label
            else:
                photo.label = label

    def add_solution(self) -> None:
        """Enters the classes of test, and on which board its photos counted, from the solution where there is one.

        Raises:
            InputError: When it is about other photos than test has, or names another class than a list does.
        """
        path = find_table(self.release, SOLUTION)
        if path is None:
            return
        where, solved = self.release.where(path), read_solution(self.release, path)
        by_id = {one.media_id or one.path.rpartition("/")[2].partition(".")[0]: one for one in self.of_part("test")}
        strange, absent = sorted(set(solved) - set(by_id)), sorted(set(by_id) - set(solved))
        if by_id and (strange or absent):
            found = f"the id {strange[0]!r}, which test does not have" if strange else f"no class for {absent[0]!r}"
            raise InputError(where, found=found, expected="a class for each photo of test")
        for one, photo in by_id.items():
            if photo.label not in (None, solved[one].label):
                found = f"{photo.path} of class {solved[one].label}"
                raise InputError(where, found=found, expected=f"class {photo.label}, as elsewhere in the release")
            photo.media_id, photo.label, photo.test_part = one, solved[one].label, solved[one].test_part

    def of_part(self, part: str) -> list[ListedPhoto]:
        """The photos of one part."""
        return [photo for photo in self.by_path.values() if photo.part == part]


def observation_table(photos: Iterable[ListedPhoto], taxa: pl.DataFrame) -> pl.DataFrame:
    """One row per photo, which is an observation of its own: its class and what is told of its higher taxa.

    Labeled photos have the kingdom and phylum of their class, unlabeled ones those that the release tells.
    """
    ranks = ("kingdom", "phylum")
    rank_of = {row["label"]: row for row in taxa.select("label", *(r for r in ranks if r in taxa.columns)).to_dicts()}
    known = set(taxa["label"])
    rows = []
    for photo in photos:
        own = rank_of.get(photo.label or "", photo.ranks)
        membership = photo.membership
        if membership is None and photo.hidden_label is not None:
            membership = IN_CLASS if photo.hidden_label in known else OUT_OF_CLASS
        rows.append(
            (
                *(photo.media_id or photo.path, photo.label, photo.hidden_label, membership),
                *(own.get(r) for r in ranks),
                photo.test_part,
            )
        )
    names = ("observation_id", "label", "hidden_label", "membership", *ranks, "test_part")
    return pl.DataFrame(rows, schema=[(name, pl.String) for name in names], orient="row")


def media_table(photos: Iterable[ListedPhoto]) -> pl.DataFrame:
    """One row per photo with its path and its parts."""
    rows = [(photo.media_id or photo.path, photo.media_id or photo.path, photo.path, _parts(photo)) for photo in photos]
    texts = [(name, pl.String) for name in ("media_id", "observation_id", "path")]
    return pl.DataFrame(rows, schema=[*texts, ("parts", pl.List(pl.String))], orient="row")


def _parts(photo: ListedPhoto) -> list[str]:
    # The public split of Semi-Aves goes by folders of its own.
    folder = photo.path.partition("/")[0]
    return [photo.part, *([folder] if folder in ("u_train_in", "u_train_out") else [])]


def refuse_strange_classes(release: Release, photos: Iterable[ListedPhoto], labels: Iterable[str]) -> None:
    """Refuses labeled photos whose class is none of the release.

    Raises:
        InputError: Names the first.
    """
    known = set(labels)
    for photo in photos:
        if photo.label is not None and photo.label not in known:
            found = f"the class {photo.label!r}"
            expected = f"one of the {len(known):,} classes"
            raise InputError(release.where(photo.path), found=found, expected=expected)
