"""A benchmark on a release: the parts that methods see, and the truth that is kept from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.questions.items import Layout
from fieldmark.questions.targets import LabelTargets, Targets
from fieldmark.questions.truth import Truth
from fieldmark.releases import DATASETS, Dataset, open_dataset
from fieldmark.releases.identical import across, identical_files, observations_together
from fieldmark.runs.provenance import LEAKAGE, OTHER_SPLIT, Run
from fieldmark.splits import Cut, cut
from fieldmark.splits.files import SPLIT_FILE, Split, read_split, straddling
from fieldmark.tables.inputs import OwnLayer
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.opaque_ids import salt_of
from fieldmark.views.parts import Part, View

SEEN_IN_VAL, NEW_IN_TEST = "also in val", "not in val"
ANSWERABLE_PARTS = ("train", "val", "test")
# The parts in the order in which a method meets them; a copy in a later one of what stood in an earlier one leaks.
SHOWN_FIRST = ("train", "unlabeled", "val", "test")
# Columns of an item that describe the question itself and never the answer.
ALWAYS_VISIBLE = ("item_id", "observation_id", "media_ids", "start_s", "end_s", "domain")


@dataclass(frozen=True)
class Opened:
    """A benchmark opened on a release: what methods see, the truth, and everything a report may show.

    `hidden` holds the label of each unlabeled item, -1 for those of none of the labels; None where nobody knows. It is
    not in the view: a method that declares that it learns from hidden labels is handed them, and no other. `elsewhere`
    holds the paths of media that were added to the view and belong to no release.
    """

    benchmark: Benchmark
    dataset: Dataset
    view: View
    truth: dict[str, Truth]
    items: dict[str, pl.DataFrame]
    val_is_drawn: bool
    layout: Layout
    split: Split | None = None
    hidden: NDArray[np.int32] | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @property
    def media_paths(self) -> dict[str, str]:
        """Where each photo or recording of the view lies; parts do not tell it."""
        return {**self.dataset.media_paths, **self.elsewhere}

    def truth_of_train(self) -> Truth:
        """The truth of train, for those who hold parts of it out."""
        return _truth(self.dataset, self.items["train"], self.layout, self.benchmark.task)

    def truth_of(self, split: str) -> Truth:
        """The truth of one part.

        Raises:
            MisuseError: When there is no such part.
            InputError: When the release does not hold its labels.
        """
        if split not in ANSWERABLE_PARTS:
            raise MisuseError(f"There is no part called {split!r}. {did_you_mean(split, ANSWERABLE_PARTS)}")
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


def suited(benchmark: Benchmark, dataset: Dataset) -> Benchmark:
    """The benchmark that is meant on a release: another one where it has no open set, and the declaration says so."""
    parts, split = dataset.media["parts"], benchmark.split
    if benchmark.without_open_set is None or parts.list.contains(pl.lit(split.val, pl.String)).any():
        return benchmark
    return benchmark.without_open_set


def open_benchmark(benchmark: Benchmark, dataset: Dataset, *, seed: int = 0, split: Split | None = None) -> Opened:
    """Cuts a dataset into the parts of a benchmark.

    Args:
        benchmark: The declaration.
        dataset: The release.
        seed: The seed of parts that are drawn, where the release does not have them.
        split: Another split than that of the benchmark; its val counts as given, and is not trained on.

    Raises:
        InputError: When train or val would be empty, or when the split does not fit the release.

    Where the release has no open set, the benchmark may be another one (`Benchmark.without_open_set`).
    """
    benchmark = suited(benchmark, dataset)
    task = benchmark.task
    rows = task.items.rows(dataset)
    if split is not None:
        parts = split.cut(rows)
    else:
        parts = cut(benchmark.split, rows, seed=seed, together=partial(observations_together, dataset))
    layout = task.items.lay_out(dataset, rows)
    tables = _tables(layout, rows, parts)
    if split is not None:
        _refuse_unfit_split(split, dataset, tables, task)
    _refuse_empty(dataset, tables, benchmark)
    task.items.check(dataset, tables)
    labels = task.answer.labels(dataset, layout)
    if split is not None and not tables["unlabeled"].is_empty() and task.answer.shape == "codes":
        # Species of which nothing is labeled are out of class: nobody asks for them.
        learned = set(tables["train"][task.answer.column])
        labels = Labels(tuple(name for name in labels.names if name in learned))

    salt = salt_of(layout.table["item_id"])

    def make_part(name: str, targets: Targets | None) -> Part | None:
        return None if tables[name].is_empty() else replace(_part(dataset, tables[name], targets, task), salt=salt)

    def targets_of(name: str) -> Targets:
        return task.answer.targets(dataset, tables[name], layout, labels)

    train = make_part("train", targets_of("train"))
    assert train is not None  # checked above
    taxonomy = Taxonomy.of(labels, dataset.taxa)
    view = View(
        labels=labels,
        taxonomy=taxonomy,
        train=train,
        val=make_part("val", targets_of("val")),
        unlabeled=make_part("unlabeled", _coarse_targets(tables["unlabeled"], task, taxonomy, dataset.taxa)),
        test=make_part("test", None),
        unit=task.unit,
    )
    truths = _truths(dataset, tables, layout, task)
    hidden = _hidden_codes(tables["unlabeled"], task, labels)
    return Opened(benchmark, dataset, view, truths, tables, parts.val_is_drawn, layout, split, hidden)


def split_of_run(folder: Path, run: Run) -> Split | None:
    """The split that a run was made with, where it was not that of the benchmark.

    Raises:
        InputError: When the file in the folder of the run is another one.
    """
    if run.split is None:
        return None
    split = read_split(folder / SPLIT_FILE)
    if split.digest != run.split["digest"]:
        found, expected = (
            f"a split with the digest {split.digest}",
            f"{run.split['digest']}, with which the run was made",
        )
        raise InputError(folder / SPLIT_FILE, found=found, expected=expected, hint="Fit again.")
    return split


def remarks_on_split(opened: Opened) -> list[str]:
    """What a reader must know about a split that is not that of the benchmark: which it is, and what it parts."""
    if opened.split is None:
        return []
    record = opened.split.record
    name = opened.benchmark.name
    if opened.split.is_own_of(name):
        told = f"The parts come from {record['file']} (digest {record['digest']})"
        return [f"{told}: they are those of {name} with the seed {record['seed']}."]
    remarks = [
        f"{OTHER_SPLIT} The parts come from {record['file']} (digest {record['digest']}), not from the split of "
        f"{name}: scores cannot be compared with those on its own split."
    ]
    parts = {part: opened.items[part]["observation_id"].to_list() for part in SHOWN_FIRST}
    for (first, second), both in straddling(parts).items():
        if second in ("val", "test"):
            said = (
                f"{len(both):,} observation(s) lie in {first} and in {second} ({both[0]}): scores on them are too high."
            )
            remarks.append(f"{LEAKAGE}{said}")
    return remarks


def remarks_on_answers(opened: Opened) -> list[str]:
    """What a reader must know about the answers that the release holds, part by part."""
    answer, dataset = opened.benchmark.task.answer, opened.dataset
    tables = {part: table for part, table in opened.items.items() if len(table)}
    return [remark for part, table in tables.items() for remark in answer.remarks(dataset, table, part)]


def _refuse_unfit_split(split: Split, dataset: Dataset, tables: Mapping[str, pl.DataFrame], task: Task) -> None:
    for part in ("train", "val"):
        if tables[part].is_empty():
            hint = "Val serves for every choice: give it a share, such as --val 0.1."
            raise InputError(split.where, found=f"nothing for {part}", expected="at least one row", hint=hint)
        if not task.answer.is_known(task.items, dataset, tables[part]):
            hint = "Rows without a label can be test, or left out as unused."
            raise InputError(split.where, found=f"rows without a label in {part}", expected="a label each", hint=hint)


def remarks_on_copies(opened: Opened) -> list[str]:
    """What a reader must know about media with the same bytes: across parts they give answers away.

    Returns:
        A sentence for val and for test where they hold copies of what comes before them, and one for copies of two
        classes.
    """
    dataset, medium = opened.dataset, opened.dataset.medium
    path_of = dataset.media_paths
    paths = {
        part: {path_of[one] for one in table["media_ids"].explode().drop_nulls()}
        for part, table in opened.items.items()
    }
    groups = identical_files(dataset.release, [path for part in SHOWN_FIRST for path in sorted(paths[part])])
    remarks = []
    for place, part in enumerate(SHOWN_FIRST[2:], start=2):
        for earlier in SHOWN_FIRST[:place]:
            pairs = [
                (path, next(one for one in group if one in paths[earlier]))
                for group in groups
                for path in group
                if path in paths[part] and any(one in paths[earlier] for one in group)
            ]
            if pairs:
                number = f"{len(pairs):,} of {len(paths[part]):,} {medium.plural} of {part}"
                example = f"{pairs[0][0]} and {pairs[0][1]}"
                same = f"{number} have the same bytes as {medium.plural} of {earlier}"
                said = f"{same} ({example}): scores on them are too high."
                remarks.append(f"{LEAKAGE}{said}")
    labels = dataset.media.join(dataset.observations, on="observation_id", how="left").select("path", "label")
    several = across(groups, dict(labels.iter_rows()))
    if several:
        remarks.append(f"{len(several):,} {medium}(s) have copies with the same bytes in another class: {several[0]}.")
    return remarks


def _tables(layout: Layout, rows: pl.DataFrame, parts: Cut) -> dict[str, pl.DataFrame]:
    """The items of each part."""
    return {
        part: layout.table.filter(pl.col(layout.member).is_in(rows[layout.listed].filter(members).implode()))
        for part, members in parts.members.items()
    }


def _refuse_empty(dataset: Dataset, tables: Mapping[str, pl.DataFrame], benchmark: Benchmark) -> None:
    hint = "Classes with a single observation all go to train: add observations, or a folder for val."
    if not benchmark.split.otherwise:
        hint = " ".join(dataset.remarks)
    hint = benchmark.task.items.empty_hint or hint
    for part in ("train", "val"):
        if tables[part].is_empty():
            root = dataset.release.root
            raise InputError(root, found=f"no items for {part}", expected="at least one", hint=hint)


def _part(dataset: Dataset, table: pl.DataFrame, targets: Targets | None, task: Task) -> Part:
    """A part that shows the allowed inputs and opens its own media and nothing else."""
    media = table["media_ids"].explode().drop_nulls().unique(maintain_order=True).to_list()
    ids = {"media_id": media, "observation_id": table["observation_id"].to_list()}
    layers = {
        name: OwnLayer.of(layer, ids[layer.by]) for name, layer in dataset.layers.items() if layer.input in task.inputs
    }
    return Part(_visible(table, dataset, task), targets, dataset.media_files.only(media), layers)


def _visible(table: pl.DataFrame, dataset: Dataset, task: Task) -> pl.DataFrame:
    declared = dataset.inputs_by_name
    allowed = {column for name in task.inputs if name in declared for column in declared[name].columns}
    return table.select([name for name in table.columns if name in ALWAYS_VISIBLE or name in allowed])


def _coarse_targets(table: pl.DataFrame, task: Task, taxonomy: Taxonomy, taxa: pl.DataFrame) -> Targets | None:
    """What is known about items without a label: their taxa of the ranks that the task names.

    Items whose label a split hides have the ranks of that label. Codes are those that the taxonomy has for its taxa;
    taxa that no label belongs to come after them.
    """
    for rank in task.coarse:
        if rank in taxa.columns and "label" in table.columns and table["label"].is_not_null().any():
            of_label = dict(taxa.select("label", rank).iter_rows())
            told = pl.Series(rank, [of_label.get(label) for label in table["label"]], dtype=pl.String)
            stated = table[rank] if rank in table.columns else pl.Series(rank, [None] * len(table), dtype=pl.String)
            table = table.with_columns(stated.fill_null(told).alias(rank))
    ranks = [rank for rank in task.coarse if rank in table.columns and table[rank].is_not_null().any()]
    if not ranks:
        return None
    coarse = {}
    for rank in ranks:
        own = taxonomy.ranks[rank][0].names if rank in taxonomy.ranks else ()
        others = sorted(set(table[rank].drop_nulls()) - set(own))
        coarse[rank] = Labels((*own, *others)).encode(table[rank])
    return LabelTargets(Labels(()).encode([None] * len(table)), coarse=coarse)


def _hidden_codes(table: pl.DataFrame, task: Task, labels: Labels) -> NDArray[np.int32] | None:
    """The labels of unlabeled items, -1 for those of none of the labels; None where the release does not have them."""
    given = [name for name in ("hidden_label", task.answer.column) if name in table.columns]
    if table.is_empty() or not given or task.answer.shape != "codes":
        return None
    column = table.select(pl.coalesce(given)).to_series()
    if column.is_null().any():
        return None
    return labels.encode(column)


def _truths(dataset: Dataset, tables: Mapping[str, pl.DataFrame], layout: Layout, task: Task) -> dict[str, Truth]:
    truth_of_part = {}
    for part in ("val", "test"):
        table = tables[part]
        if len(table) and task.answer.is_known(task.items, dataset, table):
            truth_of_part[part] = _truth(dataset, table, layout, task)
    if task.unknown and "test" in truth_of_part:
        columns = [*truth_of_part["test"].groups.get_columns(), *unknown_species(tables["val"], tables["test"])]
        truth_of_part["test"] = replace(truth_of_part["test"], groups=pl.DataFrame(columns))
    return truth_of_part


def _truth(dataset: Dataset, table: pl.DataFrame, layout: Layout, task: Task) -> Truth:
    groups = table.select([_group(name) for name in task.by])
    truth = task.answer.truth(dataset, table, layout, table[task.unit].to_list(), groups)
    return replace(truth, simulated=dataset.release.world is not None)


def _group(name: str) -> pl.Expr:
    return pl.col("date").dt.strftime("%m").alias("month") if name == "month" else pl.col(name)


def unknown_species(val: pl.DataFrame, test: pl.DataFrame) -> list[pl.Series]:
    """The groups of unknown species in test: those that val has as well, and those that it does not have.

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
