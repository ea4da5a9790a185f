"""Encoders: networks trained on one's own photos whose features serve for other species.

```
OUT/
  model.json, weights.safetensors, README.md   a model (`models.model`) whose network is a backbone: backbone=OUT
  photos.csv                                   every photo that it has learned from: folder, file, label, digest
```
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.store import content_key
from fieldmark.fitting.configuration import configured_method
from fieldmark.models import Model
from fieldmark.registry import require
from fieldmark.storage.files import appearing_folder, only_writer
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.tables.media import PHOTO
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release

PHOTOS_FILE = "photos.csv"
# Where `auto` looks for encoders.
FOLDER = Path("encoders")
BENCHMARK, METHOD = "folder", "encoder"
# Below this many classes, encoders were no better on related species than the network they started from.
FEW_CLASSES = 20


@dataclass(frozen=True)
class TrainedEncoder:
    """An encoder that was trained.

    Args:
        folder: Where it lies; what `backbone=` takes.
        photos: From how many photos it learned.
        classes: How many classes those show.
        remarks: What a person should know about it, one sentence each.
    """

    folder: Path
    photos: int
    classes: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Photo:
    """A photo to learn from: which folder it lies in, by number, its path there, class and observation."""

    folder: int
    path: str
    label: str
    observation: str


def train_encoder(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> TrainedEncoder:
    """Trains an encoder on the photos of one or more folders with a folder per class.

    Photos of a folder's own test part are left out; where a folder has no parts, all photos are learned from.

    Args:
        folders: The folders, as `fieldmark fit folder --data` takes them; a class in several of them is one class.
        out: The folder to write.
        settings: Settings of the method `encoder`: network, size, epochs, relatives, ...
        seed: The seed of the training.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When a folder is at fault.
        MisuseError: When settings are, or when there are fewer than two classes.
    """
    if not folders:
        raise MisuseError("Name at least one folder of photos, with a folder for each class.")
    require("torch", "Training an encoder")
    configured = configured_method(METHOD, settings or {}, seed)
    declared = BENCHMARKS[BENCHMARK]
    opened = [open_benchmark(declared, open_release(declared, folder), seed=seed) for folder in folders]
    photos = [photo for number, one in enumerate(opened) for photo in _photos_of(number, one)]
    labels = Labels.of(photo.label for photo in photos)
    if len(labels) < 2:
        raise MisuseError(f"An encoder needs photos of two classes or more, found {len(labels)} in {folders[0]}.")
    taxa = pl.concat([one.dataset.taxa for one in opened], how="diagonal_relaxed").unique("label", maintain_order=True)
    with only_writer(Path(out)), appearing_folder(Path(out), overwrite=overwrite) as folder:
        method: Any = configured.method
        fitted = method.learn(_to_learn(photos, opened, labels, taxa), len(labels), Path(f"{out}.training"))
        digests = [one.dataset.digest for one in opened]
        trained = {
            "benchmark": BENCHMARK,
            "version": declared.version,
            "parts": ["train"],
            "seed": seed,
            "data_digest": digests[0] if len(digests) == 1 else hashlib.blake2b("".join(digests).encode()).hexdigest(),
            "world": next((one.dataset.release.world for one in opened if one.dataset.release.world), None),
            "external_data": list(method.external_data),
        }
        Model(METHOD, fitted, (), labels, taxa.filter(pl.col("label").is_in(labels.names)), {}, trained).save(folder)
        _write_photos(folder / PHOTOS_FILE, photos, opened, folders)
    remarks = [*fitted.remarks]
    if len(labels) < FEW_CLASSES:
        remarks.append(
            f"It learned {len(labels)} classes. From fewer than {FEW_CLASSES}, encoders did not help related species "
            "(docs/training.md): compare it with the network it started from."
        )
    return TrainedEncoder(Path(out), len(photos), len(labels), tuple(remarks))


def encoders_at_hand(opened: Opened) -> dict[str, int]:
    """The encoders in `encoders/`, and from how many photos of a release each has learned."""
    tables = sorted(FOLDER.glob(f"*/{PHOTOS_FILE}"))
    if not tables:
        return {}
    view = opened.view
    here = {
        content_key(data).hex()
        for part in (view.train, view.val, view.test)
        if part is not None and part.media is not None
        for media in part.items["media_ids"].to_list()
        for data in part.media.read.many(media)
    }
    learned = {path.parent.as_posix(): set(pl.read_csv(path)["digest"]) for path in tables}
    return {folder: len(digests & here) for folder, digests in learned.items()}


def _photos_of(number: int, opened: Opened) -> list[_Photo]:
    dataset = opened.dataset
    if dataset.medium != PHOTO:
        raise InputError(dataset.release.root, found=dataset.medium.plural, expected="photos in folders, one per class")
    has_parts = bool(dataset.media["parts"].list.len().fill_null(0).sum())
    parts = ("train", "val") if has_parts else ("train", "val", "test")
    path_of = dataset.media_paths
    return [
        _Photo(number, path_of[medium], label, observation)
        for part in parts
        for media, label, observation in opened.items[part].select("media_ids", "label", "observation_id").iter_rows()
        for medium in media
        if label is not None and label != UNKNOWN_NAME
    ]


def _to_learn(photos: Sequence[_Photo], opened: Sequence[Opened], labels: Labels, taxa: pl.DataFrame) -> Any:
    """The photos as the method takes them; the number of a photo is its id."""
    module: Any = require("fieldmark.methods.encoder", "Training an encoder")
    ids = {f"{photo.folder}/{photo.path}": photo for photo in photos}
    releases = [one.dataset.release for one in opened]

    def read(one: str) -> bytes:
        photo = ids[one]
        data: bytes = releases[photo.folder].read(photo.path)
        return data

    species = labels.encode([photo.label for photo in photos])
    genus_of = dict(taxa.select("label", "genus").iter_rows()) if "genus" in taxa.columns else {}
    genera = [genus_of.get(photo.label) for photo in photos]
    code_of = {genus: code for code, genus in enumerate(dict.fromkeys(genus for genus in genera if genus))}
    groups = np.unique([f"{photo.folder}/{photo.observation}" for photo in photos], return_inverse=True)[1]
    codes = np.array([code_of.get(genus, -1) for genus in genera], dtype=np.int32)
    return module.EncoderPhotos(list(ids), read, species, codes, groups.astype(np.int64))


def _write_photos(
    file: Path, photos: Sequence[_Photo], opened: Sequence[Opened], folders: Sequence[str | Path]
) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        table = csv.writer(text)
        table.writerow(["folder", "file", "label", "digest"])
        for photo in photos:
            digest = content_key(opened[photo.folder].dataset.release.read(photo.path)).hex()
            table.writerow([Path(folders[photo.folder]).name, photo.path, photo.label, digest])
