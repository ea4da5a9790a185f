"""Opaque ids: what methods and steps see in place of the names that a release has.

Folders and files are often named after the label, or numbered along with it. So ids of items, observations, media and
recordings are exchanged where a part is handed to a method, and the answers get the real ones back; nothing else knows
of it. The same id of a release is always the same opaque one, so that packs of photos are found again.

What a method learns from keeps the order of its ids (the labels are there anyway), and with it every draw that goes by
it. Ids of other items are digests, which tell nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import FieldmarkError, InputError, MisuseError
from fieldmark.questions.targets import MaskTargets, Targets
from fieldmark.runs.masks import stem
from fieldmark.runs.predictions import renamed
from fieldmark.tables.inputs import MediaFiles
from fieldmark.views.parts import Part, View

# The columns of items that hold names of the release.
NAMES, LISTS_OF_NAMES = ("item_id", "observation_id", "recording"), ("media_ids",)
DIGITS = 24
_OPAQUE = re.compile(rf"(?<![0-9a-f])[0-9a-f]{{{DIGITS}}}(?![0-9a-f])")


def salt_of(ids: pl.Series | Iterable[str]) -> bytes:
    """What opaque ids are made with: a digest of all real ones, which nobody has who is shown some of them."""
    hasher = hashlib.blake2b(digest_size=16)
    for one in ids:
        hasher.update(f"{one}\0".encode())
    return hasher.digest()


class OpaqueNames(dict[str, str]):
    """The opaque id of each real one, and the way back. What nobody has asked for before gets a digest.

    Args:
        salt: See `salt_of`.
        given: Opaque ids that are no digests.
    """

    def __init__(self, salt: bytes, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {})
        self._salt = salt
        self._real = {opaque: one for one, opaque in self.items()}
        self._order: NDArray[np.int64] | None = None

    @classmethod
    def ranked(cls, salt: bytes, tables: Sequence[pl.DataFrame]) -> OpaqueNames:
        """Opaque ids in the order of the real ones."""
        columns = [table[name] for table in tables for name in NAMES if name in table.columns]
        columns += [table[name].explode() for table in tables for name in LISTS_OF_NAMES if name in table.columns]
        every = pl.concat([column.cast(pl.String).rename("id") for column in columns]).drop_nulls().unique().sort()
        ids = every.to_list()
        prefix = hashlib.blake2b(salt_of(ids), key=salt, digest_size=DIGITS // 4).hexdigest()
        return cls(salt, {one: f"{prefix}{rank:0{DIGITS // 2}d}" for rank, one in enumerate(ids)})

    def __missing__(self, one: str) -> str:
        opaque = hashlib.blake2b(one.encode(), key=self._salt, digest_size=DIGITS // 2).hexdigest()
        self._real[opaque] = one
        self[one] = opaque
        return opaque

    def real(self, opaque: str) -> str:
        """The id that an opaque one stands for.

        Raises:
            MisuseError: When it stands for none.
        """
        if opaque not in self._real:
            raise MisuseError(f"There is an answer for {opaque!r}, which is none of the items that were asked about.")
        return self._real[opaque]

    def table(self, items: pl.DataFrame) -> pl.DataFrame:
        """Items with opaque ids."""
        named = [pl.col(name) for name in NAMES if name in items.columns]
        listed = [pl.col(name) for name in LISTS_OF_NAMES if name in items.columns]
        every = pl.concat([pl.Series(dtype=pl.String), *items.select(named).get_columns()], how="vertical")
        every = pl.concat([every, *(column.explode() for column in items.select(listed).get_columns())])
        real = every.drop_nulls().unique()
        opaque = pl.Series([self[one] for one in real], dtype=pl.String)
        exchanged = pl.element().replace_strict(real, opaque, default=None, return_dtype=pl.String)
        return items.with_columns(
            *(column.replace_strict(real, opaque, default=None, return_dtype=pl.String) for column in named),
            *(column.list.eval(exchanged) for column in listed),
        )

    def part(self, part: Part) -> Part:
        """A part as a method is handed it."""
        return replace(
            part,
            items=self.table(part.items),
            targets=self._targets(part.targets, part),
            media=None if part.media is None else part.media.renamed({one: self[one] for one in part.media.ids}),
            layers={name: layer.renamed(self) for name, layer in part.layers.items()},
            salt=b"",
        )

    def shuffled(self, part: Part) -> Part:
        """A part with its rows in the order of their opaque ids; `back` brings the answers into the order they had."""
        self._order = np.argsort([self[one] for one in part.item_ids], kind="stable").astype(np.int64)
        return part.take(self._order)

    def _targets(self, targets: Targets | None, part: Part) -> Targets | None:
        if not isinstance(targets, MaskTargets):
            return targets
        own = {stem(one): self[one] for one in part.items["media_ids"].explode().drop_nulls()}
        return replace(targets, masks=renamed(targets.masks, lambda item: own.get(item, item)))

    def shown(self, predictions: Any) -> Any:
        """Predictions with opaque ids."""
        return renamed(predictions, self.__getitem__)

    def back(self, predictions: Any) -> Any:
        """Predictions with the real ids.

        Raises:
            MisuseError: When there is an answer for something that was not asked.
        """
        if self._order is not None and len(predictions.items) == len(self._order):
            predictions = predictions.select([predictions.items[row] for row in np.argsort(self._order)])
        return renamed(predictions, self.real)

    def text(self, sentence: str) -> str:
        """A sentence that names real ids."""
        return _OPAQUE.sub(lambda found: self._real.get(found[0], found[0]), sentence)

    @contextmanager
    def in_errors(self, *media: MediaFiles | None) -> Iterator[None]:
        """Lets errors speak of files as a person would look for them."""
        try:
            yield
        except FieldmarkError as error:
            if isinstance(error, InputError) and (real := self._real.get(error.where)) is not None:
                place = next((one.where(real) for one in media if one is not None and real in one.ids), real)
                error.args = tuple(str(arg).replace(error.where, place) for arg in error.args)
                error.where = place
            error.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in error.args)
            raise


class _PlainNames(OpaqueNames):
    """Ids that have nothing to hide."""

    def __init__(self) -> None:
        super().__init__(b"")

    def shown(self, predictions: Any) -> Any:
        return predictions

    def back(self, predictions: Any) -> Any:
        return predictions


@contextmanager
def blinded(part: Part, *, shuffled: bool = False) -> Iterator[tuple[Part, OpaqueNames]]:
    """A part as a method is handed it to answer, and the way back.

    Args:
        part: The part.
        shuffled: Whether its rows come in the order of their opaque ids: that of a release often goes by class.
    """
    if not part.salt:
        yield part, _PlainNames()
        return
    names = OpaqueNames(part.salt)
    with names.in_errors(part.media):
        yield names.part(names.shuffled(part) if shuffled else part), names


@contextmanager
def blinded_lesson(*parts: Part | None) -> Iterator[tuple[list[Any], OpaqueNames]]:
    """Parts with labels as somebody is handed them to learn from, and the way back."""
    salt = next(part.salt for part in parts if part is not None)
    if not salt:
        yield list(parts), _PlainNames()
        return
    names = OpaqueNames.ranked(salt, [part.items for part in parts if part is not None])
    with names.in_errors(*(part.media for part in parts if part is not None)):
        yield [None if part is None else names.part(part) for part in parts], names


@contextmanager
def blinded_view(view: View, *, shuffled: bool = False) -> Iterator[tuple[View, OpaqueNames]]:
    """A view as a method is handed it to learn from, and the way back; `shuffled` is for its test, as for `blinded`."""
    with blinded_lesson(view.train, view.val) as ((train, val), names):
        others = {"unlabeled": view.unlabeled, "test": view.test}
        shown = {name: part for name, part in others.items() if part is not None and part.salt}
        digests = OpaqueNames(view.train.salt)
        with digests.in_errors(*(part.media for part in shown.values())):
            if shuffled and "test" in shown:
                shown["test"] = digests.shuffled(shown["test"])
            blind: dict[str, Any] = {name: digests.part(part) for name, part in shown.items()}
            yield replace(view, train=train, val=val, **blind), names


@contextmanager
def blinded_table(predictions: Any, items: pl.DataFrame) -> Iterator[tuple[Any, pl.DataFrame, OpaqueNames]]:
    """Predictions and their items as a step is handed them, and the way back."""
    names = OpaqueNames(salt_of(predictions.items))
    with names.in_errors():
        yield names.shown(predictions), names.table(items), names
