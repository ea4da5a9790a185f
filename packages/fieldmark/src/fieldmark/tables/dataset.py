"""What every dataset shows, whatever its files look like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, Protocol

import polars as pl

from fieldmark.notebooks import BLUE, DrawnPlot, draw_plot, html_note, html_page, html_table
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS, Input, Layer, MediaFiles
from fieldmark.tables.media import PHOTO, Medium
from fieldmark.tables.schema import EVENTS, MEDIA, OBSERVATIONS, TAXA, Schema

# Columns that readers were taught after runs had been stored: they leave the digests of releases as they were.
READ_SINCE = ("red_list", "species_poisonous", "test_part")


@dataclass(frozen=True)
class Dataset:
    """One release as tables.

    Args:
        name: The name of the dataset, which a world in its layout bears as well.
        release: Where the files are.
        taxa: One row per label (`tables.Taxon`, and the ranks that are known).
        observations: One row per observation (`tables.Observation`, and what else is known about it).
        media: One row per file (`tables.MediaFile`); none for a release of places alone.
        remarks: What a reader of the numbers should know about this release, one sentence each.
        layers: What else there is (masks, captions, climate, ...), looked up by media id or observation id.
        inputs: What methods may read of its items where a task allows it; without any, its media and the usual context.
        medium: Whether the media are photos or recordings.
        events: For soundscapes, what is heard when (`tables.Event`).
        tells_observations: Whether the release says which media belong together; where it does not, each is taken for
            an observation of its own.
    """

    name: str
    release: Release
    taxa: pl.DataFrame
    observations: pl.DataFrame
    media: pl.DataFrame
    remarks: tuple[str, ...] = ()
    layers: Mapping[str, Layer] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    medium: Medium = PHOTO
    events: pl.DataFrame | None = None
    tells_observations: bool = True

    def __post_init__(self) -> None:
        # Columns that a release does not have are there afterwards, empty, so that readers need not ask.
        schemas: dict[str, Schema[Any]] = {"taxa": TAXA, "observations": OBSERVATIONS, "media": MEDIA, "events": EVENTS}
        for name, schema in schemas.items():
            table = getattr(self, name)
            if table is not None:
                checked = schema.check(table, f"{self.name}: {name}")
                added = [column for column in checked.columns if column not in table.columns]
                # The release's own columns keep their order, and alone make the digest: stored runs must fit on.
                object.__setattr__(self, name, checked.select(*table.columns, *added))
                object.__setattr__(self, f"_own_{name}", tuple(table.columns))

    @cached_property
    def media_files(self) -> MediaFiles:
        """The photos or recordings by their id."""
        return MediaFiles(self.medium, self.release, self.media_paths)

    @cached_property
    def media_paths(self) -> dict[str, str]:
        """Where each of them lies in the release; for the harness and reports, never for methods."""
        return dict(zip(self.media["media_id"], self.media["path"], strict=True))

    @cached_property
    def inputs_by_name(self) -> dict[str, Input]:
        """What methods may read of its items, by name."""
        declared = self.inputs or (MEDIA_INPUTS[self.medium.name], *CONTEXT)
        return {one.name: one for one in declared}

    @property
    def main_input(self) -> Input:
        """The input that its media are."""
        return next(one for one in self.inputs_by_name.values() if one.medium == self.medium.name)

    def to_frame(self) -> pl.DataFrame:
        """One row for each photo or recording, with what is known about its observation."""
        further = [name for name in self.observations.columns if name not in self.media.columns]
        about = self.observations.select("observation_id", *further)
        return self.media.join(about, on="observation_id", how="left", maintain_order="left")

    def plot(self) -> DrawnPlot:
        """How many media each class has, the most frequent first: the long tail."""
        counts = (
            self.to_frame().drop_nulls("label").group_by("label").len().sort("len", descending=True)["len"].to_list()
        )

        def paint(axes: Any) -> None:
            axes.bar(range(1, len(counts) + 1), counts, width=0.9, color=BLUE)
            axes.set_yscale("log")
            mark = " (simulated)" if self.simulated else ""
            axes.set_xlabel(f"{len(counts):,} classes of {self.name}{mark}, the most frequent first")
            axes.set_ylabel(self.medium.plural)

        return draw_plot(paint)

    def __repr__(self) -> str:
        media = f"{len(self.media):,} {self.medium.plural}"
        return f"<Dataset {self.name}: {media}, {len(self.observations):,} observations, {len(self.taxa):,} taxa>"

    def _repr_html_(self) -> str:
        frame = self.to_frame().explode("parts")
        distinct = [pl.col(name).n_unique() for name in ("observation_id", "label")]
        by_part = frame.group_by("parts", maintain_order=True).agg(pl.len(), *distinct)
        rows = [[part or "in no part", *(f"{count:,}" for count in counts)] for part, *counts in by_part.iter_rows()]
        told = "observations" if self.tells_observations else "taken for observations"
        table = html_table(["part", self.medium.plural, told, "classes"], rows)
        layers = ", ".join(self.layers) or "none"
        note = f"{len(self.taxa):,} taxa; layers: {layers}; {self.release.root}"
        remarks = [html_note(remark) for remark in self.remarks]
        return html_page(self.name, table, html_note(note), *remarks, simulated=self.simulated)

    def read_medium(self, media_id: str) -> bytes:
        """Returns the bytes of one photo or recording."""
        return self.media_files.read(media_id)

    def open_medium(self, media_id: str) -> IO[bytes]:
        """Opens one photo or recording, for what is too long to hold in memory."""
        return self.media_files.open(media_id)

    def where(self, media_id: str) -> str:
        """The place of one photo or recording as a person would look for it."""
        return self.media_files.where(media_id)

    @cached_property
    def simulated(self) -> bool:
        return self.release.world is not None

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the tables: the same observations, labels and files in the same parts."""
        hasher = hashlib.blake2b(digest_size=16)
        for name in ("taxa", "observations", "media", "events"):
            if getattr(self, name) is not None:
                own = [column for column in getattr(self, f"_own_{name}") if column not in READ_SINCE]
                table = getattr(self, name).select(own)
                order = table.columns if name == "events" else table.columns[0]
                hasher.update(table.sort(order).write_json().encode())
        return hasher.hexdigest()


class DatasetOpener(Protocol):
    """Opens one subset of a release."""

    def __call__(self, release: Release, subset: str = "all") -> Dataset: ...
