"""Inputs of programs: photos and a table about them, without labels, in one archive of the store.

```
images/<id>.jpg    a photo for each item
metadata.csv       hashed_id, and what else may be known of an item (country, continent)
```

Files and lines come in the secret order of the challenge and with one time for all, so that nothing but what they show
tells anything about labels.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.files import sha256_of
from fieldmark.tables.reader import read_csv
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.views.parts import Part
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.challenges.label_leaks import secret_order
from fieldmark_challenge.records.scratch import prefix_of
from fieldmark_challenge.records.storage import Storage

ID = "hashed_id"
IMAGES, METADATA = "images", "metadata.csv"
ENDING = ".jpg"
SAFE_ID = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]*")  # ids become names of files
THEN = (2000, 1, 1, 0, 0, 0)
THEN_S = 946_684_800.0
# What every table of items has, and which says nothing about a photo.
NOT_TOLD = ("item_id", "observation_id", "media_ids", "start_s", "end_s", "domain")
SAMPLE_ITEMS = 5
# A column that names the label of this share of the items holds the labels.
TELLING = 0.5


def read_items(folder: Path) -> pl.DataFrame:
    """The table of a folder of inputs, every photo of which is there.

    Raises:
        InputError: When the table or a photo is missing, or an id comes twice.
    """
    table, images = folder / METADATA, folder / IMAGES
    if not table.is_file() or not images.is_dir():
        raise InputError(folder, found=f"no {METADATA} or no {IMAGES}/", expected="a folder with both")
    with table.open("rb") as file:
        rows = read_csv(file, table, required=(ID,))
    seen: set[str] = set()
    for line, item in enumerate(rows[ID], 2):
        if not SAFE_ID.fullmatch(item):
            raise InputError(table, line=line, found=f"the id {item!r}", expected="letters, digits, '.', '_' and '-'")
        if item in seen:
            raise InputError(table, line=line, found=f"the id {item!r} again", expected="each item once")
        if not (images / f"{item}{ENDING}").is_file():
            raise InputError(table, line=line, found=f"the id {item!r}", expected=f"a photo {IMAGES}/{item}{ENDING}")
        seen.add(item)
    if not seen:
        raise InputError(table, found="no items", expected="a line for each item")
    return rows


def refuse_labels(rows: pl.DataFrame, label_of: Mapping[str, str]) -> None:
    """Refuses a table of which a column holds the labels.

    Raises:
        RefusalError: Names the column.
    """
    labels = [label_of.get(item) for item in rows[ID]]
    for name in rows.columns:
        told = sum(label is not None and value == label for value, label in zip(rows[name], labels, strict=True))
        if told > TELLING * len(labels):
            raise RefusalError(f"{METADATA}: the column {name!r} holds the labels, which programs must not see.")


def pack(folder: Path, rows: pl.DataFrame, target: Path, key: bytes) -> str:
    """Packs inputs in the secret order of a challenge; returns the SHA-256 of the archive."""
    order = secret_order(rows[ID], key)
    sorted_rows = pl.DataFrame({ID: order}).join(rows, on=ID, how="left", maintain_order="left")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(METADATA, THEN), sorted_rows.write_csv())
        for item in order:
            name = f"{IMAGES}/{item}{ENDING}"
            entry = archive.open(zipfile.ZipInfo(name, THEN), "w", force_zip64=True)
            with entry as sink, (folder / name).open("rb") as source:
                shutil.copyfileobj(source, sink, 1 << 20)
    return sha256_of(target)


def unpack_inputs(archive: Path, folder: Path) -> Path:
    """Unpacks inputs that `pack` packed, with one time for all files."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (THEN_S, THEN_S))
    return folder


def write_inputs(part: Part, folder: Path) -> Path:
    """Writes the photos of a part and what may be known of them as inputs for programs.

    Raises:
        MisuseError: When its items are not one photo each.
    """
    if part.media is None or not part.media.medium.visual or any(len(ids) != 1 for ids in part.items["media_ids"]):
        raise MisuseError("Inputs can be made from releases with one photo per item only; bring a folder of your own.")
    (folder / IMAGES).mkdir(parents=True)
    known = [name for name in part.items.columns if part.items[name].null_count() < len(part)]
    told = [name for name in known if name not in NOT_TOLD and not part.items.schema[name].is_nested()]
    part.items.select(pl.col("item_id").alias(ID), *told).write_csv(folder / METADATA)
    for item, (media_id,) in part.items.select("item_id", "media_ids").iter_rows():
        (folder / IMAGES / f"{item}{ENDING}").write_bytes(part.media.read(media_id))
    return folder


def inputs_of_release(
    benchmark: str, data: str | Path, folder: Path, *, sample: int = SAMPLE_ITEMS
) -> tuple[Path, Path]:
    """Writes what programs are run on from a release: the test part, and a few items of val (or train) to try them on.

    Returns:
        The folder of the inputs, and that of the sample.
    """
    declared = BENCHMARKS[benchmark]
    view = open_benchmark(declared, open_release(declared, data)).view
    if view.test is None:
        raise MisuseError(f"The release has no test part of {benchmark}.")
    public = view.val if view.val is not None and len(view.val) else view.train
    few = public.take(list(range(min(sample, len(public)))))
    return write_inputs(view.test, folder / "inputs"), write_inputs(few, folder / "sample")


class UnpackedInputs:
    """Inputs that a worker has unpacked, kept as long as the worker lives: one copy for many programs, read-only."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=prefix_of("inputs"))).resolve()
        self._lock = threading.Lock()

    def folder(self, storage: Storage, path: str, sha256: str) -> Path:
        """The folder with the inputs of an archive.

        Raises:
            RuntimeError: When the stored archive is another one.
        """
        target = self._folder / sha256
        with self._lock:
            if not target.is_dir():
                archive = storage.fetch(path, self._folder / "archive")
                if sha256_of(archive) != sha256:
                    raise RuntimeError("the stored inputs are not those of the challenge (their SHA-256 is another)")
                partial = self._folder / "partial"
                shutil.rmtree(partial, ignore_errors=True)
                unpack_inputs(archive, partial)
                archive.unlink()
                partial.rename(target)
        return target

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self._folder, ignore_errors=True)
