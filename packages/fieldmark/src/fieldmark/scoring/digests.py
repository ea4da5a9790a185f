"""What scores rest on besides the answers, as short digests: two scorecards with the same ones asked the same.

    truth        which items were asked about, their true labels or masks, and what is independent among them
    classes      the list of classes; none where a benchmark has no such list (clusters, masks)
    facts        what was known of classes and items, column by column (poisonous, country)
    conventions  by which conventions each metric was computed

The order of rows never matters. A digest of a hidden truth lets a guess be held against it: the platform salts it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import polars as pl

from fieldmark.benchmarks.declarations import Metric
from fieldmark.questions.answer import WHERE, Evaluation
from fieldmark.questions.truth import Truth
from fieldmark.runs.masks import Masks
from fieldmark.tables.given_tables import LINE
from fieldmark.tables.text_columns import column_of

Digests = dict[str, Any]
DIGEST_BYTES = 16


def digests_of(metrics: Iterable[Metric], evaluation: Evaluation, classes: pl.DataFrame) -> Digests:
    """The digests of what was asked.

    Args:
        metrics: What is measured.
        evaluation: The answers beside the truth; the answers do not count.
        classes: What is known about the labels, one row each.
    """
    truth, names = evaluation.truth, evaluation.class_names
    listed = {"classes": _of_frame(pl.DataFrame({"label": column_of(names)}))} if names else {}
    return {
        "truth": truth_digest(truth),
        **listed,
        "facts": _facts(truth, classes),
        "conventions": {metric.name: _of_text(_convention(metric)) for metric in metrics},
    }


def truth_digest(truth: Truth) -> str:
    """The digest of items, units, true labels and masks."""
    parts = [_of_frame(pl.DataFrame({"item_id": column_of(truth.items), "unit": column_of(truth.units)}))]
    for name, pairs in (("true", truth.rows), ("asked", truth.asked)):
        if pairs is not None and pairs.width:
            parts += [name, _of_frame(pairs.select("item_id", "label"))]
    if truth.masks is not None:
        parts += ["masks", _of_masks(truth.masks)]
    return _of_text(" ".join(parts))


def salted(digests: Digests, salt: str) -> Digests:
    """The same digests, of which those of the truth can be held against nothing without the salt."""
    facts = {name: _of_text(f"{salt} {value}") for name, value in digests.get("facts", {}).items()}
    return digests | {"truth": _of_text(f"{salt} {digests['truth']}"), "facts": facts} if digests else {}


def _facts(truth: Truth, classes: pl.DataFrame) -> dict[str, str]:
    """A digest for each column that says something about classes or items."""
    facts: dict[str, str] = {}
    if "label" in classes.columns:
        for column in sorted({*classes.columns} - {"label", LINE, WHERE}):
            if classes[column].dtype.is_nested() or classes[column].is_null().all():
                continue
            facts[f"{column} of classes"] = _of_frame(classes.select("label", column).drop_nulls())
    for column in sorted(truth.groups.columns):
        values = truth.groups[column]
        plain = values.list.sort().cast(pl.List(pl.String)).list.join("|") if values.dtype.is_nested() else values
        facts[f"{column} of items"] = _of_frame(pl.DataFrame({"item_id": column_of(truth.items), "value": plain}))
    return facts


def _convention(metric: Metric) -> str:
    return json.dumps([metric.name, metric.about, dict(metric.options)], sort_keys=True, default=str)


def _of_frame(frame: pl.DataFrame) -> str:
    """The digest of the rows of a table as text, in whatever order they stand."""
    texts = frame.cast(pl.String)
    texts = texts.sort(texts.columns, nulls_last=True)
    digest = _new()
    for column in texts.get_columns():
        # Lengths and text: no other column of names has both.
        digest.update(column.str.len_bytes().cast(pl.Int64).fill_null(-1).to_numpy().tobytes())
        digest.update("".join(column.drop_nulls().str.join("")).encode())
    return digest.hexdigest()


def _of_masks(masks: Masks) -> str:
    digest = _new()
    for item in sorted(masks.items):
        rows = masks.rows_of(item)
        shapes = [(row.label, int(row.width), int(row.height), len(row.runs)) for row in rows]
        digest.update(json.dumps([item, shapes]).encode())
        for row in rows:
            digest.update(row.runs.astype("<i8").tobytes())
    return digest.hexdigest()


def _of_text(text: str) -> str:
    digest = _new()
    digest.update(text.encode())
    return digest.hexdigest()


def _new() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=DIGEST_BYTES)
