"""Inputs: what a method may read of an item, declared by the dataset and allowed by the task."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import IO, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.masks.parts import Mask, masks_by_part
from fieldmark.masks.runlengths import MaskRow
from fieldmark.tables.media import MEDIA, Medium

KeyedBy = Literal["media_id", "observation_id"]


@dataclass(frozen=True)
class Input:
    """One thing that is known about items.

    Args:
        name: As tasks allow it and settings name it (`satellite.backbone=...`).
        columns: The columns of the items it stands for.
        medium: The name of its medium, for files that are opened by media id; empty for anything else.
        extractor: What makes features of it: a backbone, where nobody asks for another, or for layers one of
            `features.settings.ENCODERS`; empty for the encoder of columns.
        codes: Whether whole numbers in its columns are names of something (land cover), not amounts.
    """

    name: str
    columns: tuple[str, ...] = ()
    medium: str = ""
    extractor: str = ""
    codes: bool = False


MEDIA_INPUTS: Mapping[str, Input] = {
    name: Input(name, medium.columns, name, medium.extractor) for name, medium in MEDIA.items()
}
PHOTO_INPUT = MEDIA_INPUTS["photo"]
# What datasets know about items under the names that this field uses.
CONTEXT = (
    Input("date", ("date",)),
    Input("time", ("time",)),
    Input("site", ("site",)),
    Input("place", ("lat", "lon")),
    Input("habitat", ("habitat",)),
    Input("substrate", ("substrate", "meta_substrate")),
    Input("observer", ("observer",)),
    Input("elevation", ("elevation_m",)),
    Input("landcover", ("landcover",), codes=True),
    Input("region", ("country", "continent", "region", "district", "biogeographical_region")),
)


def input_of(column: str) -> str:
    """The input that a column of the items belongs to; a column that no input of this field has goes by its own name.

    >>> input_of("lon"), input_of("month"), input_of("stand_age")
    ('place', 'date', 'stand_age')
    """
    wanted = "date" if column == "month" else column
    return next((declared.name for declared in CONTEXT if wanted in declared.columns), column)


class Layer(ABC):
    """What a release holds besides media and tables (masks, captions, climate): looked up by id, many at once.

    Subclasses are dataclasses; what they look up in is read when it is first needed, and left behind when pickled.

    Attributes:
        input: The input it belongs to (`satellite` for both of its bands); empty where no method may read it.
        by: Whether it is asked for by media id or by observation id.
    """

    input: ClassVar[str]
    by: ClassVar[KeyedBy]

    @abstractmethod
    def read(self, ids: Sequence[str]) -> list[Any]:
        """What there is for each id, None where there is nothing."""

    def __call__(self, item: str) -> Any:
        """What there is for one id."""
        return self.read([item])[0]

    def files(self, ids: Sequence[str]) -> list[bytes | None]:
        """The files behind them, for layers that are pictures and can be made features of."""
        raise MisuseError(f"The input {self.input} holds no pictures, so that no backbone can look at it.")

    def there(self, ids: Sequence[str]) -> list[bool]:
        """Which of them have a file, without reading any where that can be known."""
        return [file is not None for file in self.files(ids)]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """One row of numbers for each id, NaN where one is missing, for layers that hold numbers."""
        raise MisuseError(f"The input {self.input} holds no numbers.")

    def texts(self, ids: Sequence[str]) -> Iterator[str | None]:
        """The text of each id, one after the other, for layers that hold texts."""
        raise MisuseError(f"The input {self.input} holds no texts.")

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class MaskLayer(Layer):
    """Masks of photos by part."""

    input = "masks"
    by = "media_id"

    @abstractmethod
    def rows(self, ids: Sequence[str]) -> list[tuple[MaskRow, ...]]:
        """The masks of each photo as run lengths, the whole last; none where it has none."""

    @abstractmethod
    def names(self, ids: Sequence[str]) -> set[str]:
        """The parts that are drawn in some photos; no mask is decoded for it."""

    def instances(self, media_id: str) -> tuple[MaskRow, ...]:
        """Every mask of a photo by itself, where a part is drawn several times; the whole last."""
        return self.rows([media_id])[0]

    def read(self, ids: Sequence[str]) -> list[dict[str, Mask] | None]:
        """The masks of each photo by part, those of one part together; None where there are none."""
        return [masks_by_part(rows) or None for rows in self.rows(ids)]


@dataclass(frozen=True)
class OwnLayer(Layer):
    """A layer that answers only for the ids of one part, which may be other ones than those of the release."""

    _layer: Layer
    _real: Mapping[str, str]
    by: KeyedBy  # type: ignore[misc]
    input: str  # type: ignore[misc]

    @classmethod
    def of(cls, layer: Layer, ids: Sequence[str]) -> OwnLayer:
        """The layer for some ids only."""
        if isinstance(layer, OwnLayer):
            return replace(layer, _real={one: real for one in ids if (real := layer._real.get(one)) is not None})
        return cls(layer, {one: one for one in ids}, layer.by, layer.input)

    def together(self, other: OwnLayer) -> OwnLayer:
        """The layer for the ids of two parts."""
        return replace(self, _real={**self._real, **other._real})

    def renamed(self, name_of: Mapping[str, str]) -> OwnLayer:
        """The same by other ids."""
        return replace(self, _real={name_of[one]: real for one, real in self._real.items()})

    @property
    def coded(self) -> tuple[tuple[int, ...], int]:
        """For patches of maps: the bands that hold codes, and how many codes there are; none for any other layer."""
        return getattr(self._layer, "code_bands", ()), getattr(self._layer, "codes", 0)

    def read(self, ids: Sequence[str]) -> list[Any]:
        return self._layer.read(self._own(ids))

    def files(self, ids: Sequence[str]) -> list[bytes | None]:
        return self._layer.files(self._own(ids))

    def there(self, ids: Sequence[str]) -> list[bool]:
        return self._layer.there(self._own(ids))

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        return self._layer.numbers(self._own(ids))

    def texts(self, ids: Sequence[str]) -> Iterator[str | None]:
        return self._layer.texts(self._own(ids))

    def _own(self, ids: Sequence[str]) -> list[str]:
        try:
            return [self._real[one] for one in ids]
        except KeyError as error:
            raise NotInPartError(error.args[0]) from None


# A recording may be long, and as many as this are held at a time.
OPENED_AHEAD = 8
NAMELESS_BUFFER = 1 << 16


class Files(Protocol):
    """Where files are opened by their path; a release is one."""

    def open(self, path: str) -> IO[bytes]: ...

    def read(self, path: str) -> bytes: ...

    def where(self, path: str) -> str: ...

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]: ...

    def open_many(self, paths: Iterable[str], ahead: int) -> Iterator[IO[bytes]]: ...

    def sizes(self, paths: Iterable[str]) -> dict[str, int]: ...


class NotInPartError(LookupError):
    """Somebody asked a part for what belongs to another one."""

    def __init__(self, item: str) -> None:
        super().__init__(f"{item!r} is not among what this part may open")


@dataclass(frozen=True)
class MediaFiles:
    """Photos or recordings by their id; those of a part open nothing else.

    Where they lie is nobody's business who was handed a part: `Dataset.media_paths` tells the harness. Python keeps
    nothing from a program that looks for it; what is kept from one that is merely careless are names and times.

    Args:
        medium: Whether they are photos or recordings.
        _store: Where they lie.
        _path_of: The path of each.
        _named: Whether files tell their names; not those of a part that a method is handed.
    """

    medium: Medium
    _store: Files
    _path_of: Mapping[str, str]
    _named: bool = True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all of them."""
        return tuple(self._path_of)

    @property
    def read(self) -> MediumReader:
        """Returns the bytes of one photo or recording: `read(media_id)`; of many: `read.many(media_ids)`."""
        return MediumReader(self)

    @property
    def open(self) -> MediumOpener:
        """Opens one photo or recording, for what is too long to hold in memory: `open(media_id)`; many: `open.many`."""
        return MediumOpener(self)

    def sizes(self, media_ids: Iterable[str]) -> dict[str, int]:
        """How many bytes each of them has; those that are not there are left out."""
        asked = {one: self._path(one) for one in media_ids}
        there = self._store.sizes(asked.values())
        return {one: there[path] for one, path in asked.items() if path in there}

    def where(self, media_id: str) -> str:
        """What to call one photo or recording in a sentence: its place, or its id where that is all that is told."""
        path = self._path(media_id)
        return self._store.where(path) if self._named else media_id

    def only(self, media_ids: Sequence[str]) -> MediaFiles:
        """Those of some ids."""
        return replace(self, _path_of={one: self._path(one) for one in media_ids})

    def together(self, other: MediaFiles) -> MediaFiles:
        """Those of two parts."""
        return replace(self, _path_of={**self._path_of, **other._path_of})

    def renamed(self, name_of: Mapping[str, str]) -> MediaFiles:
        """The same by other ids, and without the names of their files."""
        return replace(self, _path_of={name_of[one]: path for one, path in self._path_of.items()}, _named=False)

    def _path(self, media_id: str) -> str:
        try:
            return self._path_of[media_id]
        except KeyError:
            raise NotInPartError(media_id) from None

    def _opened(self, file: IO[bytes]) -> IO[bytes]:
        return file if self._named else io.BufferedReader(_Nameless(file), NAMELESS_BUFFER)


class _Nameless(io.RawIOBase):
    """An open file of which only the bytes can be had: no name, and no number to ask the system for its times."""

    def __init__(self, file: IO[bytes]) -> None:
        self.__file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.__file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self.__file.seek(offset, whence)

    def tell(self) -> int:
        return self.__file.tell()

    def close(self) -> None:
        self.__file.close()
        super().close()


@dataclass(frozen=True)
class MediumReader:
    """Reads photos or recordings by their id: one by calling it, many beside each other where they lie far away."""

    media: MediaFiles

    def __call__(self, media_id: str) -> bytes:
        return self.media._store.read(self.media._path(media_id))

    def only(self, media_ids: Sequence[str]) -> MediumReader:
        """One that reads some of them and no others."""
        return MediumReader(self.media.only(media_ids))

    def many(self, media_ids: Iterable[str]) -> Iterator[bytes]:
        """The bytes of each, in order."""
        return self.media._store.read_many([self.media._path(one) for one in media_ids])


@dataclass(frozen=True)
class MediumOpener:
    """Opens photos or recordings by their id: one by calling it; many one after the other, the next few ahead."""

    media: MediaFiles

    def __call__(self, media_id: str) -> IO[bytes]:
        return self.media._opened(self.media._store.open(self.media._path(media_id)))

    def only(self, media_ids: Sequence[str]) -> MediumOpener:
        """One that opens some of them and no others."""
        return MediumOpener(self.media.only(media_ids))

    def many(self, media_ids: Iterable[str]) -> Iterator[IO[bytes]]:
        """Each of them opened, in order; whoever takes a file closes it."""
        opened = self.media._store.open_many([self.media._path(one) for one in media_ids], OPENED_AHEAD)
        return map(self.media._opened, opened)
