"""Packs: photos decoded once, made square and kept so that a batch is a few copies from memory.

```
ROOT/<digest>/pixels.bin     raw: n x side x side x 3 bytes; jpeg: one file after the other
              aspects.npy    width / height of each photo before it was made square, 0 for one that cannot be read
              offsets.npy    jpeg only: where each photo begins
              pack.json      side, format, the photos that cannot be read, and contents to watch; written last
```

A pack belongs to a list of photos with their boxes, a side and a format. Photos that were replaced in place since are
noticed by comparing the contents of a few dozen of them, and of every one that could not be read: those are what
people mend.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features.crops import Box, PhotoBoxes
from fieldmark.features.photos import PhotoError, decode_resized
from fieldmark.features.resampling import ResizedWindow
from fieldmark.features.store import content_key, default_store
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.parallel_reads import read_each
from fieldmark.work.progress import progress

Format = Literal["raw", "jpeg"]
Pixels = NDArray[np.uint8]
Reader = Callable[[str], bytes]

PACK_VERSION = 2
BLOCK_PHOTOS = 32
SAMPLED_PHOTOS = 48
JPEG_QUALITY = 95


def default_packs() -> Path:
    """Where packs are kept: beside the features."""
    return default_store().parent / "packs"


def decode_squashed(data: bytes, side_px: int, box: Box | None = None) -> tuple[Pixels, float]:
    """A photo, or a box of it, made square, whatever its shape, and its width / height before.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    whole = (side_px, side_px), ResizedWindow(0, 0, side_px, side_px)
    return decode_resized(data, side_px, lambda width, height: whole, box)


class KeptSquares(Protocol):
    """Squares of photos as a pack keeps them, to be read into memory that somebody else has ready."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def fill(self, squares: Pixels) -> None:
        """Writes them to an array of their shape."""
        ...


@dataclass(frozen=True)
class RawSquares:
    """Some squares of a raw pack."""

    pixels: Pixels
    rows: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.rows), *self.pixels.shape[1:]

    def fill(self, squares: Pixels) -> None:
        np.take(self.pixels, self.rows, axis=0, out=squares, mode="clip")  # the usual mode would buffer them


@dataclass(frozen=True)
class EncodedSquares:
    """Squares that are still JPEGs: a GPU may decode them itself."""

    files: tuple[Pixels, ...]
    side_px: int

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.files), self.side_px, self.side_px, 3

    def fill(self, squares: Pixels) -> None:
        for square, file in zip(squares, self.files, strict=True):
            # Sixteen threads that decode with Pillow spend most of their time waiting for the interpreter.
            simplejpeg.decode_jpeg(file, buffer=square)


def filled(squares: KeptSquares) -> Pixels:
    """The squares in an array of their own."""
    found = np.empty(squares.shape, dtype=np.uint8)
    squares.fill(found)
    return found


class UnpackedPhotos:
    """Squares of photos by number, decoded each time. What a pack holds, without the pack."""

    def __init__(
        self, media_ids: Sequence[str], read_medium: Reader, side_px: int, boxes: PhotoBoxes | None = None
    ) -> None:
        self.media_ids, self.side_px, self.boxes = tuple(media_ids), side_px, boxes or PhotoBoxes()
        self._read_medium = read_medium

    def squares(self, rows: NDArray[np.int64]) -> tuple[Pixels, NDArray[np.float32]]:
        """The squares of some photos and their width / height."""
        wanted = [self.media_ids[row] for row in rows]
        read = zip(wanted, read_each(self._read_medium, wanted), strict=True)
        pairs = [decode_squashed(data, self.side_px, self.boxes.of(media_id)) for media_id, data in read]
        return np.stack([square for square, _ in pairs]), np.array([aspect for _, aspect in pairs], dtype=np.float32)

    read = squares

    def find_problems(self) -> dict[str, str]:
        """Every photo that cannot be read, with what is wrong with it."""
        problems: dict[str, str] = {}
        with progress("looking through photos", len(self.media_ids)) as tick:
            blocks = blocks_of(self.media_ids, BLOCK_PHOTOS)
            for block in map_blocks(self._look, blocks, all_cores("thread")):
                problems |= {media_id: problem for media_id, problem in block.items() if problem}
                tick(len(block))
        return problems

    def _look(self, block: Sequence[str]) -> dict[str, str]:
        problem_of = {}
        for media_id, data in zip(block, read_each(self._read_medium, block), strict=True):
            try:
                decode_squashed(data, self.side_px, self.boxes.of(media_id))
                problem_of[media_id] = ""
            except PhotoError as error:
                problem_of[media_id] = str(error)
        return problem_of


@dataclass(frozen=True)
class Pack:
    """An open pack."""

    folder: Path
    side_px: int
    format: Format
    aspects: NDArray[np.float32]
    problems: dict[str, str]
    pixels: NDArray[np.uint8]
    offsets: NDArray[np.int64] | None
    boxes: PhotoBoxes

    def squares(self, rows: NDArray[np.int64]) -> tuple[Pixels, NDArray[np.float32]]:
        """The squares of some photos and their width / height."""
        return filled(self.read(rows)[0]), self.aspects[rows]

    def read(self, rows: NDArray[np.int64]) -> tuple[KeptSquares, NDArray[np.float32]]:
        """The same, as they are kept."""
        if self.offsets is None:
            return RawSquares(self.pixels, rows), self.aspects[rows]
        files = tuple(np.array(self.pixels[self.offsets[row] : self.offsets[row + 1]]) for row in rows)
        return EncodedSquares(files, self.side_px), self.aspects[rows]

    def find_problems(self) -> dict[str, str]:
        """Every photo that cannot be read, with what is wrong with it."""
        return self.problems


def open_pack(
    media_ids: Sequence[str],
    read_medium: Reader,
    side_px: int,
    form: Format,
    root: Path,
    boxes: PhotoBoxes | None = None,
) -> Pack:
    """Opens the pack of a list of photos, and makes it where there is none or where photos have changed since.

    Args:
        media_ids: The photos.
        read_medium: Returns the bytes of a photo.
        side_px: The side of the squares.
        form: How they are kept.
        root: Where packs are kept.
        boxes: Which part of each photo is shown; without any, whole photos.

    Raises:
        InputError: When the disk has no room for it.
    """
    boxes = boxes or PhotoBoxes()
    folder = root / _digest(media_ids, side_px, form, boxes)
    facts = _facts(folder)
    if facts is None or facts["contents"] != _contents(facts["contents"], read_medium):
        _write(folder, media_ids, read_medium, side_px, form, boxes)
        facts = json.loads((folder / "pack.json").read_text())
    aspects = np.load(folder / "aspects.npy")
    pixels: NDArray[np.uint8] = np.memmap(folder / "pixels.bin", dtype=np.uint8, mode="r")
    offsets = np.load(folder / "offsets.npy") if form == "jpeg" else None
    pixels = pixels if form == "jpeg" else pixels.reshape(-1, side_px, side_px, 3)
    return Pack(folder, side_px, form, aspects, facts["problems"], pixels, offsets, boxes)


def _digest(media_ids: Sequence[str], side_px: int, form: Format, boxes: PhotoBoxes) -> str:
    hasher = hashlib.blake2b(json.dumps([PACK_VERSION, side_px, form]).encode(), digest_size=16)
    for media_id in media_ids:
        hasher.update(media_id.encode() + b"\0")
        if (box := boxes.of(media_id)) is not None:
            hasher.update(box.key)
    return hasher.hexdigest()


def _facts(folder: Path) -> dict[str, Any] | None:
    path = folder / "pack.json"
    return json.loads(path.read_text()) if path.exists() else None


def _contents(media_ids: Iterable[str], read_medium: Reader) -> dict[str, str]:
    """A fingerprint of the contents of each of some photos."""
    watched = list(media_ids)
    return {one: content_key(data).hex() for one, data in zip(watched, read_each(read_medium, watched), strict=True)}


def _write(
    folder: Path, media_ids: Sequence[str], read_medium: Reader, side_px: int, form: Format, boxes: PhotoBoxes
) -> None:
    _check_room(folder, len(media_ids) * side_px * side_px * 3 // (1 if form == "raw" else 8))
    aspects = np.zeros(len(media_ids), dtype=np.float32)
    offsets, row = [0], 0
    problems: dict[str, str] = {}

    def prepare(block: Sequence[str]) -> list[tuple[str, bytes, float, str]]:
        photos = zip(block, read_each(read_medium, block), strict=True)
        return [_square_bytes(media_id, data, side_px, form, boxes.of(media_id)) for media_id, data in photos]

    with appearing_folder(folder, overwrite=True) as partial, (partial / "pixels.bin").open("wb") as file:
        with progress("packing photos", len(media_ids)) as tick:
            for block in map_blocks(prepare, blocks_of(media_ids, BLOCK_PHOTOS), all_cores("thread")):
                for media_id, data, aspect, problem in block:
                    file.write(data)
                    aspects[row] = aspect
                    offsets.append(offsets[-1] + len(data))
                    problems.update({media_id: problem} if problem else {})
                    row += 1
                tick(len(block))
        np.save(partial / "aspects.npy", aspects)
        if form == "jpeg":
            np.save(partial / "offsets.npy", np.array(offsets, dtype=np.int64))
        spread = np.unique(np.linspace(0, len(media_ids) - 1, SAMPLED_PHOTOS).astype(int))
        watched = dict.fromkeys([*(media_ids[row] for row in spread), *problems])
        contents = _contents(watched, read_medium)
        facts: dict[str, Any] = {"side_px": side_px, "format": form, "problems": problems, "contents": contents}
        write_json(partial / "pack.json", facts)


def _square_bytes(
    media_id: str, data: bytes, side_px: int, form: Format, box: Box | None
) -> tuple[str, bytes, float, str]:
    """One photo as the bytes that are packed; a gray square where it cannot be read."""
    try:
        (square, aspect), problem = decode_squashed(data, side_px, box), ""
    except PhotoError as error:
        square, aspect, problem = np.full((side_px, side_px, 3), 127, dtype=np.uint8), 0.0, str(error)
    if form == "raw":
        return media_id, square.tobytes(), aspect, problem
    encoded = io.BytesIO()
    Image.fromarray(square).save(encoded, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return media_id, encoded.getvalue(), aspect, problem


def _check_room(folder: Path, needed_bytes: int) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if needed_bytes > free:
        raise InputError(
            folder.parent,
            found=f"{free / 1e9:.1f} GB free",
            expected=f"{needed_bytes / 1e9:.1f} GB for the pack of resized photos",
            hint="Point FIELDMARK_CACHE at a larger disk, or pass --set pack=jpeg or --set pack=none.",
        )
