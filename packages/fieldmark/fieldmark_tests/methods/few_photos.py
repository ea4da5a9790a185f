"""Views with few photos of six species in two genera."""

from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import part_of

LABELS = Labels(tuple("abcdef"))


GENERA = {"label": list("abcdef"), "genus": ["X", "X", "X", "Y", "Y", None], "family": ["F"] * 6}


def part(features: np.ndarray, truth: list[int] | np.ndarray | None, name: str = "i") -> Part:
    ids = [f"{name}{row}" for row in range(len(features))]
    return part_of(ids, None if truth is None else np.asarray(truth), np.asarray(features, dtype=np.float32))


def view_of(train: Part, val: Part | None = None, taxa: dict | None = None) -> View:
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame(taxa or {"label": LABELS.names}))
    return View(LABELS, taxonomy, train, val, None, None)


def answers(method, shown: View, asked: Part) -> np.ndarray:
    return method.fit(shown).predict(asked, LABELS).top(1)[:, 0]
