"""Numbers and categories alone: boosted trees, or a softmax network where there are many labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, USUAL, Arrays, Fitted, Need, choices, features_of, truth_of
from fieldmark.methods.joined import Joined
from fieldmark.methods.joint import Joint
from fieldmark.methods.modalities import ALL, OnModalities, is_readable, is_table
from fieldmark.questions.targets import Shape
from fieldmark.registry import require
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.tables.inputs import Input
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import scored_rows

MODELS = ("auto", "boosting", "network")
MOST_ROUNDS, PATIENCE = 300, 15
# What a label has that train does not show, beside the labels of one observation in all.
UNSEEN = 1e-3
TREES, CLASSES = "trees", "classes"


@dataclass(frozen=True)
class Tabular(OnModalities):
    """Metadata without the photo: LightGBM up to 200 labels, a softmax network above, where one tree per label and
    round would take too long (Ke et al., "LightGBM", 2017).

    Args:
        inputs: The inputs with commas between them; "all" takes every table that the release has and the task allows.
            Empty, as a member of a fusion, takes the features that a part comes with.
        model: boosting, network, or auto: boosting up to `most_labels`.
        most_labels: See there.
        rounds: How many trees each label has; 0 stops where the log loss on val is lowest, after 300 at most.
        leaves, least, rate, l2: Leaves of a tree, items in a leaf at least, learning rate and penalty of boosting.
        epochs: Of the network; 0 stops where the log loss on val is lowest.
        seed: Of everything random.
    """

    inputs: str = ALL
    model: str = setting("auto", choices=MODELS)
    most_labels: int = 200
    rounds: int = setting(0, least=0)
    leaves: int = setting(15, least=2)
    least: int = setting(5, least=1)
    rate: float = setting(0.05, above=0)
    l2: float = setting(1.0, least=0)
    epochs: int = setting(0, least=0)
    seed: int = 0

    scale: ClassVar[Scale] = "logit"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"leaves": (15, 4), "least": (5, 20)}

    def check_settings(self) -> None:
        _ = self.modalities  # refuses what cannot be read

    @property
    def needs(self) -> tuple[Need, ...]:
        return super().needs or (() if self.inputs == ALL else (Need("features"),))

    def takes(self, declared: Input) -> bool:
        return is_readable(declared) and is_table(declared)

    def fit(self, view: View) -> Fitted:
        boosts = self.model == "boosting" or (self.model == "auto" and len(view.labels) <= self.most_labels)
        if view.val is None and not (self.rounds if boosts else self.epochs):
            wanted = "rounds" if boosts else "epochs"
            raise MisuseError(f"tabular chooses {wanted} on val, and there is none: pass --set {wanted}=NUMBER.")
        return self._boost(view) if boosts else self._train_network(view)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        table = self._table(arrays, part)
        if CLASSES not in arrays:  # a network
            return self._network.scores(arrays, _only(part, table))
        classes, frequencies = arrays[CLASSES], arrays["frequencies"]
        booster = _booster(arrays[TREES].tobytes()) if TREES in arrays else None

        def score(rows: NDArray[np.float32]) -> NDArray[np.float64]:
            scores = np.tile(np.log(frequencies), (len(rows), 1))
            if booster is not None:
                chances = booster.predict(rows, num_threads=0)
                scores[:, classes] = np.log(np.maximum(chances, 1e-12)) + np.log(frequencies[classes].sum())
            return scores

        return scored_rows(score, table, len(frequencies))

    @property
    def _network(self) -> Joint:
        return Joint(inputs="table", epochs=self.epochs, seed=self.seed)

    def _names(self) -> tuple[str, ...]:
        return tuple(name for group in self.modalities for name in group)

    def _table(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        names = self._names()
        return Joined.of(names, arrays)(part) if names else features_of(part)

    def _joined(self, view: View) -> Arrays:
        names = self._names()
        return Joined.fit(names, view.train).arrays if names else {}

    def _train_network(self, view: View) -> Fitted:
        joined = self._joined(view)
        train = _only(view.train, self._table(joined, view.train))
        val = None if view.val is None else _only(view.val, self._table(joined, view.val))
        fitted = self._network.fit(replace(view, train=train, val=val))
        epochs = fitted.method.options["epochs"]
        chosen = replace(self, epochs=epochs)
        return Fitted(chosen, {**joined, **fitted.arrays}, chosen=choices(self, chosen, ON_VAL))

    def _boost(self, view: View) -> Fitted:
        """Boosts trees for the labels that train shows; the others share what one observation would have."""
        lightgbm: Any = require("lightgbm", "The method 'tabular'")
        joined, truth = self._joined(view), truth_of(view.train)
        classes = np.unique(truth)
        counts = np.bincount(truth, minlength=len(view.labels)) + UNSEEN
        arrays = {**joined, CLASSES: classes, "frequencies": counts / counts.sum()}
        if len(classes) < 2:  # nothing to tell apart
            one = replace(self, rounds=1)
            return Fitted(one, arrays, chosen=choices(self, one, USUAL))
        train = lightgbm.Dataset(self._table(joined, view.train), np.searchsorted(classes, truth))
        callbacks, valid = [], []
        if not self.rounds and view.val is not None:
            val = view.val.take(np.isin(truth_of(view.val), classes))
            if not len(val):
                raise MisuseError("tabular chooses rounds on val, and no label of train is there: pass --set rounds=N.")
            codes = np.searchsorted(classes, truth_of(val))
            valid = [lightgbm.Dataset(self._table(joined, val), codes, reference=train)]
            callbacks = [lightgbm.early_stopping(PATIENCE, verbose=False)]
        booster = lightgbm.train(
            self._parameters(len(classes)), train, self.rounds or MOST_ROUNDS, valid_sets=valid, callbacks=callbacks
        )
        rounds = self.rounds or max(int(booster.best_iteration), 1)
        text = booster.model_to_string(num_iteration=rounds)
        arrays[TREES] = np.frombuffer(text.encode(), dtype=np.uint8)
        chosen = replace(self, rounds=rounds)
        return Fitted(chosen, arrays, chosen=choices(self, chosen, ON_VAL))

    def _parameters(self, n_classes: int) -> dict[str, Any]:
        return {
            "objective": "multiclass",
            "num_class": n_classes,
            "metric": "multi_logloss",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.least,
            "lambda_l2": self.l2,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        }


@lru_cache(maxsize=8)
def _booster(text: bytes) -> Any:
    lightgbm: Any = require("lightgbm", "The method 'tabular'")
    return lightgbm.Booster(model_str=text.decode())


def _only(part: Part, table: NDArray[np.float32]) -> Part:
    """The part with these numbers as its only features."""
    return replace(part, features={"table": table}, missing={})
