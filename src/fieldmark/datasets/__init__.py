"""Releases as tables. One module per release; each opens real files and never writes them."""

from __future__ import annotations

from pathlib import Path

from fieldmark.datasets.base import Dataset, DatasetType
from fieldmark.registry import Registry
from fieldmark.release import Release

DATASETS: Registry[DatasetType] = Registry(
    "dataset",
    {"folder": ("fieldmark.datasets.folder:open_folder", "your own photos, one folder per class")},
)


def open_dataset(name: str, root: str | Path) -> Dataset:
    """Opens a release (or a world in its layout) by the name of its dataset."""
    return DATASETS[name](Release(root))


__all__ = ["DATASETS", "Dataset", "open_dataset"]
