"""What the country alone tells about snakes: real tables of SnakeCLEF 2021, no photos.

Three ways to learn and to test, rows without a country left out: `microtrain` to `microval`; the iNaturalist rows of
both to their HerpMapper rows; the larger table to `microval`. The 318 photos that the larger table shares with the
others are left out everywhere. Labels are all species that either side has; those that nobody taught keep a floor. The
USA, where most photos come from, and the rest of the world are also scored apart. The unit is the photo. Every prior is
compared with the frequencies of train ("no country"). Presence masks multiply those frequencies: what does not live in
the country is 0.01 times as likely. The strength of smoothing comes from five folds of train, nothing from test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.metrics.classification import macro_f1, macro_f1_without_each_unit
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.releases.snakeclef.metadata import binomial_of
from fieldmark.runs.label_scores import log_softmax
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import pseudo_values
from fieldmark.steps.priors.contexts import levels_of
from fieldmark.steps.priors.counts import Counts
from fieldmark.steps.priors.presence_tables import PresenceTable
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part
from studies.evidence.results import real_data

PLAIN = "no country"
TABLE = "species_country_matrix.csv.xz"
USA = "US"
LARGER = "subset_poisonous_boxes"


def run() -> dict[str, Any] | None:
    """Log loss, top-5 and macro-F1 of each prior, with paired differences from no country."""
    data = real_data("snakeclef_2021_tables")
    if data is None:
        return None
    rows = located_rows(data)
    both = pl.col("parts").list.contains("train") | pl.col("parts").list.contains("val")
    kept = rows.filter(pl.col("parts").list.len() == 1)
    sets = {
        "Microtrain to microval": (kept.filter(pl.col("part") == "train"), kept.filter(pl.col("part") == "val")),
        "iNaturalist to HerpMapper": (
            kept.filter(both & (pl.col("source") == "inaturalist")),
            kept.filter(both & (pl.col("source") == "herpmapper")),
        ),
        "The larger table to microval": (
            kept.filter(pl.col("part") == LARGER), kept.filter(pl.col("part") == "val"),
        ),
    }  # fmt: skip
    made = {}
    for title, (train, test) in sets.items():
        made[title] = study(train, test, data / TABLE)
        print(title, made[title]["all"]["log_loss"], flush=True)
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    return {"simulated": False, "about": about, "shared": rows.height - kept.height, "sets": made}


def located_rows(data: Path) -> pl.DataFrame:
    """`label, country, source, part, parts`, one row per photo with a country."""
    dataset = open_dataset("snakeclef-2021", data)
    rows = dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")
    located = rows.filter(pl.col("country").is_not_null())
    return located.with_columns(pl.col("parts").list.first().alias("part"))


def study(train: pl.DataFrame, test: pl.DataFrame, table: Path) -> dict[str, Any]:
    """Every prior on one pair of tables: all test photos, those of the USA, and the rest."""
    labels = Labels.of([*train["label"], *test["label"]])
    names = [binomial_of(name) for name in labels.names]
    taxa = pl.DataFrame({"label": labels.names, "genus": [name.split(" ")[0] for name in names], "species": names})
    taxonomy, ids = Taxonomy.of(labels, taxa), pl.int_range(pl.len()).cast(pl.String)
    part = Part(train.with_columns(item_id=ids, observation_id=ids), LabelTargets(labels.encode(train["label"])))
    counts = {
        "smoothed counts": Counts("country"),
        "smoothed counts, back_off=world": Counts("country", back_off="world"),
        "smoothed counts, borrow=genus": Counts("country", borrow="genus"),
    }
    masks = {
        "presence mask": PresenceTable(file=str(table)),
        "presence mask, back_off=world": PresenceTable(file=str(table), back_off="world"),
    }
    by_counts = {name: one.fit(part, taxonomy, several=False) for name, one in counts.items()}
    by_mask = {name: one.fit(part, taxonomy, several=False) for name, one in masks.items()}
    fitted = by_counts | by_mask
    country = levels_of("country", test)[-1].to_numpy()
    _, first, row = np.unique(country, return_index=True, return_inverse=True)
    asked = test[first.tolist()]
    prior = fitted["smoothed counts"].log_prior
    logs = {PLAIN: np.tile(prior, (len(asked), 1))}
    logs |= {name: log_softmax(prior + source.log_ratio(asked)) for name, source in fitted.items()}
    both = fitted["smoothed counts"].log_ratio(asked) + fitted["presence mask"].log_ratio(asked)
    logs["counts and mask"] = log_softmax(prior + both)
    truth = labels.encode(test["label"])
    taught = np.isin(truth, labels.encode(train["label"]))
    parts = {"all": np.ones(len(test), dtype=np.bool_), "USA": country == USA, "the rest": country != USA}
    return {
        "train": len(train),
        "labels": len(labels),
        "listed": by_mask["presence mask"].listed,
        "strength": {name: one.lent for name, one in by_counts.items()},
        "test_of_species_not_taught": int((~taught).sum()),
        **{name: {"test": int(own.sum()), **_measured(logs, row[own], truth[own])} for name, own in parts.items()},
    }


def _measured(logs: dict[str, NDArray[np.float64]], row: NDArray[np.int64], truth: NDArray[np.int32]) -> dict[str, Any]:
    """The metrics of every prior on some photos, and their differences from no country."""
    values: dict[str, dict[str, float]] = {"log_loss": {}, "top_5": {}, "macro_f1": {}}
    pseudo: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in values}
    unit = np.arange(len(truth), dtype=np.int32)
    for name, table in logs.items():
        loss = -table[row, truth]
        rank = np.array([(table[r] > table[r, c]).sum() for r, c in zip(row, truth, strict=True)])
        for metric, each in (("log_loss", loss), ("top_5", (rank < 5).astype(np.float64))):
            values[metric][name], pseudo[metric][name] = float(each.mean()), each
        answer, options = table.argmax(axis=1)[row].astype(np.int32), {"n_classes": table.shape[1]}
        value = macro_f1(truth, answer, over="present", **options)
        without = macro_f1_without_each_unit(truth, answer, unit, over="present", **options)
        values["macro_f1"][name], pseudo["macro_f1"][name] = value, pseudo_values(value, without)
    return {metric: _against_plain(values[metric], pseudo[metric], metric) for metric in values}


def _against_plain(values: dict[str, float], pseudo: dict[str, NDArray[np.float64]], metric: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in values.items():
        said[name] = {"value": round(value, 4)}
        if name != PLAIN:
            pair = np.stack([pseudo[name], pseudo[PLAIN]])
            outcome = compare(np.array([value, values[PLAIN]]), pair, higher_is_better=metric != "log_loss")
            apart = outcome.differences[0]
            said[name]["less_no_country"] = [
                None if number is None else round(float(number), 4)
                for number in (apart.value, apart.interval.low, apart.interval.high)
            ]
    return said
