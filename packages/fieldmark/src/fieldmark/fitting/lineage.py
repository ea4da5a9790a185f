"""What a fine-tuned backbone has learned from, and whether that reaches into what is now val or test.

Features of a network that was trained on photos of test make every score on test too high, whatever is fitted on them.
A model says on which benchmark, release and seed it was trained; where that release is the current one, its parts are
cut again and compared, observation by observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import FieldmarkError
from fieldmark.features.store import content_key
from fieldmark.methods.base import SEEN_PHOTOS
from fieldmark.models import Model
from fieldmark.releases import open_dataset
from fieldmark.runs.provenance import LEAKAGE
from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.views.open_benchmark import Opened, open_benchmark

ASKED = ("val", "test")
NAME = "scientific_name"


@dataclass(frozen=True)
class Overlap:
    """How much of a part a backbone has seen before.

    Args:
        items: The items of the part.
        learned: Those of observations that it learned from, labels included.
        chosen_by: Those of observations by which its epoch was chosen.
    """

    items: int
    learned: int
    chosen_by: int


@dataclass(frozen=True)
class Lineage:
    """Where the backbone behind a run comes from, in what run and model keep.

    Args:
        network: The name of the network.
        trained: Where it was fine-tuned: benchmark, version, parts, seed, digest of the release, simulated or not.
        seen: For val and test what it has seen of them; None where its release is not here to compare with.
        within_train: Whether it learned from nothing but what is train here; None as for `seen`.
        known_unknown: Species that count as unknown in val or test, and that it was taught to tell apart.
        external_data: What it brings in from outside the train part of the benchmark, one sentence each.
        remarks: What a reader of the numbers must know, one sentence each.
    """

    network: str
    trained: dict[str, Any]
    seen: dict[str, Overlap] | None
    within_train: bool | None
    known_unknown: list[str]
    external_data: list[str]
    remarks: list[str]


def lineage_of(backbone: Model, opened: Opened, data: str | Path) -> Lineage:
    """Looks up what a fine-tuned backbone has seen of a benchmark that it is used on.

    Args:
        backbone: The model whose network makes the features.
        opened: The current benchmark.
        data: The root of its release.
    """
    made = backbone.trained
    keys = backbone.fitted.arrays.get(SEEN_PHOTOS)
    parts = _parts_of(backbone, opened, data) if keys is None else None
    seen = within = None
    if keys is not None:
        learned = _observations_among(keys, opened)
        seen = {name: _overlap(opened.items[name], learned, set()) for name in ASKED if len(opened.items[name])}
    if parts is not None:
        learned = set[str]().union(*(parts[name] for name in made["parts"]))
        chosen_by = parts["val"] if _chose(backbone) else set[str]()
        seen = {name: _overlap(opened.items[name], learned, chosen_by) for name in ASKED if len(opened.items[name])}
        within = learned <= set(opened.items["train"]["observation_id"])
    known_unknown = _known_unknown(backbone, opened)
    network = backbone.fitted.method.network_name or backbone.name
    trained = {name: made[name] for name in ("benchmark", "version", "parts", "seed", "data_digest")}
    trained["simulated"] = backbone.simulated
    return Lineage(
        network=network,
        trained=trained,
        seen=seen,
        within_train=within,
        known_unknown=known_unknown,
        external_data=_external(backbone, network, seen, within),
        remarks=list(_remarks(network, trained, seen, known_unknown, chose=_chose(backbone))),
    )


def _observations_among(keys: NDArray[np.uint8], opened: Opened) -> set[str]:
    """The observations of val and test with a photo among those that an encoder has learned from, byte by byte."""
    learned = {row.tobytes() for row in keys}
    found: set[str] = set()
    for part in (opened.view.val, opened.view.test):
        if part is None or part.media is None:
            continue
        for media, observation in part.items.select("media_ids", "observation_id").iter_rows():
            if any(content_key(data) in learned for data in part.media.read.many(media)):
                found.add(observation)
    return found


def _parts_of(backbone: Model, opened: Opened, data: str | Path) -> dict[str, set[str]] | None:
    """The observations of each part that a backbone was trained with; None unless its release is the current one."""
    made, here = backbone.trained, opened.benchmark
    try:
        declared = BENCHMARKS[made["benchmark"]]
        if declared.dataset != here.dataset:
            return None
        same = declared.subset == here.subset
        dataset = opened.dataset if same else open_dataset(declared.dataset, data, declared.subset)
        if "split" in made:  # parts from a file that is not at hand
            return None
        if declared.version != made["version"] or dataset.digest != made["data_digest"]:
            return None
        parts = open_benchmark(declared, dataset, seed=made["seed"]).items
    except FieldmarkError:  # a benchmark of a later version, or a subset that was not downloaded
        return None
    return {name: set(table["observation_id"]) for name, table in parts.items()}


def _overlap(items: pl.DataFrame, learned: set[str], chosen_by: set[str]) -> Overlap:
    observations = items["observation_id"].to_list()
    return Overlap(len(observations), *(sum(one in seen for one in observations) for seen in (learned, chosen_by)))


def _chose(backbone: Model) -> bool:
    """Whether the epoch was chosen on val; otherwise the last one was taken, whatever val said."""
    return backbone.fitted.method.chooses_on_val


def _known_unknown(backbone: Model, opened: Opened) -> list[str]:
    """Species that are unknown here by name, and labels of the backbone."""
    taught = set(backbone.taxa[NAME].drop_nulls()) if NAME in backbone.taxa.columns else set()
    unknown: set[str] = set()
    for name in ASKED:
        items = opened.items[name]
        if opened.benchmark.task.unknown and NAME in items.columns:
            unknown |= set(items.filter(pl.col("label") == UNKNOWN_NAME)[NAME].drop_nulls())
    return sorted(taught & unknown)


def _external(
    backbone: Model, network: str, seen: Mapping[str, Overlap] | None, within_train: bool | None
) -> list[str]:
    made = backbone.trained
    before = made.get("external_data")
    if before is None:
        before = [f"whatever {network} was trained on before it was fine-tuned, which its model does not state"]
    if within_train:
        return list(before)
    shared = _shares(seen, "learned") if seen else ""
    labels = f", the labels of {shared} among it" if shared else ""
    digest = f" (data digest {made['data_digest'][:16]})"
    return [*before, f"{_where(made)}{digest}, by the backbone fine-tuned on it{labels}"]


def _remarks(
    network: str,
    trained: Mapping[str, Any],
    seen: Mapping[str, Overlap] | None,
    known_unknown: list[str],
    *,
    chose: bool,
) -> Iterator[str]:
    simulated = ", on simulated data" if trained["simulated"] else ""
    chosen = "; its epoch was chosen on val there" if chose else ""
    yield f"The backbone is {network}, fine-tuned on {_where(trained)}{simulated}{chosen}."
    if seen is None:
        yield "Whether it has seen items of val or test could not be checked: its release is not available."
    elif shared := _shares(seen, "learned"):
        yield f"{LEAKAGE}the backbone has learned from {shared}, labels included: scores on them are too high."
    else:
        yield f"It has learned from no observation of {' or '.join(seen)}."
    if seen and "test" in seen and seen["test"].chosen_by:
        yield f"{LEAKAGE}the epoch of the backbone was chosen on {_shares({'test': seen['test']}, 'chosen_by')}."
    if known_unknown:
        some = ", ".join(known_unknown[:3]) + (f" and {len(known_unknown) - 3} more" if len(known_unknown) > 3 else "")
        yield f"{LEAKAGE}the backbone was taught species that count as unknown here ({some}): they are not to it."


def _where(trained: Mapping[str, Any]) -> str:
    parts, how = " and ".join(trained["parts"]), f"version {trained['version']}, seed {trained['seed']}"
    return f"{parts} of {trained['benchmark']} ({how})"


def _shares(seen: Mapping[str, Overlap], what: str) -> str:
    """Of which parts how much, in words; empty for nothing.

    >>> _shares({"val": Overlap(40, 12, 0), "test": Overlap(30, 0, 0)}, "learned")
    '12 of 40 items of val'
    """
    counts = {name: getattr(one, what) for name, one in seen.items()}
    return " and ".join(f"{count} of {seen[name].items} items of {name}" for name, count in counts.items() if count)
