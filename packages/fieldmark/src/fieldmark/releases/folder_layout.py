"""How people lay out photos or recordings of their own: which folders are parts, classes, groups or domains.

What is unambiguous is read, and a remark says how; the rest is refused. Nothing is skipped without a word but
hidden files and what operating systems leave behind (`media_files.is_leftover`).

- A part goes by the usual names in any case (`PART_NAMES`): `valid/` is val, `Training/` is train.
- The class of a photo is the folder below the part, or below the root; photos deeper down belong to that class too.
- Where no such folder holds photos but those in them do, there are three readings. The upper folders are domains where
  one class lies in two of them (`herbarium/<class>/`, `photo/<class>/`); they are genera or other groups where the
  lower ones are classes beyond doubt: named as species, or the same ones in test as in train; anything else is refused,
  since the lower ones could as well be specimens.
- Photos that lie in test without a folder have no label.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.media import is_leftover, medium_of

# What the parts are called by people and tools; case, blanks and punctuation do not matter.
PART_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "train": ("train", "training", "trainset", "trainingset", "traindata", "trainingdata", "trainimages"),
    "val": ("val", "valid", "validation", "valset", "validset", "validationset", "dev", "devset", "valimages"),
    "test": ("test", "testing", "testset", "testingset", "testdata", "testimages"),
}
# Folders that people put unsorted photos into.
UNSORTED: Final = ("images", "photos", "pictures", "recordings", "unlabeled", "unlabelled", "unsorted", "all")
# Deeper folders are those of a link that leads back, or of a whole disk.
DEEPEST = 8
BINOMIAL = re.compile(r"^([A-Z][a-z]+)[ _]([a-z][a-z-]+)$")
GENUS, EPITHET = re.compile(r"^[A-Z][a-z]+$"), re.compile(r"^[a-z][a-z-]+$")
SHOWN = 3


def part_of(name: str) -> str | None:
    """The part that a folder, or a word in a table, stands for.

    >>> part_of("valid"), part_of("Training set"), part_of("Amanita")
    ('val', 'train', None)
    """
    plain = re.sub(r"[^a-z0-9]", "", name.casefold())
    return next((part for part, names in PART_NAMES.items() if plain in names), None)


def named(places: Sequence[str]) -> str:
    """The first of some places, as a remark names them.

    >>> named(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    more = len(places) - SHOWN
    return ", ".join(places[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


class FoundMedium(NamedTuple):
    """One photo or recording where it lies.

    Args:
        path: Below the root.
        part: The part whose folder it lies in; None where there are no parts.
        folders: The folders between the part, or the root, and the file.
        label: The class that the folders tell; None where they do not.
        domain: The domain that they tell.
    """

    path: str
    part: str | None
    folders: tuple[str, ...]
    label: str | None = None
    domain: str | None = None


@dataclass
class Listing:
    """What a folder holds, and how it was read.

    Args:
        found: The photos and recordings.
        parts: The name of the folder of each part; none where there are only classes.
        passed_over: Files that are not read, since they are no photos or recordings.
        no_parts: Folders beside those of the parts, which are not read either, and how much they hold.
        loose: Photos beside the folders of classes, which are not read either.
        empty: Folders of classes that hold nothing.
        remarks: How the rest was read, one sentence each.
        unclear: What to say where the folders do not tell the classes and no table does.
    """

    found: list[FoundMedium] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    passed_over: list[str] = field(default_factory=list)
    no_parts: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unclear: InputError | None = None


def unwrapped(release: Release) -> tuple[Release, tuple[str, ...]]:
    """The release itself, or the only folder in it, as archives are packed; and what to say about that."""
    inner, names = release, list[str]()
    while len(names) < DEEPEST and not _entries(inner, "")[1]:
        folders = _entries(inner, "")[0]
        if len(folders) != 1 or part_of(folders[0]) or not _entries(inner, folders[0])[0]:
            break
        files = _entries(inner, folders[0])[1]
        if any(map(medium_of, files)):
            break
        names.append(folders[0])
        inner = inner.within(folders[0])
    return inner, (f"Read `{'/'.join(names)}/`, the only folder there.",) if names else ()


def find_parts(release: Release, folder: str = "") -> dict[str, str]:
    """The folder of each part directly below a folder, in the order train, val, test; none where there are no parts.

    Without a train folder, other spellings are taken for names of classes (valid, invalid).

    Raises:
        InputError: When two folders stand for one part, or there is val or test but no train.
    """
    folder_of: dict[str, str] = {}
    for name in _entries(release, folder)[0]:
        part = part_of(name)
        if part is not None and part in folder_of:
            found = f"the folders {folder_of[part]}/ and {name}/"
            hint = "Put all photos of a part into one folder."
            raise InputError(_place(release, folder), found=found, expected=f"one for {part}", hint=hint)
        if part is not None:
            folder_of[part] = name
    if "train" not in folder_of:
        exact = [name for part, name in folder_of.items() if name == part]
        if not exact and len(folder_of) < len(_entries(release, folder)[0]):
            return {}
        if folder_of:
            parts = " and ".join(part for part in PART_NAMES if part in folder_of)
            raise InputError(_place(release, folder), found=f"{parts} but no train", expected="a folder train/<class>/")
    return {part: folder_of[part] for part in PART_NAMES if part in folder_of}


def _place(release: Release, folder: str) -> str:
    return release.where(folder) if folder else release.root


def told_parts(folder_of: Mapping[str, str]) -> list[str]:
    """The remark on parts that go by other names."""
    other = [f"`{name}/` as {part}" for part, name in folder_of.items() if name != part]
    return [f"Read {', '.join(other)}."] if other else []


def list_media(release: Release, not_classes: Iterable[str] = ()) -> Listing:
    """Finds every photo and recording, and the class that its folders tell.

    Args:
        release: The root.
        not_classes: Folders of the root that hold something else.

    Raises:
        InputError: When two folders stand for one part, when there is no train, or when folders lie too deep.
    """
    listing = Listing(parts=find_parts(release))
    listing.remarks += told_parts(listing.parts)
    part_named = {name: part for part, name in listing.parts.items()}
    for name in _entries(release, "")[0]:
        if name in part_named:
            _walk(release, name, part_named[name], (), listing)
        elif listing.parts:
            _note_other_folder(release, name, listing)
        elif name not in not_classes:
            _walk(release, name, None, (name,), listing)
    if not listing.parts:
        loose = [name for name in _entries(release, "")[1] if medium_of(name)]
        listing.found += [FoundMedium(name, None, ()) for name in loose]
    _tell_classes(release, listing)
    return listing


def _entries(release: Release, folder: str) -> tuple[list[str], list[str]]:
    """The folders and files directly in a folder, without what nobody has put there."""
    folders, files = release.entries(folder)
    return [name for name in folders if not is_leftover(name)], [name for name in files if not is_leftover(name)]


def _walk(release: Release, folder: str, part: str | None, inner: tuple[str, ...], listing: Listing) -> None:
    if len(inner) > DEEPEST:
        hint = "Does a link lead back to a folder above it?"
        raise InputError(release.where(folder), found="folders nested too deep", expected="classes", hint=hint)
    folders, files = _entries(release, folder)
    media = [name for name in files if medium_of(name)]
    label = _label(inner)
    listing.found += [FoundMedium(f"{folder}/{name}", part, inner, label) for name in media]
    if len(media) < len(files):
        listing.passed_over += [f"{folder}/{name}" for name in files if not medium_of(name)]
    if not media and not folders and inner:
        listing.empty.append(folder)
    for name in folders:
        _walk(release, f"{folder}/{name}", part, (*inner, name), listing)


def _note_other_folder(release: Release, name: str, listing: Listing) -> None:
    """A folder beside those of the parts: what lies in it is in no part."""
    beside = Listing()
    _walk(release, name, None, (name,), beside)
    if beside.found:
        listing.no_parts.append(f"{name}/ ({len(beside.found):,} files)")


def _tell_classes(release: Release, listing: Listing) -> None:
    """Sets the class and the domain of what was found, part by part."""
    by_part: dict[str | None, list[FoundMedium]] = {}
    for one in listing.found:
        by_part.setdefault(one.part, []).append(one)
    deep = {part: ones for part, ones in by_part.items() if _depth(ones) >= 2}
    plain = [one for one in listing.found if one.part not in deep] if deep else listing.found
    if any(len(one.folders) > 1 for one in plain):
        below = [one.path for one in plain if len(one.folders) > 1]
        told = f"{len(below):,} photo(s) in folders below a class are photos of that class: {named(below)}"
        listing.remarks.append(f"{told}. If they show one specimen, `observations.csv` should say so.")
    known = {one.label for one in plain if one.label is not None}
    told_deep = _tell_deep(release, [one for ones in deep.values() for one in ones], known, listing)
    listing.found = [*plain, *told_deep] if deep else plain
    order = {part: place for place, part in enumerate((None, *PART_NAMES))}
    listing.found.sort(key=lambda one: order[one.part])
    _leave_unsorted(listing)


def _depth(ones: Iterable[FoundMedium]) -> int:
    """In how many folders the least deep of the sorted photos lie; 0 where none are sorted."""
    return min((len(one.folders) for one in ones if one.folders), default=0)


@lru_cache(maxsize=1024)
def _label(folders: tuple[str, ...]) -> str | None:
    return unicodedata.normalize("NFC", folders[0]).strip() if folders else None


def _tell_deep(release: Release, ones: list[FoundMedium], known: set[str], listing: Listing) -> list[FoundMedium]:
    """The classes of parts in which no folder holds photos, but folders in them do."""
    sorted_ones = [one for one in ones if len(one.folders) >= 2]
    if not sorted_ones:
        return ones
    # What all of them lie in says nothing.
    above = 0
    while _depth(sorted_ones) - above > 2 and len({one.folders[above] for one in sorted_ones}) == 1:
        above += 1

    def read_as(
        told: str, label: Callable[[tuple[str, ...]], str | None], *, domain: bool = False
    ) -> list[FoundMedium]:
        listing.remarks.append(f"Read folders in folders, such as {names}, as {told}.")
        inner = [one.folders[above:] for one in ones]
        return [
            one._replace(label=label(folders), domain=next(iter(folders), None) if domain else None)
            for one, folders in zip(ones, inner, strict=True)
        ]

    pairs = {one.folders[above : above + 2] for one in sorted_ones}
    uppers = Counter(lower for _, lower in pairs)
    shared = sum(number > 1 for number in uppers.values())
    example = sorted_ones[0]
    names = f"`{'/'.join(example.folders[above : above + 2])}/`"
    species = all(GENUS.match(upper) and EPITHET.match(lower) for upper, lower in pairs)
    if species and 2 * shared < len(uppers):
        return read_as("genus and species", lambda folders: " ".join(folders[:2]) or None)
    if shared:
        return read_as("domain and class", lambda folders: _label(folders[1:]), domain=True)
    tested = {one.folders[above : above + 2] for one in sorted_ones if one.part in ("val", "test")}
    trained = {one.folders[above : above + 2] for one in sorted_ones if one.part == "train"}
    again = bool(tested) and 2 * len(tested & trained) >= len(tested)
    one_upper = len({upper for upper, _ in pairs}) == 1
    if one_upper or again or all(lower in known or BINOMIAL.match(lower) for lower in uppers):
        return read_as("a group and a class of it", lambda folders: _label(folders[1:]))
    if all(BINOMIAL.match(upper) for upper, _ in pairs):
        return read_as("a class and something in it, such as specimens, which `observations.csv` should tell", _label)
    listing.unclear = InputError(
        release.root,
        found=f"photos {max(map(len, (one.folders for one in sorted_ones)))} folders deep ({example.path})",
        expected="photos in a folder for each class",
        hint="Which folder is the class cannot be told: move the photos up, and say in `observations.csv` "
        "(file,label,observation) what else the folders say; with a label there, they may stay.",
    )
    return [one._replace(label=None) for one in ones]


def _leave_unsorted(listing: Listing) -> None:
    """Takes no class from a folder such as `test/images/`, where train has classes and not that one."""
    learned = {one.label for one in listing.found if one.part == "train"} - {None}
    tested = {one.label for one in listing.found if one.part == "test"} - {None}
    if len(learned) < 2 or len(tested) != 1 or tested & learned:
        return
    (name,) = tested
    if name is not None and name.casefold() in UNSORTED:
        listing.remarks.append(f"Read `{listing.parts['test']}/{name}/` as photos without a label.")
        listing.found = [one._replace(label=None) if one.part == "test" else one for one in listing.found]


def one_spelling(labels: Iterable[tuple[str | None, str | None]]) -> tuple[dict[str, str], list[str]]:
    """For each label of media, given by part and label, the spelling that counts; and a remark on those that changed.

    Classes that differ in capitals or between blank and underscore alone are one where no part has both.
    """
    spellings: dict[str, dict[str, None]] = {}
    parts_of: dict[tuple[str, str | None], set[str]] = {}
    for part, label in dict.fromkeys(labels):
        if label is not None:
            spellings.setdefault(plain_label(label), {})[label] = None
            parts_of.setdefault((plain_label(label), part), set()).add(label)
    distinct = {plain for (plain, _), names in parts_of.items() if len(names) > 1}
    written = {name: next(iter(names)) for plain, names in spellings.items() if plain not in distinct for name in names}
    changed = [f"`{name}` as `{other}`" for name, other in written.items() if name != other]
    remarks = [f"Read classes spelled in two ways as one: {named(changed)}."] if changed else []
    two = [" and ".join(f"`{name}`" for name in spellings[plain]) for plain in sorted(distinct)]
    remarks += (
        [f"Classes that differ in spelling alone lie in one part, and count as two: {named(two)}."] if two else []
    )
    return written, remarks


def plain_label(label: str) -> str:
    """A class without what people write in two ways: accents as one or two characters, capitals, underscores.

    >>> plain_label("Amanita_Muscaria ")
    'amanita muscaria'
    """
    return re.sub(r"[\s_]+", " ", unicodedata.normalize("NFC", label)).strip().casefold()
