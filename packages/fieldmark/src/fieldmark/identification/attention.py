"""Where a model looks: parts of a photo are hidden in turn, and what that takes from the answer is drawn.

Zeiler and Fergus, "Visualizing and understanding convolutional networks" (2014): a gray square is moved over the photo
as the network sees it. The more the probability of the first name falls, the warmer the place.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.identification.specimens import SpecimenQuery
from fieldmark.questions.items import loose_items
from fieldmark.runs.label_scores import log_softmax
from fieldmark.views.parts import Part

# Squares along each side; each hides four cells, so that neighbors overlap.
CELLS = 7
HIDDEN_CELLS = 2
STRONGEST = 170


def drop_by_place(asked: SpecimenQuery, number: int = 0) -> NDArray[np.float64]:
    """How much hiding each part of a photo takes from the log-probability of the first name, as a grid.

    Args:
        asked: The question.
        number: Which of its photos.

    Raises:
        MisuseError: When the model reads photos in a way that cannot be shown.
    """
    source = asked.model.supply.main
    if source is None or not source.medium.visual or len(asked.model.supply.sources) > 1:
        raise MisuseError(f"Where the model {asked.model.name!r} looks cannot be drawn: it has no features of photos.")
    backbone = source.backbone
    square = np.asarray(backbone.decode(asked.held[number]))
    if square.ndim != 3 or square.shape[2] != 3:
        raise MisuseError(f"Where the model {asked.model.name!r} looks cannot be drawn.")
    hidden = [_hide(square, row, column) for row in range(CELLS) for column in range(CELLS)]
    features = np.concatenate([backbone([one])["features"] for one in (square, *hidden)]).astype(np.float32)
    logs = _log_chances(asked, features)
    best = int(asked.chances.argmax())
    return np.asarray(np.maximum(logs[0, best] - logs[1:, best], 0).reshape(CELLS, CELLS))


def _hide(square: NDArray[Any], row: int, column: int) -> NDArray[Any]:
    """The photo with the mean color over a square around one cell."""
    height, width = square.shape[0] / CELLS, square.shape[1] / CELLS
    shown = square.copy()
    top, left = (
        max(0, round((place - (HIDDEN_CELLS - 1) / 2) * side)) for place, side in ((row, height), (column, width))
    )
    bottom, right = round(top + HIDDEN_CELLS * height), round(left + HIDDEN_CELLS * width)
    shown[top:bottom, left:right] = square.reshape(-1, 3).mean(axis=0).astype(square.dtype)
    return shown


def _log_chances(asked: SpecimenQuery, features: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the method says about rows of features, before any step."""
    items = loose_items([Path(f"{number}") for number in range(len(features))], asked.known)
    part = Part(items, features={"photo": features})
    part = replace(part, features={**part.features, **_further(asked, part)})
    said = asked.model.fitted.predict(part, asked.model.labels)
    return np.asarray(said.scores if said.scale == "score" else log_softmax(said.scores.astype(np.float64)))


def _further(asked: SpecimenQuery, part: Part) -> dict[str, NDArray[np.float32]]:
    features: dict[str, NDArray[np.float32]] = {}
    for name, encoder in asked.model.encoders.items():
        features[name] = encoder.supply(part).features[name]
    return features


def overlay_png(drop: NDArray[np.float64], size: tuple[int, int]) -> bytes:
    """The grid as a PNG of a given width and height: clear where nothing depends on it, warm where much does."""
    strength = drop / max(float(drop.max()), 1e-12)
    small = Image.fromarray((STRONGEST * strength).astype(np.uint8))
    alpha = small.resize(size, Image.Resampling.BICUBIC)
    picture = Image.new("RGBA", size, (225, 60, 20, 0))
    picture.putalpha(alpha)
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def look_overlay(asked: SpecimenQuery, number: int = 0) -> bytes:
    """Where the model looks in one of the photos, as a PNG to lay over the square that the network sees of it."""
    return overlay_png(drop_by_place(asked, number), (224, 224))
