"""The answers of a run as identifications of Darwin Core: who named what, how sure, and that nobody verified it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import Dataset
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import Run
from fieldmark.tables.labels import UNKNOWN

DWC: Final = "http://rs.tdwg.org/dwc/terms/"
# Columns of the table, the id of the observation aside, by their terms.
IDENTIFICATION_TERMS: Final = {
    name: f"{DWC}{name}"
    for name in (
        *("identificationID", "identifiedBy", "dateIdentified", "scientificName", "taxonID"),
        *("identificationVerificationStatus", "identificationRemarks"),
    )
}
UNVERIFIED: Final = "unverified"
MACHINE: Final = "Machine identification, not verified by a person."


@dataclass(frozen=True)
class Identifications:
    """Answers as rows.

    Args:
        table: `id` (the observation) and the columns of `IDENTIFICATION_TERMS`.
        where: The run, for messages.
    """

    table: pl.DataFrame
    where: str

    def refuse_others(self, dataset: Dataset) -> None:
        """Refuses answers about observations that a dataset does not have."""
        others = self.table.filter(~pl.col("id").is_in(dataset.observations["observation_id"].implode()))
        if len(others):
            missing = others["id"][0]
            raise MisuseError(f"{self.where} answers {missing!r}, which {dataset.release.root} does not have.")


def benchmark_of_run(folder: Path) -> Benchmark:
    """The benchmark that a run answers."""
    return BENCHMARKS[Run.read(folder).benchmark]


def identifications_of(folder: Path, dataset: Dataset, *, at_most: int = 1) -> Identifications:
    """The answers of a run on test, or on val where it has no test.

    Args:
        folder: The folder of the run.
        dataset: The release that it was made on, in the subset of its benchmark.
        at_most: How many names for each item, best first.

    Raises:
        InputError: When the run was made on other data.
        MisuseError: When its answers are no labels.
    """
    run = Run.read(folder)
    benchmark = BENCHMARKS[run.benchmark]
    if run.data_digest != dataset.digest:
        found, expected = f"a run on data with the digest {run.data_digest}", f"{dataset.digest}, that of the release"
        raise InputError(folder, found=found, expected=expected, hint="Export the release that the run was made on.")
    part = "test" if (folder / "predictions" / "test.parquet").exists() else "val"
    predictions = read_predictions(folder / "predictions" / f"{part}.parquet")
    if not isinstance(predictions, LabelScores):
        raise MisuseError(f"The answers of {folder} are no labels, and so no identifications.")
    rows = benchmark.task.items.rows(dataset)
    items = benchmark.task.items.lay_out(dataset, rows).table.select("item_id", "observation_id")
    answers = _best(predictions, at_most).join(items, on="item_id", how="left", maintain_order="left")
    return Identifications(_rows(answers, run, dataset, part), str(folder))


def _best(predictions: LabelScores, at_most: int) -> pl.DataFrame:
    """One row per answer: `item_id`, `place` (from 1), `label` (null for unknown), `probability` where there is one."""
    ranked = predictions.top(min(at_most, len(predictions.labels) + predictions.names_unknown))
    item, place = np.nonzero(ranked >= UNKNOWN)
    codes = ranked[item, place]
    names = [predictions.labels.names[code] if code != UNKNOWN else None for code in codes]
    return pl.DataFrame(
        {
            "item_id": [predictions.items[row] for row in item.tolist()],
            "place": place + 1,
            "label": pl.Series(names, dtype=pl.String),
            "probability": pl.Series(_probability(predictions, item, codes), dtype=pl.Float64, nan_to_null=True),
        }
    )


def _probability(predictions: LabelScores, item: NDArray[np.int64], codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """The probability of each answer; not a number where the scores are none."""
    if not predictions.dense or predictions.scale == "score":
        return np.full(len(codes), np.nan)
    probabilities = predictions.probabilities()
    has_one = (codes != UNKNOWN) | (predictions.unknown_label is not None)
    # The column of unknown, where there is one, is the last.
    return np.where(has_one, probabilities[item, codes], np.nan)


def _rows(answers: pl.DataFrame, run: Run, dataset: Dataset, part: str) -> pl.DataFrame:
    names = [name for name in ("scientific_name", "name", "species") if name in dataset.taxa.columns]
    taxa = dataset.taxa.select("label", name=pl.coalesce(*names, "label"))
    rows = answers.join(taxa, on="label", how="left", maintain_order="left")
    backbone = (run.features or {}).get("backbone")
    model = f"Fieldmark {run.code_version}, method {run.method}" + (f" on {backbone}" if backbone else "")
    sure = pl.concat_str(pl.lit(" Probability "), pl.col("probability").round(4).cast(pl.String), pl.lit("."))
    unknown = pl.when(pl.col("label").is_null()).then(pl.lit(" None of the labels the model knows."))
    answered = pl.concat_str(
        pl.lit(f"{MACHINE}{' Simulated data.' if run.simulated else ''}"),
        sure.fill_null(""),
        unknown.otherwise(pl.lit("")),
        pl.lit(" Answer "),
        pl.col("place").cast(pl.String),
        pl.lit(f" on {part} of {run.benchmark} (version {run.version})"),
        pl.when(pl.col("item_id") != pl.col("observation_id"))
        .then(pl.concat_str(pl.lit(", item "), pl.col("item_id")))
        .otherwise(pl.lit("")),
        pl.lit("."),
    )
    return rows.select(
        pl.col("observation_id").alias("id"),
        pl.concat_str("item_id", pl.lit(f" {run.created} "), pl.col("place").cast(pl.String)).alias("identificationID"),
        pl.lit(model).alias("identifiedBy"),
        pl.lit(run.created[:10]).alias("dateIdentified"),
        pl.col("name").alias("scientificName"),
        pl.col("label").alias("taxonID"),
        pl.lit(UNVERIFIED).alias("identificationVerificationStatus"),
        answered.alias("identificationRemarks"),
    )
