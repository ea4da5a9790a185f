"""Opening the photos of a release: which cannot be read, and which are copies of each other across its parts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.releases.checks import Problems
from fieldmark.releases.duplicates import candidate_pairs
from fieldmark.releases.identical import across, identical_files
from fieldmark.releases.picture_alignment import GrayPicture, are_copies
from fieldmark.releases.recording_checks import check_recordings
from fieldmark.storage.addresses import is_address
from fieldmark.storage.picture_files import PictureError, what_is_broken
from fieldmark.storage.release import Release
from fieldmark.tables.codes import numbered_names
from fieldmark.tables.media import HEAD_BYTES, PHOTO, Medium
from fieldmark.tables.row_problems import Severity
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

BLOCK_PHOTOS = 64
LOOK_THE_SAME = "photos in two splits look the same"
LOOK_THE_SAME_DRAWN = "photos look the same in two parts that fit would draw (seed 0)"


@dataclass(frozen=True)
class Looks:
    """Photos that can be read, and the hashes of their patches, one photo after the other.

    Args:
        paths: The photos.
        hashes: Of all patches.
        patches: How many each photo has.
        wholes: How many of them, the first, are of the whole photo.
    """

    paths: pl.Series
    hashes: NDArray[np.uint64]
    patches: NDArray[np.uint8]
    wholes: NDArray[np.uint8]

    def candidates(self, sides: Sequence[str] | pl.Series) -> list[tuple[int, int]]:
        """Photos of different sides that may be copies of each other, each pair once."""
        photo = np.repeat(np.arange(len(self.paths), dtype=np.int32), self.patches)
        starts = np.cumsum(self.patches, dtype=np.int64) - self.patches
        whole = np.arange(len(photo)) - starts[photo] < self.wholes[photo]
        return candidate_pairs(self.hashes, photo, whole, numbered_names(pl.Series(sides, dtype=pl.String))[1])


def far_away(release: Release) -> bool:
    """Whether every look into a file is a request: without being asked to, not every file is looked into."""
    return is_address(release.root)


def check_headers(release: Release, paths: Sequence[str] | pl.Series, problems: Problems) -> None:
    """Looks at how every file begins, and opens those that do not begin like a photo.

    Args:
        release: The root.
        paths: The photos, all of which are there.
        problems: Where what is found is noted.
    """
    odd = unlike(release, list(paths), PHOTO)
    if odd:
        check_photos(release, odd, problems)


def unlike(release: Release, paths: Sequence[str], medium: Medium) -> list[str]:
    """The files that do not begin as those of a medium do."""

    def of_block(block: Sequence[str]) -> list[str]:
        odd = []
        for path in block:
            with release.open(path) as file:
                if not medium.begins(file.read(HEAD_BYTES)):
                    odd.append(path)
        return odd

    blocks = blocks_of(paths, BLOCK_PHOTOS)
    return [path for some in map_blocks(of_block, blocks, all_cores("thread")) for path in some]


def check_photos(
    release: Release, paths: Sequence[str] | pl.Series, problems: Problems, *, looks: bool = False
) -> Looks:
    """Opens every photo, and notes those that cannot be read, each with the reason.

    Args:
        release: The root.
        paths: The photos, all of which are there.
        problems: Where what is found is noted.
        looks: Whether the patches of photos are found as well.
    """
    column = pl.Series("path", paths, dtype=pl.String)

    def open_block(start: int) -> list[tuple[bytes, int] | str]:
        return [_opened(data, looks) for data in release.read_many(column.slice(start, BLOCK_PHOTOS).to_list())]

    hashes, patches, wholes, broken = array("Q"), bytearray(), bytearray(), dict[int, str]()
    with progress("opening photos", len(column)) as tick:
        start = 0
        for block in map_blocks(open_block, range(0, len(column), BLOCK_PHOTOS), all_cores("thread")):
            for place, one in enumerate(block, start=start):
                if isinstance(one, str):
                    broken[place] = one
                    continue
                hashes.frombytes(one[0])
                patches.append(len(one[0]) // 8)
                wholes.append(one[1])
            start += len(block)
            tick(len(block))
    if broken:
        problems.add("error", "a photo cannot be read", [f"{column[place]}: {why}" for place, why in broken.items()])
        column = column.filter(~pl.int_range(len(column), eager=True).is_in(list(broken)))
    counts = (np.frombuffer(each, dtype=np.uint8) for each in (patches, wholes))
    return Looks(column, np.frombuffer(hashes, dtype=np.uint64), *counts)


def fault_of(data: bytes) -> str:
    """What is wrong with a photo; empty where it can be read to its end."""
    opened = _opened(data, looks=False)
    return opened if isinstance(opened, str) else ""


def _opened(data: bytes, looks: bool) -> tuple[bytes, int] | str:
    """The hashes of a photo as bytes, and how many are of the whole; or what is wrong with it."""
    try:
        picture = GrayPicture.of(data)
    except PictureError as error:
        return str(error)
    except (OSError, SyntaxError, ValueError) as error:
        return what_is_broken(error)
    return (picture.patches.hashes.tobytes(), picture.patches.wholes) if looks else (b"", 0)


@dataclass(frozen=True)
class FileWords:
    """What a check calls what is wrong with the files that tables name; what has no words is not looked for.

    Args:
        missing: A file that is not there.
        folder: A folder at the root that is not there, with how bad that is; its files are not missing then.
        stray: A file in these folders that no table names.
        empty: A file without content.
    """

    missing: str
    folder: tuple[Severity, str] | None = None
    stray: str = ""
    empty: str = ""


def check_listed_files(
    release: Release,
    listed: pl.DataFrame,
    problems: Problems,
    words: FileWords,
    *,
    medium: Medium = PHOTO,
    media: bool,
    near_duplicates: bool,
) -> None:
    """Photos or recordings that tables name beside what lies on disk: missing, stray, empty, broken, in two parts.

    Args:
        release: The root.
        listed: The files, with the columns `path` and `parts`.
        problems: Where what is found is noted.
        words: What is looked for.
        medium: What the files are.
        media: Whether every file is opened.
        near_duplicates: Whether photos that only look the same are sought as well.
    """
    listed = listed.select("path", pl.col("parts").list.first().fill_null("").alias("part"))
    top = listed["path"].str.extract(r"^([^/]+)/").fill_null("")
    folders = sorted(set(top) - {""})
    if words.folder:
        absent = [name for name in folders if not release.exists(name)]
        problems.at(*words.folder, [f"{name}/" for name in absent])
        listed = listed.filter(~top.is_in(absent))
        folders = [name for name in folders if name not in absent]
    sizes = release.sizes(listed["path"])
    problems.at("error", words.missing, [path for path in listed["path"] if path not in sizes])
    if words.stray:
        there = {f"{folder}/{name}" for folder in folders for name in release.files(folder)}
        problems.at("warning", words.stray, sorted(there - set(listed["path"])))
    if words.empty:
        problems.at("error", words.empty, [path for path, size in sizes.items() if size == 0])
    part_of = dict(listed.iter_rows())
    split_of = {path: part_of[path] for path in part_of if path in sizes and (sizes[path] or not words.empty)}
    if medium.visual:
        check_split_photos(release, split_of, problems, media=media, near_duplicates=near_duplicates)
    elif media:
        check_recordings(release, list(split_of), problems)


def check_split_photos(
    release: Release, split_of: Mapping[str, str], problems: Problems, *, media: bool, near_duplicates: bool
) -> None:
    """Looks at the photos of a release with splits of its own, and compares those of different splits.

    Args:
        release: The root.
        split_of: The split that each photo belongs to, by its path; all are there.
        problems: Where what is found is noted.
        media: Whether every photo is opened; else only how its file begins is read, and not far away.
        near_duplicates: Whether photos that only look the same are sought as well.
    """
    check_copies(release, split_of, problems)
    paths = pl.Series(list(split_of), dtype=pl.String)
    if not (media or near_duplicates):
        if not far_away(release):
            check_headers(release, paths, problems)
        return
    looks = check_photos(release, paths, problems, looks=near_duplicates)
    if near_duplicates:
        pairs = alike_pairs(release, looks, [split_of[path] for path in looks.paths])
        problems.at("error", LOOK_THE_SAME, [f"{one} and {other}" for one, other in pairs], every=True)


def check_copies(release: Release, split_of: Mapping[str, str], problems: Problems) -> None:
    """Notes photos with the same bytes in two parts."""
    note_copies(identical_files(release, split_of), split_of, problems, PHOTO)


def note_copies(
    groups: Sequence[Sequence[str]], split_of: Mapping[str, str], problems: Problems, medium: Medium
) -> None:
    """Notes which groups of files with the same bytes lie in two parts."""
    leaking = across(groups, split_of)
    problems.at("error", f"the same {medium} is in two parts", leaking, every=True)


def alike_pairs(release: Release, looks: Looks, sides: Sequence[str] | pl.Series) -> list[tuple[str, str]]:
    """Photos of different sides that are copies of each other: scaled, cut, mirrored, turned, brighter, or compressed.

    Photos that share patches are opened once more and laid over each other.

    Args:
        release: Where they lie.
        looks: The photos and their hashes.
        sides: The side of each; photos of one side are not compared.
    """
    pairs = looks.candidates(sides)
    paths = looks.paths

    def verify(block: tuple[int, list[int]]) -> tuple[int, list[tuple[str, str]]]:
        first, others = block
        one, *rest = (GrayPicture.of(data) for data in release.read_many(paths.gather([first, *others]).to_list()))
        same = [other for other, picture in zip(others, rest, strict=True) if are_copies(one, picture)]
        return len(others), [(paths[first], paths[other]) for other in same]

    found: list[tuple[str, str]] = []
    with progress("comparing photos", len(pairs)) as tick:
        for compared, some in map_blocks(verify, _by_first(pairs), all_cores("thread")):
            found += some
            tick(compared)
    return found


def _by_first(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    for first, some in groupby(pairs, key=lambda pair: pair[0]):
        yield first, [second for _, second in some]
