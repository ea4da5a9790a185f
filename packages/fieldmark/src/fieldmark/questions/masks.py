"""Masks of the whole and of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.masks.parts import (
    MICROSCOPIC,
    NEVER_PARTS,
    WHOLE,
    Mask,
    joined,
    merged_last,
    only_spores,
    resized,
    whole,
)
from fieldmark.masks.runlengths import MaskRow
from fieldmark.metrics.segmentation import PixelCounts, mask_counts
from fieldmark.questions.answer import CLASSES_FILE, Answer, Evaluation, LooseTruth
from fieldmark.questions.items import Items, Layout
from fieldmark.questions.targets import MaskTargets, Shape
from fieldmark.questions.truth import Truth
from fieldmark.runs.mask_files import is_table, read_masks, read_units, refuse_other_spelling
from fieldmark.runs.masks import Masks, stem
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import MaskLayer
from fieldmark.tables.labels import Labels
from fieldmark.tables.schema import TRUTH
from fieldmark.work.progress import progress

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class PartMasks(Answer):
    """Every photo has masks: of the fruiting body, and of the parts it is made of.

    Args:
        observation_in_name: Whether the name of a photo ends with its observation (`0-3032614317.JPG`).
        last_row_is_whole: Whether the last row of a photo in a table of true masks is the whole, whatever its label
            says, as the code of FungiTastic takes it.
    """

    observation_in_name: bool = False
    last_row_is_whole: bool = False

    shape: ClassVar[Shape] = "masks"
    wants: ClassVar[str] = "a mask"
    truth_file: ClassVar[str] = "truth.parquet"

    @property
    def default_steps(self) -> tuple[str, ...]:
        return ()

    def comparable(self, names: Iterable[str]) -> set[str]:
        """None: the whole is compared whatever its parts are called."""
        return set()

    def labels(self, dataset: Dataset, layout: Layout) -> Labels:
        """The parts that are drawn in the release."""
        drawn = _layer(dataset).names(layout.table["item_id"].to_list())
        return Labels(tuple(sorted(drawn - set(NEVER_PARTS))))

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        masks = _masks_of(dataset, table)
        shown = np.array([not only_spores(rows) for rows in masks.rows], dtype=np.bool_)
        with_masks = Truth(TRUTH.empty(), masks.items, tuple(units), groups, masks=masks)
        return with_masks.take(shown)

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> MaskTargets:
        return MaskTargets(_masks_of(dataset, table))

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        """Masks in a folder or a file.

        Photos in which the truth shows nothing but spores are left out. The independent unit is the observation where
        the names of photos end with it, else the photo.
        """
        if not isinstance(truth, (str, Path)):
            raise MisuseError(
                "Masks are scored from files: a folder of pictures or Parquet, for the run and for --truth."
            )
        masks = read_masks(Path(truth), complete=not self.last_row_is_whole)
        if self.last_row_is_whole and is_table(Path(truth)):
            masks = replace(masks, rows=tuple(merged_last(rows) for rows in masks.rows))
        _refuse_several_sizes(masks, truth)
        photos = [item for item, rows in zip(masks.items, masks.rows, strict=True) if not only_spores(rows)]
        kept = masks.select(photos)
        stated = read_units(Path(truth))
        units = tuple(stated.get(photo) or self._unit(photo) for photo in photos)
        labels = Labels(tuple(name for name in kept.parts if name not in NEVER_PARTS))
        classes = pl.DataFrame({"label": labels.names}, schema={"label": pl.String})
        return LooseTruth(Truth(TRUTH.empty(), kept.items, units, masks=kept), labels, classes, part="truth")

    def write_truth(
        self, items: Items, folder: Path, truth: Truth, table: pl.DataFrame, taxa: pl.DataFrame, by: Sequence[str]
    ) -> None:
        assert truth.masks is not None  # `truth` made it
        unit_of = dict(zip(truth.items, truth.units, strict=True))
        stated = any(unit != self._unit(photo) for photo, unit in unit_of.items())
        truth.masks.write(folder / self.truth_file, units=unit_of if stated else None)
        parts = [name for name in truth.masks.parts if name not in NEVER_PARTS]
        pl.DataFrame({"label": parts}, schema={"label": pl.String}).write_csv(folder / CLASSES_FILE)

    def keep_truth(self, items: Items, truth: Path, folder: Path) -> None:
        """Writes given masks of any form as a table, in which the whole of each photo stands last."""
        loose = self.given(items, truth, None, None, ())
        self.write_truth(items, folder, loose.truth, pl.DataFrame(), pl.DataFrame(), ())

    def _unit(self, photo: str) -> str:
        """The independent unit of a photo where nobody states it."""
        return photo.rpartition("-")[2] if self.observation_in_name else photo

    def is_known(self, items: Items, dataset: Dataset, table: pl.DataFrame) -> bool:
        """Whether some of the photos have masks; whether their species are known does not matter."""
        return bool(_layer(dataset).names(table["item_id"].to_list()))

    def remarks(self, dataset: Dataset, table: pl.DataFrame, part: str) -> list[str]:
        photos = table["item_id"].to_list()
        drawn = [_layer(dataset).names([photo]) for photo in photos]
        without, spores = drawn.count(set()), drawn.count({MICROSCOPIC})
        left_out = "neither learned from nor scored"
        said = []
        if without:
            said.append(f"{without:,} of {len(photos):,} photos of {part} have no mask: they are {left_out}.")
        if spores:
            said.append(f"{spores:,} of {len(photos):,} photos of {part} show spores alone: they are {left_out}.")
        return said

    def evaluate(
        self, predictions: Masks, truth: Truth, labels: Labels, classes: pl.DataFrame, depth: int
    ) -> MaskEvaluation:
        assert truth.masks is not None  # `truth` or `given` made it
        return MaskEvaluation(truth, *_counted(predictions, truth.masks))

    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> Masks:
        rows = (MaskRow.of(WHOLE, rng.random((32, 32)) < 0.5) for _ in items)
        return Masks(items, tuple((row,) for row in rows))


def _layer(dataset: Dataset) -> MaskLayer:
    if "masks" not in dataset.layers:
        hint = "Masks come in files of their own: `fieldmark get` lists them."
        raise InputError(dataset.release.root, found="no masks", expected="a release with masks", hint=hint)
    layer = dataset.layers["masks"]
    assert isinstance(layer, MaskLayer)  # what a dataset calls masks
    return layer


def _masks_of(dataset: Dataset, table: pl.DataFrame) -> Masks:
    photos = table["item_id"].to_list()
    items = tuple(stem(photo) for photo in photos)
    return Masks(items, tuple(_layer(dataset).rows(photos)), dict(zip(items, photos, strict=True)))


def _refuse_several_sizes(masks: Masks, where: object) -> None:
    for photo, rows in zip(masks.items, masks.rows, strict=True):
        sizes = sorted({(row.width, row.height) for row in rows})
        if len(sizes) > 1:
            found = f"masks of {photo} with {sizes[0][0]} x {sizes[0][1]} and {sizes[1][0]} x {sizes[1][1]} pixels"
            raise InputError(where, found=found, expected="one size for all true masks of a photo")


class _PixelCounts(NamedTuple):
    whole_counts: tuple[Counts, Counts]
    joined_counts: tuple[Counts, Counts]
    parts: tuple[str, ...]
    part_table: tuple[Counts, Counts]


def _counted(answered: Masks, true: Masks) -> _PixelCounts:
    """Counts pixels, photo by photo; masks of the run are brought to the size of the true ones.

    The parts are those of the truth and those of the run: one that only the run has counts against it.
    """
    true_parts, answered_parts = (_parts_of(masks) for masks in (true, answered.select(true.items)))
    refuse_other_spelling(answered_parts - true_parts, true_parts)
    with_parts = bool(true_parts) and bool(answered_parts)
    parts = sorted(true_parts | answered_parts)
    whole_counts: list[tuple[int, int]] = []
    joined_counts: list[tuple[int, int]] = []
    tables: list[tuple[Counts, Counts]] = []
    with progress("comparing masks", len(true.items)) as tick:
        for photo in true.items:
            tick(1)
            truth_parts = true.open(photo)
            body, of_parts = whole(truth_parts), joined(truth_parts)
            answer, answered_joined, counts = _answered(answered.rows_of(photo), truth_parts, body.shape)
            whole_counts.append(_two(mask_counts(body, answer)))
            joined_counts.append(_two(mask_counts(of_parts, answer)) if of_parts.any() else whole_counts[-1])
            if with_parts:
                missed = {name: (0, int(mask.sum())) for name, mask in truth_parts.items()}
                background = _two(mask_counts(~of_parts, ~answered_joined))
                both = [counts.get(name, missed.get(name, (0, 0))) for name in parts]
                tables.append(_columns([background, *both]))
    return _PixelCounts(
        _columns(whole_counts),
        _columns(joined_counts),
        ("background", *parts) if with_parts else (),
        (np.array([table[0] for table in tables]), np.array([table[1] for table in tables])),
    )


def _answered(
    rows: Sequence[MaskRow], truth_parts: Mapping[str, Mask], shape: tuple[int, ...]
) -> tuple[Mask, Mask, dict[str, tuple[int, int]]]:
    """The whole of an answer, everything that is a part in it, and the counts of each part, at the size of the truth.

    One part is held at a time: a small run may name many, each in a large picture.
    """
    empty = np.zeros(shape, dtype=np.bool_)
    body, of_parts, counts = None, empty, {}
    pieces: dict[str, list[MaskRow]] = {}
    for row in rows:
        pieces.setdefault(row.label, []).append(row)
    for name, drawn in pieces.items():
        mask = empty
        for row in drawn:
            mask = mask | resized(row.mask(), shape)
        if name == WHOLE:
            body = mask
        elif name not in NEVER_PARTS:
            of_parts = of_parts | mask
            counts[name] = _two(mask_counts(truth_parts.get(name, empty), mask))
    return of_parts if body is None else body, of_parts, counts


def _two(counts: PixelCounts) -> tuple[int, int]:
    return int(counts.intersection), int(counts.union)


def _columns(pairs: list[tuple[int, int]]) -> tuple[Counts, Counts]:
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _parts_of(masks: Masks) -> set[str]:
    return {name for name in masks.parts if name not in NEVER_PARTS}


@dataclass(frozen=True)
class MaskEvaluation(Evaluation):
    """Counts of pixels for every photo of the truth: of the fruiting body, and of each part.

    Args:
        whole_counts: Pixels in truth and answer, and in truth or answer, of the fruiting body.
        joined_counts: The same where the true fruiting body is everything that is a part of it; the whole itself where
            a photo has no parts.
        part_names: The parts, the background first; empty where the run has none.
        part_table: The same two counts for each part, one row per photo.
    """

    whole_counts: tuple[Counts, Counts]
    joined_counts: tuple[Counts, Counts]
    part_names: tuple[str, ...]
    part_table: tuple[Counts, Counts]

    @property
    def n_classes(self) -> int:
        return max(len(self.part_names) - 1, 1)

    def take(self, rows: NDArray[np.bool_]) -> Self:
        whole_counts, joined_counts = (
            (both[rows], either[rows]) for both, either in (self.whole_counts, self.joined_counts)
        )
        tables = self.part_table if not self.part_names else (self.part_table[0][rows], self.part_table[1][rows])
        return type(self)(self.truth.take(rows), whole_counts, joined_counts, self.part_names, tables)

    @property
    def intersection(self) -> Counts:
        return self.whole_counts[0]

    @property
    def union(self) -> Counts:
        return self.whole_counts[1]

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts, the background first.

        Raises:
            InputError: When truth or run has none.
        """
        if not self.part_names:
            raise InputError("the masks", found="no parts", expected="one mask per part in truth and run")
        return self.part_names
