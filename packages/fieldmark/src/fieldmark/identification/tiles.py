"""Photos of plots, answered by a model of single plants: cut into tiles, each answered, the answers put together."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box
from fieldmark.features.photos import PhotoError, decode_photo
from fieldmark.models import Model
from fieldmark.runs.code_sets import CodeSets, offsets_of
from fieldmark.runs.label_scores import LabelScores
from fieldmark.work.progress import progress

MOST_TILES = 16
# Tiles are saved for the model as a camera would save them.
QUALITY = 95


def tiles_of(tiles: int, overlap: float = 0.0) -> list[Box]:
    """The boxes of a grid of so many tiles on a side, row by row; each reaches into its neighbors by a share of itself.

    >>> [tuple(box) for box in tiles_of(2)][:2]
    [(0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 1.0, 0.5)]
    """
    edges = [(place / tiles, (place + 1) / tiles) for place in range(tiles)]
    grown = [(max(low - overlap / tiles, 0.0), min(high + overlap / tiles, 1.0)) for low, high in edges]
    return [Box(left, top, right, bottom) for top, bottom in grown for left, right in grown]


def tile_votes(model: Model, photos: Sequence[Path], *, tiles: int = 4, overlap: float = 0.0) -> LabelScores:
    """The highest probability that each label has in any tile of each photo; photos are called by their file names.

    Args:
        model: A model of photos with one label each.
        photos: The photos of the plots.
        tiles: How many tiles stand on a side; 1 for the whole photo.
        overlap: By which share of its side a tile reaches into its neighbors.

    Raises:
        MisuseError: When the model answers otherwise, or two photos are called the same.
        InputError: When a photo cannot be read.
    """
    if not 1 <= tiles <= MOST_TILES or not 0 <= overlap < 1:
        raise MisuseError(f"tile takes 1 to {MOST_TILES} tiles on a side and an overlap from 0 to below 1.")
    names = [photo.stem for photo in photos]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MisuseError(f"Two photos are called {twice}: plots are named by the file, without its ending.")
    votes = np.zeros((len(photos), len(model.labels)), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder, progress("answering plots", len(photos)) as tick:
        for row, photo in enumerate(photos):
            cut = _cut(photo, Path(folder), tiles_of(tiles, overlap))
            predictions = model.predict_photos(cut)
            if not isinstance(predictions, LabelScores) or not predictions.dense:
                raise MisuseError(f"The model {model.name!r} gives no probability to each label.")
            votes[row] = predictions.chances().max(axis=0)
            tick(1)
    return LabelScores(tuple(names), model.labels, votes, "score")


def listed(votes: LabelScores, *, at_least: float, most: int) -> LabelScores:
    """The labels with at least such a vote, the highest ones where there are too many, and never none."""
    order = np.argsort(-votes.scores, axis=1, kind="stable")[:, :most]
    best = np.take_along_axis(votes.scores, order, axis=1)
    kept = best >= at_least
    kept[:, 0] = True
    return votes.decided(CodeSets(order[kept].astype(np.int32), offsets_of(kept.sum(axis=1))))


def _cut(photo: Path, folder: Path, boxes: Sequence[Box]) -> list[Path]:
    """Writes the tiles of a photo and returns where they lie."""
    files = []
    try:
        data = photo.read_bytes()
        for number, box in enumerate(boxes):
            path = folder / f"{number}.jpg"
            decode_photo(data, box=box).convert("RGB").save(path, quality=QUALITY)
            files.append(path)
    except (OSError, PhotoError) as error:
        raise InputError(photo, found=str(error), expected="a photo") from error
    return files
