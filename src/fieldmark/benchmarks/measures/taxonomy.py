"""How far an answer lies from the truth in the tree of taxa."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.reading import Arguments, first_answers
from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.metrics import taxonomy_distance
from fieldmark.questions.one_label import LabelEvaluation

TREE = ("kingdom", "phylum", "class", "order", "family", "genus", "species")
FARTHEST = 12


def _named_in_the_tree(evaluation: LabelEvaluation) -> Arguments:
    answers = first_answers(evaluation)
    paths = _paths(evaluation.labels, evaluation.classes)
    return {"truth": answers["truth"], "answer": answers["predicted"], "paths": paths}


def _paths(labels: Labels, classes: pl.DataFrame) -> NDArray[np.int32]:
    """One row per label: the codes of its taxa from the kingdom down, -1 below its own rank.

    Raises:
        InputError: When the classes do not name the ranks.
    """
    missing = [rank for rank in TREE if rank not in classes.columns]
    if missing:
        found = f"no column {missing[0]!r}"
        raise InputError("the classes", found=found, expected=f"the columns {', '.join(TREE)}")
    rows = pl.DataFrame({"label": labels.names}).join(classes, on="label", how="left", maintain_order="left")
    paths = np.full((len(rows), len(TREE)), -1, dtype=np.int32)
    for place, rank in enumerate(TREE):
        names = rows[rank].cast(pl.String).str.strip_chars()
        named = names.replace("", None)
        paths[:, place] = Labels.of(named.drop_nulls()).encode(named)
    # Nothing counts below the first rank that is left blank.
    paths[np.cumsum(paths < 0, axis=1) > 0] = -1
    return paths


def tree_distance() -> Metric:
    """The mean number of edges between the true and the answered name in a tree of seven ranks."""
    return Metric(
        name="tree_distance",
        title="Distance in the taxonomy",
        unit="points",
        value=taxonomy_distance.mean_tree_distance,
        without_each_unit=taxonomy_distance.mean_tree_distance_without_each_unit,
        reads=_named_in_the_tree,
        options={"unnamed": FARTHEST},
        first_answer=True,
        about="mean number of edges between the true and the answered name in the tree from kingdom to species; no "
        f"name of the tree counts {FARTHEST}",
        higher_is_better=False,
        bounds=(0.0, 14.0),
    )
