"""The axes of second-order features, found in photos of train and kept in the store, and features on other axes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.crops import Box
from fieldmark.features.engines import AT_ONCE
from fieldmark.features.given_backbones import process_store
from fieldmark.features.photos import PhotoError
from fieldmark.features.second_order import AXES, PHOTOS, Axes, axes_of, pooled_rows
from fieldmark.features.store import FeatureStore, content_key
from fieldmark.methods.base import media_of
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.storage.files import appearing_file
from fieldmark.views.parts import Part
from fieldmark.work.blocks import blocks_of
from fieldmark.work.large_arrays import row_by_row

# Raised whenever the same photos would give other axes.
AXES_VERSION = 1


@dataclass(frozen=True)
class WithMaps:
    """A network whose maps are kept beside its features."""

    backbone: Any

    def decode(self, data: bytes, box: Box | None = None) -> Any:
        """As the network does."""
        return self.backbone.decode(data, box)

    def __call__(self, pixels: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Both, in half precision."""
        maps, features = self.backbone.last_maps(pixels)
        return {"maps": maps.astype(np.float16), "features": features.astype(np.float16)}


@dataclass(frozen=True)
class KeptMaps:
    """The maps of photos for as long as a process runs: who changes axes again and again has photos looked at once.

    Args:
        root: Where they lie.
    """

    root: Path = field(default_factory=process_store)

    def store(self, backbone: Any) -> FeatureStore:
        """Those of one network."""
        return FeatureStore(self.root, backbone.digest)

    @staticmethod
    def pooled(store: FeatureStore, keys: NDArray[np.uint8], axes: Axes) -> NDArray[np.float32]:
        """Second-order features of photos whose maps are kept."""
        return row_by_row(partial(pooled_rows, axes=axes), store.get(keys, "maps"), store.get(keys))


def axes_of_train(
    backbone: Any, train: Part, crop: tuple[str, float], store: Path, kept: KeptMaps | None = None
) -> Axes:
    """The axes of the channels of a network, from photos spread over train.

    Networks differ in the last digits from engine to engine, and with them axes: those that were found once are kept.

    Args:
        backbone: The network as it is.
        train: The part.
        crop: What is shown of photos, and the margin around it.
        store: Where features are kept.
        kept: Where maps are kept, if anywhere.

    Raises:
        MisuseError: When no photo can be read.
    """
    pictured = train.take((train.items["media_ids"].list.len().fill_null(0) > 0).to_numpy())
    rows = np.linspace(0, len(pictured) - 1, min(len(pictured), PHOTOS)).astype(np.int64)
    sample = pictured.take(np.isin(np.arange(len(pictured)), rows))
    boxes = boxes_of(sample, *crop, store)
    ids = sample.items["media_ids"].list.first()
    photos = [(media_of(sample).read(one), boxes.of(one)) for one in ids]
    recipe = repr([AXES_VERSION, AXES, backbone.digest, *((content_key(data).hex(), box) for data, box in photos)])
    file = store / "axes" / f"{hashlib.blake2b(recipe.encode(), digest_size=16).hexdigest()}.npy"
    if file.exists():
        return np.asarray(np.load(file), dtype=np.float32)
    if kept is None:
        axes = axes_of(_maps(backbone, photos))
    else:
        from fieldmark.features.extraction import fill_store

        whose = kept.store(backbone)
        keys = fill_store(ids.to_list(), media_of(sample).read, WithMaps(backbone), whose, boxes=boxes)
        axes = axes_of([whose.get(keys, "maps")])
    with appearing_file(file) as unfinished, unfinished.open("wb") as opened:
        np.save(opened, axes)
    return axes


def _maps(backbone: Any, photos: list[tuple[bytes, Box | None]]) -> Iterator[NDArray[np.float32]]:
    seen = 0
    for block in blocks_of(photos, AT_ONCE):
        squares = []
        for data, box in block:
            try:
                squares.append(backbone.decode(data, box))
            except PhotoError:  # whoever reads all photos says so
                continue
        seen += len(squares)
        if squares:
            yield backbone.last_maps(squares)[0]
    if not seen:
        raise MisuseError(f"None of {len(photos)} photos of train can be read; second-order features need some.")
