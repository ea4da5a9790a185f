"""What every dataset shows, whatever its files look like."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, Literal, Protocol

import polars as pl

from fieldmark.release import Release
from fieldmark.tables import EVENTS, MEDIA, OBSERVATIONS, TAXA

MediaKind = Literal["photo", "recording"]


@dataclass(frozen=True)
class Dataset:
    """One release as tables.

    Args:
        name: The name of the dataset, which a world in its layout bears as well.
        release: Where the files are.
        taxa: One row per label (`tables.Taxon`, and the ranks that are known).
        observations: One row per observation (`tables.Observation`, and what else is known about it).
        media: One row per file (`tables.Medium`).
        remarks: What a reader of the numbers should know about this release, one sentence each.
        layers: What else there is (masks, captions, climate, ...): functions of a media id or an observation id that
            return None where there is nothing.
        media_kind: Whether the media are photos or recordings.
        events: For soundscapes, what is heard when (`tables.Event`).
    """

    name: str
    release: Release
    taxa: pl.DataFrame
    observations: pl.DataFrame
    media: pl.DataFrame
    remarks: tuple[str, ...] = ()
    layers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    media_kind: MediaKind = "photo"
    events: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        TAXA.check(self.taxa, f"{self.name}: taxa")
        OBSERVATIONS.check(self.observations, f"{self.name}: observations")
        MEDIA.check(self.media, f"{self.name}: media")
        if self.events is not None:
            EVENTS.check(self.events, f"{self.name}: events")

    def read_medium(self, media_id: str) -> bytes:
        """Returns the bytes of one photo or recording."""
        return self.release.read(self._path_of[media_id])

    def open_medium(self, media_id: str) -> IO[bytes]:
        """Opens one photo or recording, for what is too long to hold in memory."""
        return self.release.open(self._path_of[media_id])

    def where(self, media_id: str) -> str:
        """The place of one photo or recording as a person would look for it."""
        return self.release.where(self._path_of[media_id])

    @cached_property
    def simulated(self) -> bool:
        return self.release.world is not None

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the tables: the same observations, labels and files in the same parts."""
        hasher = hashlib.blake2b(digest_size=16)
        for table in (self.taxa, self.observations, self.media):
            hasher.update(table.sort(table.columns[0]).write_json().encode())
        if self.events is not None:
            hasher.update(self.events.sort(self.events.columns).write_json().encode())
        return hasher.hexdigest()

    @cached_property
    def _path_of(self) -> dict[str, str]:
        return dict(zip(self.media["media_id"], self.media["path"], strict=True))


class DatasetOpener(Protocol):
    """Opens one subset of a release."""

    def __call__(self, release: Release, subset: str = "all") -> Dataset: ...
