"""Anything with scikit-learn's `fit` and `predict_proba`, on the features of the media."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.fingerprints import code_of
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, features_of, truth_of
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.sandbox.trusted_code import code_is_trusted
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

# Estimators whose code is all of these know nothing before they are fitted.
FROM_SCRATCH = frozenset({"builtins", "collections", "copyreg", "functools", "joblib", "numpy", "scipy", "sklearn"})
# What stands for a probability of zero, and for labels that were not there to learn.
LOWEST = np.log(np.finfo(np.float64).tiny)
ESTIMATOR_FILE = "estimator.pickle"


def is_estimator(given: object) -> bool:
    """Whether something can be fitted and asked as scikit-learn's classifiers are."""
    return all(callable(getattr(given, name, None)) for name in ("fit", "predict_proba"))


def estimator_name(estimator: Any) -> str:
    """What an estimator is called: after its class, or after the steps of a pipeline."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        return "+".join(type(step).__name__ for _, step in steps)
    return type(estimator).__name__


@dataclass(frozen=True)
class Estimator(OnFeatures):
    """An estimator of one's own, fitted to one label per item; labels come as whole numbers from 0 on.

    Args:
        estimator: What is fitted, anew each time: the object itself is left as it is.
        learned: The same fitted; found by `fit`.
    """

    estimator: Any
    learned: Any = None

    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    scale: ClassVar[Scale] = "log_probability"

    @property
    def options(self) -> dict[str, Any]:
        """Its class and its parameters in words: the object itself is no plain data."""
        get_params = getattr(self.estimator, "get_params", dict)
        plain = {name: value for name, value in get_params().items() if isinstance(value, (bool, int, float, str))}
        kind = type(self.estimator)
        return {"estimator": f"{kind.__module__}.{kind.__qualname__}", "parameters": plain}

    @property
    def shuffled(self) -> bool:
        return True

    @property
    def origin_known(self) -> bool:
        """Whether all of its code is known to learn from nothing but what it is fitted to."""
        code = code_of(self.estimator)
        return code is not None and code <= FROM_SCRATCH

    def copied(self, *, anew: bool) -> Estimator:
        return replace(self, learned=deepcopy(self.learned))

    def fit(self, view: View) -> Fitted:
        codes, numbers = np.unique(truth_of(view.train), return_inverse=True)
        learned = deepcopy(self.estimator)
        learned.fit(np.asarray(features_of(view.train)), numbers)
        return Fitted(replace(self, learned=learned), {"codes": codes, "labels": np.array(len(view.labels))})

    def scores(self, arrays: Arrays, part: Part) -> NDArray[Any]:
        codes, features = arrays["codes"], np.asarray(features_of(part))
        chances = np.asarray(self.learned.predict_proba(features), dtype=np.float64)
        if chances.shape != (len(part), len(codes)) or not (np.isfinite(chances).all() and (chances >= 0).all()):
            raise MisuseError(
                f"predict_proba of {estimator_name(self.estimator)} returned {chances.shape} for {len(part)} items of "
                f"{len(codes)} labels; expected a probability for each, of at least 0."
            )
        scores = np.full((len(part), int(arrays["labels"])), LOWEST)
        with np.errstate(divide="ignore"):
            scores[:, codes] = np.maximum(np.log(chances), LOWEST)
        return scores

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> LabelScores:
        """Answers in the double precision of the estimator, so that its near ties stay what they are."""
        return LabelScores(part.item_ids, labels, self.scores(arrays, part), self.scale)

    def save(self, folder: Path) -> str | None:
        """Writes the fitted estimator into the folder of a model; None where it cannot be written, else the file."""
        try:
            data = pickle.dumps((self.estimator, self.learned))
        except Exception:  # objects refuse in many ways
            return None
        (folder / ESTIMATOR_FILE).write_bytes(data)
        return ESTIMATOR_FILE

    @classmethod
    def load(cls, folder: Path) -> Estimator:
        """Reads what `save` wrote.

        Raises:
            InputError: Where nobody has said that its code is trusted, or the file cannot be read.
        """
        path = folder / ESTIMATOR_FILE
        if not code_is_trusted():
            raise InputError(
                path,
                found="a pickled estimator, which can run any code when it is read",
                expected="a word from you",
                hint="If you trust who made it: load_model(path, trust_code=True), or --trust-code. Or pass the fitted "
                "estimator itself: load_model(path, method=estimator).",
            )
        try:
            return cls(*pickle.loads(path.read_bytes()))
        except Exception as error:
            raise InputError(path, found=f"something else ({error})", expected="a pickled estimator") from error
