"""Random masks, written as folders of pictures and as Parquet with run lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
from PIL import Image

from fieldmark_tests.oracles.segmentation import (
    NO_PARTS,
    SPORES,
    WHOLE,
    Mask,
    Parts,
    mean_iou,
    mean_iou_of_parts,
    scored_photos,
)

PARTS = ("cap", "stem", "gills", "ring", "unknown underside")
Masks = dict[str, dict[str, Mask]]


@dataclass(frozen=True)
class MaskCase:
    """The masks of a run and of the truth, by photo (without its ending) and part."""

    run: Masks
    truth: Masks


def draw_masks(rng: Random) -> MaskCase:
    """Masks of a few small photos: empty ones, parts that overlap, other sizes, photos of nothing but spores."""
    with_parts = rng.random() < 0.8
    names = rng.sample(PARTS, rng.randint(1, 4)) if with_parts else [WHOLE]
    truth: Masks = {}
    run: Masks = {}
    for number in rng.sample(range(50), rng.randint(2, 6)):
        photo = f"{rng.randint(0, 9)}-{100 + number // 2}" if rng.random() < 0.8 else f"photo{number}"
        height, width = rng.randint(2, 8), rng.randint(2, 8)
        shown = {name: draw_mask(rng, height, width) for name in names if rng.random() < 0.8}
        if with_parts and rng.random() < 0.3:
            shown[WHOLE] = draw_mask(rng, height, width)
        if not shown:
            shown[names[0]] = draw_mask(rng, height, width)
        truth[photo] = {SPORES: draw_mask(rng, height, width)} if truth and rng.random() < 0.1 else shown
        run[photo] = draw_answer(rng, truth[photo], names, (height, width))
    if with_parts and rng.random() < 0.2:
        run = {photo: {WHOLE: next(iter(parts.values()))} for photo, parts in run.items()}
    return MaskCase(run, truth)


def draw_mask(rng: Random, height: int, width: int) -> Mask:
    """A mask that is empty, full or anything between."""
    rate = rng.choice((0.0, 0.2, 0.5, 0.5, 0.8, 1.0))
    return [[rng.random() < rate for _ in range(width)] for _ in range(height)]


def draw_answer(rng: Random, truth: Parts, names: Sequence[str], size: tuple[int, int]) -> dict[str, Mask]:
    """An answer near the truth, or of another size; some parts are missed, others are too many."""
    height, width = size if rng.random() < 0.7 else (draw_length(rng, size[0]), draw_length(rng, size[1]))
    answered: dict[str, Mask] = {}
    for name in names:
        if name in truth and (height, width) == size:
            answered[name] = [[pixel != (rng.random() < 0.2) for pixel in row] for row in truth[name]]
        elif rng.random() < 0.7:
            answered[name] = draw_mask(rng, height, width)
    return answered or {names[0]: draw_mask(rng, height, width)}


def draw_length(rng: Random, target: int) -> int:
    """Another height or width, such that each pixel has one nearest: no center falls on a border between two."""
    lengths = [n for n in range(1, 13) if all((2 * place + 1) * n % (2 * target) for place in range(target))]
    return rng.choice(lengths)


def write_folder(folder: Path, masks: Mapping[str, Parts], rng: Random) -> Path:
    """Writes a picture for each mask, parts in folders of their own; anything above 127 is white."""
    for photo, parts in masks.items():
        ending = rng.choice((".png", ".JPG.png", ".bmp", ".PNG"))
        for name, mask in parts.items():
            inside = folder if name == WHOLE and rng.random() < 0.5 else folder / name
            inside.mkdir(parents=True, exist_ok=True)
            values = bytes(rng.choice((128, 200, 255) if pixel else (0, 60, 127)) for row in mask for pixel in row)
            Image.frombytes("L", (len(mask[0]), len(mask)), values).save(inside / f"{photo}{ending}")
    return folder


def run_lengths(mask: Mask) -> list[int]:
    """Lengths that alternate from background, row by row."""
    lengths, current = [0], False
    for row in mask:
        for pixel in row:
            if pixel != current:
                lengths.append(0)
                current = pixel
            lengths[-1] += 1
    return lengths


def box(mask: Mask) -> list[int]:
    """Left, top, width and height of what a mask covers."""
    rows = [y for y, row in enumerate(mask) if any(row)]
    columns = [x for row in mask for x, pixel in enumerate(row) if pixel]
    if not rows:
        return [0, 0, 0, 0]
    return [min(columns), rows[0], max(columns) - min(columns) + 1, rows[-1] - rows[0] + 1]


def write_parquet(path: Path, masks: Mapping[str, Parts], rng: Random) -> Path:
    """Writes run lengths, with boxes behind them or without; some parts in two overlapping rows."""
    rows: list[tuple[str, str, int, int, list[int]]] = []
    boxes = rng.random() < 0.5
    for photo, parts in masks.items():
        for name, mask in parts.items():
            pieces = [mask]
            if rng.random() < 0.2:
                pieces = [[[pixel and rng.random() < 0.5 for pixel in row] for row in mask], mask]
            for piece in pieces:
                lengths = run_lengths(piece) + (box(piece) if boxes else [])
                rows.append((f"{photo}.JPG", name, len(mask[0]), len(mask), lengths))
    return write_rows(path, rows)


def write_rows(path: Path, rows: Sequence[tuple[str, str, int, int, list[int]]]) -> Path:
    """Writes rows of file name, label, width, height and run lengths as Parquet."""
    schema: dict[str, Any] = {
        "file_name": pl.String,
        "label": pl.String,
        "width": pl.Int64,
        "height": pl.Int64,
        "rle": pl.List(pl.Int64),
    }
    pl.DataFrame(list(rows), schema=schema, orient="row").write_parquet(path)
    return path


def shown(masks: Mapping[str, Parts], photos: Sequence[str]) -> dict[str, Parts]:
    """The masks of some photos."""
    return {photo: masks[photo] for photo in photos}


def part_names(masks: Mapping[str, Parts]) -> set[str]:
    """The parts that occur."""
    return {name for parts in masks.values() for name in parts} - set(NO_PARTS)


def expected_masks(case: MaskCase) -> dict[str, float]:
    """What the scorecard must say; parts are averaged where truth and run both have some."""
    photos = scored_photos(case.truth)
    values = {
        "items": float(len(photos)),
        "units": float(len({photo.rpartition("-")[2] for photo in photos})),
        "classes": 1.0,
        "iou": mean_iou(case.run, case.truth),
    }
    if part_names(shown(case.truth, photos)) and part_names(shown(case.run, photos)):
        values["classes"] = float(len(part_names(shown(case.truth, photos)) | part_names(shown(case.run, photos))))
        values["miou"] = mean_iou_of_parts(case.run, case.truth, background=False)
        values["miou_with_background"] = mean_iou_of_parts(case.run, case.truth, background=True)
    return values
