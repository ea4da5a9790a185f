"""The axes of second-order features, found in photos of train and kept in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.crops import Box
from fieldmark.features.engines import AT_ONCE
from fieldmark.features.photos import PhotoError
from fieldmark.features.second_order import AXES, PHOTOS, Axes, axes_of
from fieldmark.features.store import content_key
from fieldmark.methods.base import media_of
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.storage.files import appearing_file
from fieldmark.views.parts import Part
from fieldmark.work.blocks import blocks_of

# Raised whenever the same photos would give other axes.
AXES_VERSION = 1


def axes_of_train(backbone: Any, train: Part, crop: tuple[str, float], store: Path) -> Axes:
    """The axes of the channels of a network, from photos spread over train.

    Networks differ in the last digits from engine to engine, and with them axes: those that were found once are kept.

    Args:
        backbone: The network as it is.
        train: The part.
        crop: What is shown of photos, and the margin around it.
        store: Where features are kept.

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
    axes = axes_of(_maps(backbone, photos))
    with appearing_file(file) as partial, partial.open("wb") as opened:
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
            yield backbone.last_maps(squares)
    if not seen:
        raise MisuseError(f"None of {len(photos)} photos of train can be read; second-order features need some.")
