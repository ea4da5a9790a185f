"""Which training pictures lie nearest to a picture, by the features that the model of a run works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fieldmark.models.model import MODEL_FILE, MODEL_FOLDER, Model, load_model
from fieldmark.reports.section import Context
from fieldmark.views.parts import Part

# How many pictures of a class are looked through.
LOOKED_THROUGH = 200
Features = NDArray[np.float32]


def model_on_features(context: Context) -> Model | None:
    """The model behind the first run, where it lies there and works on features of pictures."""
    if context.folder is None or not (context.folder / MODEL_FOLDER / MODEL_FILE).exists():
        return None
    model = load_model(context.folder)
    return model if model.supply.main is not None else None


def features_of(model: Model, part: Part) -> Features:
    """The features of the items of a part."""
    return next(iter(model.supply.supply(part).features.values()))


def centered(features: Features, mean: Features | None = None) -> Features:
    """Features less a mean, their own if not given, with length 1."""
    moved = features - (features.mean(axis=0) if mean is None else mean)
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12), dtype=np.float32)


class NearestTraining:
    """Finds the training items of a class that lie nearest to some of the scored items.

    Args:
        context: The run and its release.
        rows: The scored items that will be asked about.
        labels: The classes that will be asked about.

    Where the run has no model on features, or a class no training items, there are none.
    """

    def __init__(self, context: Context, rows: Iterable[int], labels: Iterable[str]) -> None:
        self._labels: list[str] = []
        part = context.opened.view.test if context.part == "test" else context.opened.view.val
        model, asked = model_on_features(context), sorted(set(rows))
        if model is None or part is None or not asked:
            return
        own = context.opened.items["train"]["label"].to_list()
        of_label: dict[str, list[int]] = {label: [] for label in labels}
        for row, label in enumerate(own):
            if label in of_label and len(of_label[label]) < LOOKED_THROUGH:
                of_label[label].append(row)
        taken = [row for found in of_label.values() for row in found]
        if not taken:
            return
        place = {item: number for number, item in enumerate(part.item_ids)}
        shown = [place[str(context.predictions.items[row])] for row in asked]
        train = context.opened.view.train.take(np.array(taken, dtype=np.int64))
        learned = features_of(model, train)
        self._items = [str(item) for item in train.item_ids]
        self._train = centered(learned)
        scored = features_of(model, part.take(np.array(shown, dtype=np.int64)))
        self._scored = dict(zip(asked, centered(scored, learned.mean(axis=0)), strict=True))
        self._labels = [own[row] for row in taken]

    def items(self, rows: Sequence[int], label: str) -> list[str]:
        """The training items of a class, those first that lie nearest to any of the scored items."""
        mine = np.array([number for number, one in enumerate(self._labels) if one == label], dtype=np.int64)
        if not len(mine):
            return []
        closeness = (self._train[mine] @ np.stack([self._scored[row] for row in rows]).T).max(axis=1)
        return [self._items[number] for number in mine[np.argsort(-closeness, kind="stable")].tolist()]
