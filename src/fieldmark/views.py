"""What a method may see of a benchmark, and the truth that is kept from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import COLUMNS_OF_INPUT, Benchmark, Task
from fieldmark.datasets import DATASETS, Dataset, open_dataset
from fieldmark.datasets.base import MediaKind
from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.items import Laid, Marks, lay_out
from fieldmark.labels import UNKNOWN_NAME, Labels
from fieldmark.splits import Cut, cut
from fieldmark.tables import TRUTH
from fieldmark.taxonomy import Taxonomy

SEEN_IN_VAL, NEW_IN_TEST = "also in val", "not in val"
PARTS = ("train", "val", "test")
# Columns of an item that describe the question itself and never the answer.
ALWAYS_VISIBLE = ("item_id", "observation_id", "media_ids", "start_s", "end_s", "domain")


@dataclass(frozen=True)
class Part:
    """Items with the inputs a method may read.

    Args:
        items: One row per item, only the allowed columns.
        truth: The label code of each item, or None where a method may not see it. Where items have any number of
            labels, the one that is heard longest, -1 for none.
        features: One row per item, for methods that need features.
        read_medium: The bytes of a photo or recording by its id, for methods that need pixels or audio.
        layers: The allowed layers (captions, climate, ...), functions of a media id or an observation id.
        open_medium: A medium as an open file, for recordings that are too long to hold in memory.
        marks: All labels, where items have any number of them and a method may see them.
        media_kind: Whether the media are photos or recordings.
    """

    items: pl.DataFrame
    truth: NDArray[np.int32] | None
    features: NDArray[np.float32] | None = None
    read_medium: Callable[[str], bytes] | None = None
    layers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    open_medium: Callable[[str], IO[bytes]] | None = None
    marks: Marks | None = None
    media_kind: MediaKind = "photo"

    def __len__(self) -> int:
        return len(self.items)

    @property
    def item_ids(self) -> tuple[str, ...]:
        return tuple(self.items["item_id"])

    def of_known_labels(self) -> Part:
        """The items whose label is known to the benchmark; unknown ones (-1) teach nothing about the classes."""
        if self.truth is None or (self.truth >= 0).all():
            return self
        known = self.truth >= 0
        features = None if self.features is None else self.features[known]
        marks = None if self.marks is None else self.marks.take(known)
        items = self.items.filter(pl.Series(known))
        return replace(self, items=items, truth=self.truth[known], features=features, marks=marks)


@dataclass(frozen=True)
class View:
    """The parts of a benchmark as a method gets them.

    `test` is None for a method that answers item by item: what is not there cannot be peeked at.
    `val` is None where the final model is trained on train and val together.
    `scratch` is a folder for what a long fit wants to go on from after an interruption; it need not exist.
    """

    labels: Labels
    taxonomy: Taxonomy
    train: Part
    val: Part | None
    unlabeled: Part | None
    test: Part | None
    scratch: Path | None = None

    def with_val_in_train(self) -> View:
        """Train and val together as train, and no val.

        Raises:
            ValueError: For soundscapes, whose val may never be trained on.
        """
        if self.train.marks is not None:
            raise ValueError("the validation soundscapes may not be trained on")
        if self.val is None or self.train.truth is None or self.val.truth is None:
            return self
        features = None
        if self.train.features is not None and self.val.features is not None:
            features = np.concatenate([self.train.features, self.val.features])
        together = replace(
            self.train,
            items=pl.concat([self.train.items, self.val.items]),
            truth=np.concatenate([self.train.truth, self.val.truth]),
            features=features,
        )
        return replace(self, train=together, val=None)


@dataclass(frozen=True)
class Truth:
    """The true labels of some items, and what is independent among them.

    Args:
        rows: The long table (`tables.TrueLabel`).
        items: The items to be answered, those without any label included.
        units: For each item the independent unit it belongs to.
        groups: For each item what it is shown by (month, site, split), one column each; a column of lists where an
            item stands in several groups.
    """

    rows: pl.DataFrame
    items: tuple[str, ...]
    units: tuple[str, ...]
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)

    def take(self, rows: NDArray[np.bool_]) -> Truth:
        """The truth of some of the items."""
        kept = [item for item, keep in zip(self.items, rows, strict=True) if keep]
        units = tuple(unit for unit, keep in zip(self.units, rows, strict=True) if keep)
        return Truth(self.rows.filter(pl.col("item_id").is_in(kept)), tuple(kept), units)


@dataclass(frozen=True)
class Opened:
    """A benchmark opened on a release: what methods see, the truth, and everything a report may show."""

    benchmark: Benchmark
    dataset: Dataset
    view: View
    truth: dict[str, Truth]
    items: dict[str, pl.DataFrame]
    val_is_drawn: bool

    def truth_of(self, split: str) -> Truth:
        """The truth of one part.

        Raises:
            MisuseError: When there is no such part.
            InputError: When the release does not hold its labels.
        """
        if split not in PARTS:
            raise MisuseError(f"There is no part called {split!r}. {did_you_mean(split, PARTS)}")
        if split not in self.truth:
            hint = f"It has those of {' and '.join(self.truth)}."
            found, root = f"no labels for {split}", self.dataset.release.root
            raise InputError(root, found=found, expected="a release that holds them", hint=hint)
        return self.truth[split]


def open_release(benchmark: Benchmark, root: str | Path) -> Dataset:
    """Opens the release that a benchmark is about.

    Raises:
        MisuseError: For a benchmark whose release is not read here.
    """
    if benchmark.dataset not in DATASETS:
        raise MisuseError(
            f"The release of {benchmark.name} cannot be opened (those of {', '.join(sorted(DATASETS))} can). "
            f"Its runs are scored against small tables: fieldmark score {benchmark.name} RUN --truth truth.csv."
        )
    return open_dataset(benchmark.dataset, root, benchmark.subset)


def open_benchmark(benchmark: Benchmark, dataset: Dataset, *, seed: int = 0) -> Opened:
    """Cuts a dataset into the parts of a benchmark.

    Args:
        benchmark: The declaration.
        dataset: The release.
        seed: The seed of parts that are drawn, where the release does not have them.

    Raises:
        InputError: When train or val would be empty.
    """
    media = dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")
    parts = cut(benchmark.split, media, seed=seed)
    laid = lay_out(benchmark.task.item, dataset, media)
    tables = _tables(laid, media, parts)
    _refuse_empty(dataset, tables, benchmark)
    labels = Labels(tuple(dataset.taxa["label"]))
    allowed = benchmark.task.inputs
    layers = {name: layer for name, layer in dataset.layers.items() if name.partition("_")[0] in allowed}

    def make_part(name: str, *, labeled: bool) -> Part | None:
        table = tables[name]
        if table.is_empty():
            return None
        return Part(
            items=_visible(table, benchmark),
            truth=labels.encode(table["label"]) if labeled else None,
            read_medium=dataset.read_medium,
            open_medium=dataset.open_medium,
            layers=layers,
            marks=laid.marks(table, labels) if labeled else None,
            media_kind=dataset.media_kind,
        )

    train = make_part("train", labeled=True)
    assert train is not None  # checked above
    view = View(
        labels=labels,
        taxonomy=Taxonomy.of(labels, dataset.taxa),
        train=train,
        val=make_part("val", labeled=True),
        unlabeled=make_part("unlabeled", labeled=False),
        test=make_part("test", labeled=False),
    )
    truth = {
        part: _truth(table, laid, benchmark.task)
        for part, table in tables.items()
        if part in ("val", "test") and _is_labeled(table, laid)
    }
    if benchmark.task.unknown and "test" in truth:
        columns = [*truth["test"].groups.get_columns(), *unknown_species(tables["val"], tables["test"])]
        truth["test"] = replace(truth["test"], groups=pl.DataFrame(columns))
    return Opened(benchmark, dataset, view, truth, tables, parts.val_is_drawn)


def _tables(laid: Laid, media: pl.DataFrame, parts: Cut) -> dict[str, pl.DataFrame]:
    """The items of each part."""
    return {
        part: laid.table.filter(pl.col(laid.member).is_in(media[laid.listed].filter(members).implode()))
        for part, members in parts.members.items()
    }


def _refuse_empty(dataset: Dataset, tables: Mapping[str, pl.DataFrame], benchmark: Benchmark) -> None:
    hint = "Classes with a single observation all go to train: add observations, or a folder for val."
    if not benchmark.split.otherwise:
        hint = " ".join(dataset.remarks)
    if benchmark.task.item == "segment":
        hint = "Focal recordings stand in train, the validation soundscapes with their annotations in val."
    root = dataset.release.root
    for part in ("train", "val"):
        if tables[part].is_empty():
            raise InputError(root, found=f"no items for {part}", expected="at least one", hint=hint)
    if benchmark.task.item == "segment" and not tables["val"]["annotated"].all():
        raise InputError(root, found="validation soundscapes without annotations", expected="a table", hint=hint)


def _visible(items: pl.DataFrame, benchmark: Benchmark) -> pl.DataFrame:
    allowed = {column for name in benchmark.task.inputs for column in COLUMNS_OF_INPUT[name]}
    return items.select([name for name in items.columns if name in ALWAYS_VISIBLE or name in allowed])


def unknown_species(val: pl.DataFrame, test: pl.DataFrame) -> list[pl.Series]:
    """The groups that tell unknown species of test which val has as well from those that it has not.

    Known items stand in both, so that every metric of an open set can be taken of each.

    Returns:
        One column of lists; none where the release does not name the unknown species, or one of the groups is empty.
    """
    if "scientific_name" not in test.columns:
        return []
    seen = set(val.filter(pl.col("label") == UNKNOWN_NAME)["scientific_name"].drop_nulls())
    names = test.select("label", "scientific_name").rows()
    if any(label == UNKNOWN_NAME and name is None for label, name in names):
        return []
    groups = [
        [SEEN_IN_VAL, NEW_IN_TEST] if label != UNKNOWN_NAME else [SEEN_IN_VAL if name in seen else NEW_IN_TEST]
        for label, name in names
    ]
    of_unknown = {group[0] for group in groups if len(group) == 1}
    return [pl.Series("unknown_species", groups)] if len(of_unknown) == 2 else []


def _is_labeled(items: pl.DataFrame, laid: Laid) -> bool:
    """Whether the labels of a part are known. A segment without any may be silent, so that recordings tell it."""
    return len(items) > 0 and bool((items["label"].is_not_null() if laid.labels is None else items["annotated"]).all())


def _truth(items: pl.DataFrame, laid: Laid, task: Task) -> Truth:
    rows = items.select("item_id", "label")
    if laid.labels is not None:
        rows = laid.labels.select("item_id", "label").join(items.select("item_id"), on="item_id", how="semi")
    by = [pl.col("date").dt.strftime("%m").alias("month") if name == "month" else pl.col(name) for name in task.by]
    return Truth(TRUTH.check(rows, "truth"), tuple(items["item_id"]), tuple(items[task.unit]), items.select(by))
