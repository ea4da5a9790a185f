"""Releases as tables. One module or package per release; each opens real files and never writes them.

A module ends with the record of its release (`record.py`), from which everything that knows releases by name is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.errors import InputError
from fieldmark.registry import late_imports
from fieldmark.releases.record import OfRecords, declared_records

if TYPE_CHECKING:
    from pathlib import Path

    from fieldmark.storage.release import Release
    from fieldmark.tables.dataset import Dataset, DatasetOpener

DATASETS: OfRecords[DatasetOpener] = OfRecords("dataset", "open", group="fieldmark.datasets")


def release_of(name: str, root: str | Path) -> Release:
    """The files that a dataset is opened from: a folder, and for some datasets a single file."""
    from fieldmark.storage.release import Release

    record = declared_records().get(name)
    return Release(root, single_file=record is not None and record.single_file)


def open_dataset(name: str, root: str | Path, subset: str = "all") -> Dataset:
    """Opens a release (or a world in its layout) by the name of its dataset.

    Raises:
        InputError: When there is no such release, or a world in the layout of another dataset.
    """
    opener, release = DATASETS[name], release_of(name, root)
    made_as = (release.world or {}).get("dataset", name)
    if made_as != name:
        hint = f"Ask about {made_as}, or make another: fieldmark world {name} OUT."
        raise InputError(release.root, found=f"a world of {made_as}", expected=f"one of {name}", hint=hint)
    return opener(release, subset)


__getattr__ = late_imports(__name__, "fieldmark.tables.dataset:Dataset", "fieldmark.releases.record:ReleaseRecord")
__all__ = ["DATASETS", "Dataset", "ReleaseRecord", "open_dataset", "release_of"]
