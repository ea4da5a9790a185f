"""Items of several photos answered photo by photo, and pooled into one answer for each item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.base import Fitted
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.steps.company import refuse_dependent
from fieldmark.steps.past import observation_of
from fieldmark.steps.pooling import pool, pooling_of
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO, is_leftover
from fieldmark.views.parts import Part

# How items of several photos are answered where no pooling is named: from the mean of the features of their photos.
OF_FEATURES = "features"


def check_pooling(pooling: str) -> None:
    """Refuses a pooling that does not exist; `features` is no pooling of predictions, and always there."""
    if pooling != OF_FEATURES:
        pooling_of(pooling)


def answer(
    fitted: Fitted,
    part: Part,
    labels: Labels,
    supply: Callable[[Part], Part],
    pooling: str,
    *,
    predict: Callable[[Part], Any] | None = None,
) -> Any:
    """Answers the items of a part: each as one, or photo by photo.

    Args:
        fitted: The method.
        part: The items.
        labels: The known labels.
        supply: Adds the features that the method needs.
        pooling: `features` for one answer from the mean of the features of all photos, else a name of
            `steps.pooling.POOLINGS`: each photo is answered by itself.
        predict: What answers items with their features, if not the method by itself (a day of a stream).

    Raises:
        MisuseError: When the method gives no score to every label, or attention meets scores that only rank.
    """
    media = part.items["media_ids"].list.len()
    predict = predict or (lambda items: fitted.predict(items, labels))
    if pooling == OF_FEATURES or not len(part) or media.max() == 1:
        return predict(supply(part))
    photos, item = _one_item_per_photo(part)
    predictions = predict(supply(photos))
    if not isinstance(predictions, LabelScores) or not predictions.dense:
        raise MisuseError(f"pooling={pooling} needs a score for every label of each photo, which this method lacks.")
    scale: Scale = "score" if predictions.scale == "score" else "log_probability"
    whole = replace(predictions.select(predictions.items[row] for row in _first(item)), items=part.item_ids)
    whole = whole.with_columns(pool(predictions, item, pooling), scale)
    if predictions.unknown is None:
        return whole
    strange = np.bincount(item, weights=predictions.unknown) / np.bincount(item)
    return replace(whole, unknown=strange.astype(predictions.unknown.dtype))


def answer_checked(
    name: str,
    fitted: Fitted,
    part: Part,
    labels: Labels,
    supply: Callable[[Part], Part],
    pooling: str,
    unit_of: Mapping[str, Any] | None = None,
) -> Any:
    """Answers the items of a part, and asks a copy again about a few of them, in no other company than it may see.

    Args:
        name: What the method is called.
        fitted: The method.
        part: The items.
        labels: The known labels.
        supply: Adds the features that the method needs.
        pooling: As for `answer`.
        unit_of: The unit of each item; without, its observation.

    Raises:
        PeekingError: When a method that says that it sees the item, or its unit, answers otherwise in other company.
    """
    sees = fitted.method.sees
    if sees not in ("item", "unit"):
        return answer(fitted, part, labels, supply, pooling)
    copy = fitted.fresh(anew=METHODS.is_added(name))  # made before the first answer
    answers = answer(fitted, part, labels, supply, pooling)
    # Under other ids: nothing that was kept by its id is found again.
    other = replace(part, salt=part.salt and hashlib.blake2b(part.salt, digest_size=16).digest())
    refuse_dependent(
        f"the method {name}",
        lambda sets: [answer(copy, other.take(rows), labels, supply, pooling) for rows in sets],
        answers,
        (unit_of or observation_of(part.items)) if sees == "unit" else None,
    )
    return answers


def _one_item_per_photo(part: Part) -> tuple[Part, np.ndarray[Any, np.dtype[np.int64]]]:
    """Every photo as an item of its own, and the row of the item that it belongs to."""
    none = pl.lit([None], pl.List(pl.String))  # an item without any photo stays one
    media = pl.when(pl.col("media_ids").list.len() > 0).then("media_ids").otherwise(none)
    rows = part.items.with_columns(media_ids=media).with_row_index("row").explode("media_ids")
    number = pl.int_range(pl.len()).over("row").cast(pl.String)
    own = pl.concat_list("media_ids").list.drop_nulls()
    items = rows.with_columns(item_id=pl.concat_str("item_id", pl.lit("#"), number), media_ids=own)
    photos = Part(items.drop("row"), media=part.media, layers=part.layers, salt=part.salt)
    return photos, rows["row"].to_numpy().astype(np.int64)


def _first(item: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first photo of each item."""
    return np.flatnonzero(np.diff(item, prepend=-1))


def find_photos(places: Iterable[Path]) -> list[Path]:
    """All photos among files and folders (searched to any depth), sorted within each folder.

    Raises:
        InputError: For a place that does not exist, or when there is no photo at all.
    """
    places = list(places)
    photos: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = (path for path in place.rglob("*") if PHOTO.owns(path) and path.is_file())
            photos += sorted(path for path in inside if not any(map(is_leftover, path.relative_to(place).parts)))
        elif place.is_file():
            photos.append(place)
        else:
            raise InputError(place, found="no such file or folder", expected="a photo or a folder of photos")
    if not photos:
        raise InputError(places[0], found="no photos", expected=f"files ending in {', '.join(PHOTO.suffixes)}")
    return photos
