"""What a method may see of a benchmark: parts that hold only what the task allows, and open only what is theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.questions.targets import Targets
from fieldmark.releases.identical import identical_files
from fieldmark.splits.assignment import folds_of
from fieldmark.splits.groups import grouped, links_of, links_of_files
from fieldmark.splits.rules import ByClass, Rule, rule_named
from fieldmark.tables.inputs import MediaFiles, OwnLayer
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import Medium
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.work.large_arrays import joined_rows, taken_rows

BLOCK_ITEMS = 4096
Rows = NDArray[np.int64] | NDArray[np.bool_] | Sequence[int]


@dataclass(frozen=True)
class Part:
    """Items with the inputs a method may read. Parts are cut by `take`, `concat` and `blocks`; they can be pickled.

    Args:
        items: One row per item, only the allowed columns.
        targets: The labels of the items, or None where a method may not see them.
        media: The photos or recordings of these items, and of no others; None where there are none to open.
        layers: The allowed layers (captions, climate, ...) by name, for these items and no others.
        features: One row per item by the name of the input, for methods that need features.
        missing: By the name of the input, the items that have none of it; their features are zeros.
        salt: What the opaque ids are made with that a method sees in place of these (`blinding`); empty where the ids
            have nothing to hide, which are those of loose files and those that a method was given.
    """

    items: pl.DataFrame
    targets: Targets | None = None
    media: MediaFiles | None = None
    layers: Mapping[str, OwnLayer] = field(default_factory=dict)
    features: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    missing: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    salt: bytes = field(default=b"", repr=False)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def item_ids(self) -> tuple[str, ...]:
        return tuple(self.items["item_id"])

    @property
    def truth(self) -> NDArray[np.int32] | None:
        """One label code per item, -1 for unknown or none; None where a method may not see it."""
        return None if self.targets is None else self.targets.codes

    def take(self, rows: Rows) -> Part:
        """Some of the items, in the order asked for, with their media and nothing else."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        items = self.items[chosen.tolist()]
        return Part(
            items,
            None if self.targets is None else self.targets.take(chosen),
            None if self.media is None else self.media.only(_ids(items, "media_id")),
            {name: OwnLayer.of(layer, _ids(items, layer.by)) for name, layer in self.layers.items()},
            {name: taken_rows(values, chosen) for name, values in self.features.items()},
            {name: flags[chosen] for name, flags in self.missing.items()},
            self.salt,
        )

    @classmethod
    def concat(cls, parts: Sequence[Part]) -> Part:
        """The items of several parts, one after the other."""
        items = pl.concat([part.items for part in parts])
        media = parts[0].media
        for part in parts[1:]:
            media = None if media is None or part.media is None else media.together(part.media)
        targets = [part.targets for part in parts if part.targets is not None]
        layers = dict(parts[0].layers)
        for part in parts[1:]:
            layers = {name: layer.together(part.layers[name]) for name, layer in layers.items()}
        return cls(
            items,
            type(targets[0]).concat(targets) if len(targets) == len(parts) else None,
            media,
            layers,
            {name: joined_rows([part.features[name] for part in parts]) for name in parts[0].features},
            {name: np.concatenate([part.missing[name] for part in parts]) for name in parts[0].missing},
            parts[0].salt,
        )

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[Part]:
        """The same items, so many at a time."""
        for start in range(0, len(self), size):
            yield self.take(np.arange(start, min(start + size, len(self))))

    def of_known_labels(self) -> Part:
        """The items with a label that is known to the benchmark; the others teach nothing about the classes."""
        if self.targets is None or self.targets.known.all():
            return self
        return self.take(self.targets.known)

    def unlabeled(self) -> Part:
        """The same items without their labels."""
        return replace(self, targets=None)


def _ids(items: pl.DataFrame, by: str) -> list[str]:
    """The media or observations behind some items, each once."""
    column = items["media_ids"].explode() if by == "media_id" else items[by]
    return column.drop_nulls().unique(maintain_order=True).to_list()


@dataclass(frozen=True)
class View:
    """The parts of a benchmark as a method gets them.

    `test` is None for a method that answers item by item: what is not there cannot be peeked at.
    `val` is None where the final model is trained on train and val together.
    `scratch` is a folder for what a long fit wants to go on from after an interruption; it need not exist.
    `shared` is a folder for fitted parts of methods that other fits to the same items can take over; None for none.
    `unit` is the column of the items that tells what is independent.
    """

    labels: Labels
    taxonomy: Taxonomy
    train: Part
    val: Part | None
    unlabeled: Part | None
    test: Part | None
    scratch: Path | None = None
    shared: Path | None = None
    unit: str = "observation_id"

    def with_val_in_train(self) -> View:
        """Train and val together as train, and no val."""
        if self.val is None or self.train.targets is None or self.val.targets is None:
            return self
        return replace(self, train=Part.concat([self.train, self.val]), val=None)

    def folds(
        self, by: str | Rule = "unit", number: int = 5, seed: int = 0, *, table: pl.DataFrame | None = None
    ) -> Iterator[Fold]:
        """Cuts train into folds for cross-validation, each held out once.

        Whatever the rule, an observation, a unit and photos with the same bytes are never parted, nor is what they
        join. Folds have about the same number of items, and of each class where the rule does not keep classes
        whole. They depend on the seed and not on the order of items.

        Args:
            by: A rule, or its name: unit, site, day, class, block (5,000 m), block:METRES, cells:METRES, or a column.
            number: How many folds.
            seed: The seed of the draw.
            table: The items of train with columns that methods may not see (a site, say), if not those they see.

        Yields:
            The view with the rest of train, and the items held out with their labels. Val is as it was.
        """
        numbers = self.fold_numbers(by, number, seed, table=table)
        for fold in range(number):
            yield self.hold_out(numbers == fold)

    def hold_out(self, items: NDArray[np.bool_]) -> Fold:
        """Some of the items of train held out, the others to learn from."""
        return Fold(replace(self, train=self.train.take(~items)), self.train.take(items))

    def fold_numbers(
        self, by: str | Rule = "unit", number: int = 5, seed: int = 0, *, table: pl.DataFrame | None = None
    ) -> NDArray[np.int64]:
        """The fold of each item of train, as `folds` cuts it, from 0 on."""
        train = self.train
        table = train.items if table is None else table
        if table["item_id"].to_list() != list(train.item_ids):
            raise ValueError("the table must hold the items of train, in their order")
        classes = None if train.targets is None else train.targets.main_codes
        rule = rule_named(by, unit=self.unit) if isinstance(by, str) else by
        keys = (
            [pl.Series(classes)] if isinstance(rule, ByClass) and classes is not None else [rule.keys(table, "train")]
        )
        keys += [table[name] for name in {"observation_id", self.unit} if name in table.columns]
        links = [links_of(column) for column in keys]
        if train.media is not None:
            media = table["media_ids"].fill_null([]).to_list()
            copies = identical_files(train.media, (one for own in media for one in own))
            links.append(links_of_files(media, copies))
        balanced = None if rule.keeps_classes_whole or classes is None else classes.astype(np.int64)
        return folds_of(grouped(train.item_ids, links), balanced, number, seed)


class Fold(NamedTuple):
    """One fold of a cross-validation: what is learned from, and what is held out."""

    view: View
    held_out: Part


@dataclass(frozen=True)
class LooseFiles:
    """Files that belong to no release, each opened by its own path."""

    def open(self, path: str) -> IO[bytes]:
        return Path(path).open("rb")

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def open_many(self, paths: Iterable[str], ahead: int = 0) -> Iterator[IO[bytes]]:
        return map(self.open, paths)

    def where(self, path: str) -> str:
        return path

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        return {path: Path(path).stat().st_size for path in paths if Path(path).is_file()}


def loose_media(medium: Medium, paths: Sequence[Path]) -> MediaFiles:
    """Photos or recordings that belong to no release; the id of each is its path."""
    return MediaFiles(medium, LooseFiles(), {str(path): str(path) for path in paths})
