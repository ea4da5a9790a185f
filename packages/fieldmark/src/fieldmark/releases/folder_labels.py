"""Which class and part each photo of a folder has, where folders and a table both have something to say."""

from __future__ import annotations

from collections.abc import Sequence

from fieldmark.errors import InputError
from fieldmark.releases.folder_layout import FoundMedium, Listing, named, one_spelling
from fieldmark.releases.folder_tables import PhotoLines, labels_told, told_parts_of
from fieldmark.storage.release import Release

BY_TABLE = "labels.csv (file,label)"


def settle_parts(listing: Listing, table: PhotoLines | None) -> list[FoundMedium]:
    """The photos with the part that their folder or the table says.

    Raises:
        InputError: When both say otherwise, or the table says it of some photos alone.
    """
    if table is None or "part" not in table.table.columns:
        return listing.found
    rows = table.table.rows
    part_of = dict(zip(rows["file"], told_parts_of(table.table), strict=True))
    if listing.parts:
        here = {one.path: one.part for one in listing.found}
        for row, path in enumerate(rows["file"]):
            if part_of[path] != here[path]:
                found = f"the part {part_of[path]} for a photo in {listing.parts[here[path] or '']}/"
                raise table.table.error(row, found, here[path] or "", "Move the photo, or change the table.")
        return listing.found
    without = [one.path for one in listing.found if one.path not in part_of]
    if without:
        raise InputError(
            table.table.where,
            found=f"no line for {len(without):,} photo(s) ({named(without)})",
            expected="the part of every photo",
            hint="Add the lines, or move the photos elsewhere.",
        )
    return [one._replace(part=part_of[one.path]) for one in listing.found]


def settle_labels(release: Release, listing: Listing, table: PhotoLines | None) -> list[FoundMedium]:
    """The photos with one label each, those of test possibly with none; those that cannot be used are left out.

    Raises:
        InputError: When nothing tells the classes, or folders and table say otherwise.
    """
    found = listing.found
    told = labels_told(table) if table is not None else {}
    by_folders = {one.label for one in found} - {None}
    if table is not None and told and (listing.unclear is not None or len(by_folders) < 2):
        listing.remarks.append(f"The classes come from the column `{table.label}` of `{table.table.name}`.")
        found = [one._replace(label=told.get(one.path), domain=None) for one in found]
        _refuse_unlabeled(found, table)
        return _spelled(found, listing)
    if listing.unclear is not None:
        raise listing.unclear
    if table is not None and _is_meant(table):
        _refuse_disagreement(found, table, listing)
    if told:
        found = [one._replace(label=one.label or told.get(one.path)) for one in found]
    found = _without_loose(found, release, listing)
    return _spelled(found, listing)


def _is_meant(table: PhotoLines) -> bool:
    """Whether a column surely names the classes; a species may also be a finer class than that of the folders."""
    return table.label is not None and (table.label.casefold() in ("label", "labels"))


def _refuse_disagreement(found: Sequence[FoundMedium], table: PhotoLines, listing: Listing) -> None:
    """Refuses labels that differ from the folders, unless they are other names for the same classes."""
    told = labels_told(table)
    pairs = {(one.label, told[one.path]) for one in found if one.label is not None and one.path in told}
    if all(folder == label for folder, label in pairs):
        return
    if len({folder for folder, _ in pairs}) == len(pairs) == len({label for _, label in pairs}):
        remark = f"The folders tell the classes; the column `{table.label}` of `{table.table.name}`, which calls them"
        listing.remarks.append(f"{remark} otherwise, is not read.")
        return
    folder_of = {one.path: one.label for one in found}
    for row, path in enumerate(table.table.rows["file"]):
        if path in told and folder_of[path] not in (None, told[path]):
            what = f"the label {told[path]!r} for a photo in the folder {folder_of[path]!r}"
            hint = "Correct the label, move the photo, or remove the column: the folders then tell the classes."
            raise table.table.error(row, what, "the same class in both", hint)


def _refuse_unlabeled(found: Sequence[FoundMedium], table: PhotoLines) -> None:
    """Refuses photos without a label, but where none of test has any."""
    without = [one for one in found if one.label is None]
    tested = [one for one in found if one.part == "test"]
    if without and (any(one.part != "test" for one in without) or len(without) < len(tested)):
        raise InputError(
            table.table.where,
            found=f"no label for {len(without):,} photo(s) ({named([one.path for one in without])})",
            expected="the class of every photo",
            hint="Add them, or move the photos elsewhere.",
        )


def _without_loose(found: Sequence[FoundMedium], release: Release, listing: Listing) -> list[FoundMedium]:
    """The photos less those beside the folders of classes; a test without any such folder has no labels."""
    kept: list[FoundMedium] = []
    for part in dict.fromkeys(one.part for one in found):
        ones = [one for one in found if one.part == part]
        loose = [one.path for one in ones if one.label is None]
        if loose and len(loose) == len(ones) and part != "test":
            place = release.where(listing.parts[part]) if part else release.root
            layout = f"{listing.parts[part]}/<class>/" if part else "<class>/ or train/<class>/"
            hint = f"Sort the photos into a folder for each class, or write {BY_TABLE}."
            raise InputError(
                place, found=f"{len(loose):,} photos without a class", expected=f"photos in {layout}", hint=hint
            )
        if loose and len(loose) == len(ones):
            listing.remarks.append(
                f"The {len(loose):,} photos of test have no labels: they are answered and not scored."
            )
        elif loose:
            listing.loose += loose
            ones = [one for one in ones if one.label is not None]
        kept += ones
    return kept


def _spelled(found: Sequence[FoundMedium], listing: Listing) -> list[FoundMedium]:
    written, remarks = one_spelling((one.part, one.label) for one in found)
    listing.remarks += remarks
    return [one._replace(label=written.get(one.label or "", one.label)) for one in found] if remarks else list(found)
