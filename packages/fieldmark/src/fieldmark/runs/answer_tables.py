"""Answers as a plain table with their probabilities, for people and programs that want more than a run file holds.

```
id,rank,label,probability
photos/a.jpg,1,Amanita muscaria,0.914
photos/a.jpg,2,Amanita pantherina,0.052
```
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import NOTHING, LabelScores
from fieldmark.storage.files import appearing_file

ENDINGS = (".csv", ".parquet")


def answer_table(
    predictions: LabelScores, at_most: int | None = None, poisonous: Mapping[str, bool] | None = None
) -> pl.DataFrame:
    """One row for each item and label, best first.

    Args:
        predictions: The answers. Scores that only rank stand in a column `score` in place of `probability`.
        at_most: How many labels of each item; all that were scored if not given.
        poisonous: Whether labels are poisonous or venomous, where that is known: a further column then.
    """
    width = len(predictions.labels) + 1 if predictions.dense else int(predictions.lists.lengths.max(initial=0))
    best = predictions.top(min(at_most or width, width))
    row, place = np.nonzero(best != NOTHING)
    codes = best[row, place]
    ranked_only = predictions.scale == "score" and not predictions.dense
    table = pl.DataFrame(
        {
            "id": [predictions.items[number] for number in row.tolist()],
            "rank": (place + 1).astype(np.int32),
            "label": predictions.labels.decode(codes),
            "score" if ranked_only else "probability": _values(predictions, row, codes),
        }
    )
    if not poisonous:
        return table
    return table.with_columns(poisonous=pl.Series([poisonous.get(one) for one in table["label"]], dtype=pl.Boolean))


def write_answer_table(
    path: Path, predictions: LabelScores, at_most: int | None = None, poisonous: Mapping[str, bool] | None = None
) -> None:
    """Writes the table; the ending of the file decides whether as CSV or as Parquet.

    Raises:
        MisuseError: For another ending.
    """
    if path.suffix.lower() not in ENDINGS:
        raise MisuseError(
            f"{path}: found a table ending in {path.suffix or 'nothing'}, expected {' or '.join(ENDINGS)}."
        )
    table = answer_table(predictions, at_most, poisonous)
    with appearing_file(path) as partial:
        table.write_parquet(partial) if path.suffix.lower() == ".parquet" else table.write_csv(partial)


def _values(predictions: LabelScores, row: np.ndarray, codes: np.ndarray) -> pl.Series:
    """The probability of each pair of item and label; none for unknown where a rule answered it without stating one."""
    if not predictions.dense:
        by_code = [predictions.scores_by_code(number) for number in range(len(predictions.items))]
        return pl.Series([by_code[n].get(code) for n, code in zip(row.tolist(), codes.tolist(), strict=True)])
    # Where several labels may hold at once, each score is a probability of its own already.
    stated = predictions.scores if predictions.scale == "score" else predictions.probabilities()
    padded = np.column_stack([stated, np.full(len(stated), np.nan, dtype=stated.dtype)])
    column = np.where(codes >= 0, codes, len(predictions.labels))
    return pl.Series(padded[row, column].astype(np.float64), nan_to_null=True)
