"""Checked answers added to what a method learns from (`fit --add`).

A table with `file` and `label`, and optionally `observation` and `drawn`, as `fieldmark review` writes it. Rows that
were drawn at random are left out: they tell how good the answers are, and could not once the model has learned them. A
file of train gets the label of the table; a file of val or test, or a copy of one, is left out; everything else is new.

Files are named by paths beside the table, by absolute paths or by addresses; the table and the release may lie at an
address too. Only files that are new, or as long as one of val or test, are fetched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting.other_files import ELSEWHERE, PlacedFiles, WithOthers, place_of, true_place
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases.identical import identical_files
from fieldmark.storage.files import open_input, sha256_of
from fieldmark.storage.local_inputs import local_input
from fieldmark.tables.inputs import MediaFiles, OwnLayer
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.tables.media import Medium
from fieldmark.tables.reader import read_csv
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import Part

RANDOM = "random"


@dataclass(frozen=True)
class Added:
    """A benchmark with checked answers in train, and what was done with them.

    Args:
        opened: The benchmark.
        remarks: What a reader should know, one sentence each.
        record: The file, its digest and the counts, kept with the model.
        external_data: What of them is not in the release, by name and digest; empty where all of it is.
    """

    opened: Opened
    remarks: tuple[str, ...]
    record: Mapping[str, object]
    external_data: tuple[str, ...] = ()


def with_added(opened: Opened, table: Path) -> Added:
    """Adds checked answers to train.

    Args:
        opened: The benchmark on its release.
        table: The table.

    Raises:
        InputError: When the table is at fault.
        MisuseError: When the benchmark does not ask for one label of each photo or recording.
    """
    task, medium = opened.benchmark.task, opened.dataset.medium
    if task.answer.shape != "codes" or opened.view.train.media is None:
        raise MisuseError(f"{opened.benchmark.name} does not ask for one label of each {medium}: nothing can be added.")
    rows = _read(table, medium)
    drawn = rows.filter(pl.col("drawn") == RANDOM)
    rows = rows.filter(pl.col("drawn") != RANDOM)
    part_of = _parts_of_files(opened)
    where = {path: part_of.get(true_place(path)) for path in rows["path"]}
    kept_back = {path for path, part in where.items() if part in ("val", "test")}
    hidden_copies, release_copies = _copies(opened, [path for path, part in where.items() if part is None])
    kept_back |= hidden_copies
    rows = rows.filter(~pl.col("path").is_in(list(kept_back)))
    own = {path: part for path, part in where.items() if part not in (None, "val", "test")}
    labels = _labels(opened, rows["label"].to_list())
    train, changed = _corrected(opened, rows.filter(pl.col("path").is_in(list(own))), labels)
    new = rows.filter(~pl.col("path").is_in(list(own)))
    elsewhere = {f"added {row}": f"{ELSEWHERE}{path}" for row, path in enumerate(new["path"], start=1)}
    if len(new):
        train = Part.concat([train, _part(opened, new, labels, train, elsewhere)])
    remarks = [
        f"{len(new):,} checked {medium.plural} were added to train from {table.name}, and {changed:,} labels corrected."
    ]
    if len(drawn):
        remarks.append(f"{len(drawn):,} that were drawn at random were left out: they tell how good the answers are.")
    if kept_back:
        remarks.append(f"{len(kept_back):,} lie in val or test, or are copies of what does, and were left out.")
    fresh = [name for name in labels.names if name not in opened.view.labels.code_of]
    if fresh:
        remarks.append(f"{len(fresh):,} names are new to the label set: {', '.join(fresh[:5])}.")
    taxonomy = opened.view.taxonomy if not fresh else Taxonomy.of(labels, opened.dataset.taxa)
    view = replace(opened.view, labels=labels, taxonomy=taxonomy, train=train)
    digest = sha256_of(local_input(table))[:16]
    record = {"file": table.name, "digest": digest, "items": len(new), "corrected": changed}
    foreign = sorted(set(new["path"]) - release_copies)
    external = _declared(foreign, table, medium)
    return Added(replace(opened, view=view, elsewhere=elsewhere), tuple(remarks), record, external)


def _declared(paths: Sequence[str], table: Path, medium: Medium) -> tuple[str, ...]:
    """The sentence about files that are not in the release; their digest is one over all of their bytes."""
    if not paths:
        return ()
    hasher = hashlib.sha256()
    for content in PlacedFiles().read_many(paths):
        hasher.update(hashlib.sha256(content).digest())
    digest = f"SHA-256 of all of them {hasher.hexdigest()[:16]}"
    return (f"{len(paths):,} {medium.plural} that are not in the release, added from {table.name} ({digest})",)


def _read(table: Path, medium: Medium) -> pl.DataFrame:
    """The rows with `path`, `label`, `observation` and `drawn`."""
    local = local_input(table, "a table of checked answers")
    with open_input(local, "a table of checked answers") as file:
        rows = read_csv(file, local, required=("file", "label"))
    for line, (path, label) in enumerate(rows.select("file", "label").iter_rows(), start=2):
        if not path or not label or label == UNKNOWN_NAME:
            raise InputError(local, line=line, found="no file or no label", expected="both in each row")
        if not medium.owns(path):
            raise InputError(local, line=line, found=repr(path), expected=f"a {medium}, as the release holds")
    places = [place_of(path, table) for path in rows["file"]]
    there = PlacedFiles().sizes(places)
    for line, (path, place) in enumerate(zip(rows["file"], places, strict=True), start=2):
        if place not in there:
            raise InputError(local, line=line, found=f"{path!r}, which is not there", expected=f"a {medium}")
    twice = rows.filter(pl.col("file").is_duplicated() & (pl.col("label").n_unique().over("file") > 1))
    if len(twice):
        raise InputError(local, found=f"two labels for {twice['file'][0]!r}", expected="one for each file")
    rows = rows.unique("file", keep="first", maintain_order=True)
    path = pl.Series([place_of(one, table) for one in rows["file"]], dtype=pl.String)
    given = {
        name: rows[name] if name in rows.columns else pl.Series([None] * len(rows)) for name in ("observation", "drawn")
    }
    return pl.DataFrame(
        {
            "path": path,
            "label": rows["label"],
            "observation": given["observation"].cast(pl.String).fill_null(path),
            "drawn": given["drawn"].cast(pl.String).fill_null(""),
        }
    )


def _parts_of_files(opened: Opened) -> dict[str, str]:
    """The part of each file of the release, by where it really lies."""
    release, view, path_of = opened.dataset.release, opened.view, opened.media_paths
    parts: dict[str, str] = {}
    for name, part in (("train", view.train), ("val", view.val), ("test", view.test)):
        if part is not None and part.media is not None:
            parts |= {true_place(release.where(path_of[one])): name for one in part.media.ids}
    return parts


def _copies(opened: Opened, paths: list[str]) -> tuple[set[str], set[str]]:
    """Files with the same bytes as one of val or test, and those with the same bytes as any of the release."""
    path_of = opened.media_paths
    hidden = {
        path_of[one]
        for part in (opened.view.val, opened.view.test)
        if part is not None and part.media is not None
        for one in part.media.ids
    }
    others = {f"{ELSEWHERE}{path}": path for path in paths}
    files = WithOthers(opened.dataset.release)
    sizes = files.sizes([*path_of.values(), *others])
    lengths = {sizes.get(path) for path in others}  # only files as long as one of the new ones can be copies of it
    alike = [path for path in path_of.values() if sizes.get(path) in lengths]
    groups = identical_files(files, [*alike, *others])
    of_hidden, of_release = set[str](), set[str]()
    for group in groups:
        ours = {others[path] for path in group if path in others}
        of_hidden |= ours if not hidden.isdisjoint(group) else set()
        of_release |= ours if len(ours) < len(group) else set()
    return of_hidden, of_release


def _labels(opened: Opened, names: list[str]) -> Labels:
    """The labels of the benchmark, and new ones behind them."""
    known = opened.view.labels
    return Labels((*known.names, *sorted({name for name in names if name not in known.code_of})))


def _corrected(opened: Opened, rows: pl.DataFrame, labels: Labels) -> tuple[Part, int]:
    """Train with the labels of the table for its own files, and how many of those are other labels."""
    train = opened.view.train
    assert train.media is not None and train.truth is not None  # refused before
    release, path_of = opened.dataset.release, opened.media_paths
    said = {true_place(path): label for path, label in rows.select("path", "label").iter_rows()}
    codes = train.truth.copy()
    for row, media in enumerate(train.items["media_ids"].to_list()):
        for one in media:
            label = said.get(true_place(release.where(path_of[one])))
            if label is not None:
                codes[row] = labels.code_of[label]
    coarse = {} if train.targets is None else dict(train.targets.coarse)
    changed = int((codes != train.truth).sum())
    media_files = MediaFiles(train.media.medium, WithOthers(release), {one: path_of[one] for one in train.media.ids})
    targets = LabelTargets(codes, coarse={} if changed else coarse)
    return replace(train, targets=targets, media=media_files), changed


def _part(opened: Opened, rows: pl.DataFrame, labels: Labels, train: Part, paths: Mapping[str, str]) -> Part:
    """The new files as items with the columns of train; what is not known about them is empty."""
    assert train.media is not None  # refused before
    ids = list(paths)
    given = {"item_id": ids, "observation_id": rows["observation"].to_list(), "media_ids": [[one] for one in ids]}
    columns = {
        name: pl.Series(name, given[name], dtype=kind)
        if name in given
        else pl.Series(name, [None] * len(rows), dtype=kind)
        for name, kind in train.items.schema.items()
    }
    media = MediaFiles(train.media.medium, WithOthers(opened.dataset.release), paths)
    layers = {name: OwnLayer.of(opened.dataset.layers[name], ids) for name in train.layers}
    return Part(pl.DataFrame(columns), LabelTargets(labels.encode(rows["label"])), media, layers)
