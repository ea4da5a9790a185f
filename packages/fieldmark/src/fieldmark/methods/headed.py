"""Methods that put something around a classifier of features: before it, or after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.base import Arrays, Fitted, Method, OnFeatures
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import configure, parse_pairs
from fieldmark.views.parts import Part, View


@dataclass(frozen=True)
class Headed(OnFeatures):
    """Answers as its classifier does.

    Args:
        classifier: The method that names labels; any that needs features and answers item by item.
        classifier_settings: Its settings, as `key=value,key=value`.
    """

    classifier: str = "linear"
    classifier_settings: str = ""

    second_order: ClassVar[bool] = True

    def check_settings(self) -> None:
        self.head()

    @property
    def scale(self) -> Scale:
        return self.head().scale

    def head(self) -> Method:
        """The classifier with its settings.

        Raises:
            MisuseError: For one that cannot be put here, or settings that it does not have.
        """
        cls = METHODS[self.classifier]
        if not issubclass(cls, OnFeatures) or cls.sees != "item" or issubclass(cls, Headed) or cls.wants_unknown:
            raise MisuseError(f"{self.classifier!r} is no classifier of features that answers item by item.")
        pairs = [pair for pair in self.classifier_settings.split(",") if pair]
        head: Method = configure(parse_pairs(pairs), cls)[0]
        return head

    def fit(self, view: View) -> Fitted:
        head = self.head().fit(view)
        return Fitted(self._with_choices(head.method), head.arrays, head.remarks, head.chosen)

    def _with_choices(self, head: Method) -> Self:
        settings = ",".join(f"{key}={value}" for key, value in head.options.items() if value != "")
        return replace(self, classifier_settings=settings)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return self.head().scores(arrays, part)
