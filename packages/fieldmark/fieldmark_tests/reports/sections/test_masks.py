"""Masks on the photos: figures by part and size against plain recomputation, and what the page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import jaccard_score

import fieldmark
from fieldmark.masks.runlengths import MaskRow
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections.masks import EXTRA, MISSED, MaskLook, painted
from fieldmark.runs.masks import Masks

SIDES = (6, 10, 14, 18, 22, 28)
SHAPE = (30, 40)


def square(side: int, *, shift: int = 0) -> np.ndarray:
    mask = np.zeros(SHAPE, dtype=bool)
    mask[1 : 1 + side, 2 + shift : 2 + side + shift] = True
    return mask


def top(mask: np.ndarray) -> np.ndarray:
    return mask & (np.arange(SHAPE[0])[:, None] < 8)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Squares that the run draws shifted, and one of them not at all; caps are what stands above the eighth line."""
    root = tmp_path_factory.mktemp("squares")
    for folder in ("images/train", "images/val", "images/test", "masks/cap"):
        (root / folder).mkdir(parents=True)
    for part in ("train", "val", "test"):
        for number, side in enumerate(SIDES):
            name = f"{part}{number}.png"
            Image.fromarray(np.where(square(side), 250, 60).astype(np.uint8)).convert("RGB").save(
                root / f"images/{part}/{name}"
            )
            Image.fromarray(square(side)).save(root / f"masks/{name}")
            Image.fromarray(top(square(side))).save(root / f"masks/cap/{name}")
    fieldmark.fit("folder/segmentation", root, "ellipse", root / "run")
    rows = []
    for number, side in enumerate(SIDES):
        mask = square(side, shift=number) if number != 2 else np.zeros(SHAPE, dtype=bool)
        rows.append((MaskRow.of("fruiting_body", mask), MaskRow.of("cap", top(mask))))
    Masks(tuple(f"test{number}" for number in range(len(SIDES))), tuple(rows)).write(
        root / "run/predictions/test.parquet"
    )
    return root / "run"


def test_iou_by_part_and_by_size_are_those_of_the_pixels(run: Path) -> None:
    look = MaskLook(load_context([run]))
    answers = [square(side, shift=n) if n != 2 else np.zeros(SHAPE, dtype=bool) for n, side in enumerate(SIDES)]
    pairs = [(square(side), answer) for side, answer in zip(SIDES, answers, strict=True)]
    expected = [jaccard_score(true.ravel(), answer.ravel(), zero_division=0) for true, answer in pairs]
    np.testing.assert_allclose(look.iou, expected)
    (cap,) = look.by_part()
    pooled = [np.concatenate([top(pair[side]).ravel() for pair in pairs]) for side in (0, 1)]
    assert cap.title == "cap" and cap.iou.value == pytest.approx(jaccard_score(*pooled))
    covers = np.array(SIDES) ** 2 / (SHAPE[0] * SHAPE[1])
    sizes = {row.title: row for row in look.by_size()}
    small = sizes["0 to 5 % of the photo"]
    assert small.photos == (covers < 0.05).sum() and small.iou.value == pytest.approx(expected[0])
    assert sum(row.photos for row in sizes.values()) == len(SIDES)


def test_the_worst_is_named_with_what_is_wrong_and_the_page_shows_it(run: Path, tmp_path: Path) -> None:
    look = MaskLook(load_context([run]))
    shown = dict(look.groups())
    assert shown["Worst"][0].item == "test2" and shown["Worst"][0].fault == "nothing drawn"
    assert shown["Best"][0].item == "test0" and shown["Best"][0].iou == 1.0
    assert look.failures()[0].item == "test2"
    page = fieldmark.report([run], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Masks on the photos" in page and "nothing drawn" in page and page.count("data:image/jpeg") >= 6


def test_missed_and_extra_pixels_have_their_colors() -> None:
    pixels = np.full((5, 9, 3), 100, dtype=np.uint8)
    true, answer = np.zeros((5, 9), dtype=bool), np.zeros((5, 9), dtype=bool)
    true[:, :6], answer[:, 3:] = True, True
    shown = painted(pixels, true, answer)
    assert shown[2, 1].tolist() == [round(0.4 * 100 + 0.6 * color) for color in MISSED]
    assert shown[2, 8].tolist() == [round(0.4 * 100 + 0.6 * color) for color in EXTRA]
    assert shown[2, 4].tolist() == [100, 100, 100] and shown[2, 5].tolist() == [255, 255, 255]
