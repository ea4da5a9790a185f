"""How far an answer lies from the truth in the tree of taxa."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments, first_answers
from fieldmark.metrics import taxonomy_distance
from fieldmark.questions.answer import lacking
from fieldmark.questions.one_label import LabelEvaluation
from fieldmark.tables.labels import Labels

__all__ = ["tree_distance"]

TREE = ("kingdom", "phylum", "class", "order", "family", "genus", "species")
FARTHEST = 12
# What a blank rank above others means: there is none, and the path goes on; or that nothing counts below it.
Blanks = Literal["absent", "end"]
# So many names are shown in a sentence about all of them.
SHOWN = 3


def _named_in_the_tree(evaluation: LabelEvaluation, blanks: Blanks) -> Arguments:
    answers = first_answers(evaluation)
    paths = _paths(evaluation.labels, evaluation.classes, blanks)
    return {"truth": answers["truth"], "answer": answers["predicted"], "paths": paths}


def _paths(labels: Labels, classes: pl.DataFrame, blanks: Blanks) -> NDArray[np.int32]:
    """One row per label: the codes of its taxa from the kingdom down, -1 behind its own rank.

    Raises:
        InputError: When the classes do not name the ranks.
    """
    missing = [rank for rank in TREE if rank not in classes.columns]
    if missing:
        raise lacking(classes, missing[0], f"the columns {', '.join(TREE)}")
    rows = pl.DataFrame({"label": labels.names}).join(classes, on="label", how="left", maintain_order="left")
    paths = np.full((len(rows), len(TREE)), -1, dtype=np.int32)
    for place, rank in enumerate(TREE):
        names = rows[rank].cast(pl.String).str.strip_chars()
        named = names.replace("", None)
        codes = Labels.of(named.drop_nulls()).encode(named)
        paths[:, place] = np.where(codes < 0, -1, codes * len(TREE) + place)  # one name at two ranks is two taxa
    if blanks == "end":
        paths[np.cumsum(paths < 0, axis=1) > 0] = -1
        return paths
    return np.take_along_axis(paths, np.argsort(paths < 0, axis=1, kind="stable"), axis=1)


def _places_in_the_tree(evaluation: LabelEvaluation) -> list[str]:
    """Which names stand outside the tree, and which cannot be told apart in it."""
    paths = _paths(evaluation.labels, evaluation.classes, "absent")
    names, inside = evaluation.labels.names, np.asarray((paths >= 0).any(axis=1))
    said = []
    if not inside.all():
        outside = [name for name, there in zip(names, inside, strict=True) if not there]
        said.append(f"{_listed(outside)} without any rank: {FARTHEST} from every other name, 0 from itself")
    _, place, count = np.unique(paths, axis=0, return_inverse=True, return_counts=True)
    shared = np.asarray(inside & (count[place.ravel()] > 1))
    if shared.any():
        same = [name for name, one in zip(names, shared, strict=True) if one]
        said.append(f"{_listed(same)} with the ranks of another name: 0 from it, however they are called")
    return said


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"{len(names):,} name{'s' if len(names) > 1 else ''} ({shown})"


def tree_distance(*, blanks: Blanks = "absent") -> Metric:
    """The mean number of edges between the true and the answered name in a tree of seven ranks.

    Args:
        blanks: What a blank rank above others means. With "end" a name without any rank stands at the root.
    """
    absent = blanks == "absent"
    rest = "; a blank rank is left out of a path; a label without any rank counts as much" if absent else ""
    return Metric(
        name="tree_distance",
        title="Distance in the taxonomy",
        unit="points",
        value=taxonomy_distance.mean_tree_distance,
        without_each_unit=taxonomy_distance.mean_tree_distance_without_each_unit,
        reads=partial(_named_in_the_tree, blanks=blanks),
        options={"unnamed": FARTHEST, "pathless": "outside" if absent else "root"},
        remarks=_places_in_the_tree if absent else None,
        first_answer=True,
        about="mean number of edges between the true and the answered name in the tree from kingdom to species; no "
        f"name of the tree counts {FARTHEST}{rest}",
        higher_is_better=False,
        bounds=(0.0, 14.0),
    )
