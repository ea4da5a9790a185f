"""Foreground and background: where the label is written decides which pictures tell it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.masked_photos import hide
from fieldmark.features.settings import FeatureSettings
from fieldmark.suites.foreground import study_foreground

SETTINGS = FeatureSettings(backbone="resnet10t", weights="random", size=32)
COLORS = {"amber": (230, 160, 20), "blue": (20, 60, 220)}


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Squares whose color is their class, on gray that tells nothing; each square has a cap; two have no mask."""
    root = tmp_path_factory.mktemp("squares")
    rng = np.random.default_rng(0)
    for part, number in (("train", 16), ("val", 8), ("test", 12)):
        for label, color in COLORS.items():
            for place in range(number):
                name = f"{part}-{label}-{place}"
                mask = np.zeros((40, 48), dtype=bool)
                left, top = rng.integers(4, 20), rng.integers(4, 12)
                mask[top : top + 20, left : left + 20] = True
                pixels = np.where(mask[..., None], np.array(color), rng.integers(60, 200, (40, 48, 1)))
                (root / "photos" / part / label).mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels.astype(np.uint8)).save(root / "photos" / part / label / f"{name}.png")
                if part == "test" and place == 0:
                    continue
                cap = mask & (np.arange(40)[:, None] < top + 8)
                for folder, drawn in (("masks", mask), ("masks/cap", cap)):
                    (root / folder).mkdir(parents=True, exist_ok=True)
                    Image.fromarray(drawn).save(root / folder / f"{name}.png")
    return root


def test_a_label_in_the_color_of_the_object_is_told_by_the_object_and_not_by_what_surrounds_it(squares: Path) -> None:
    study = study_foreground("folder", squares / "photos", masks=str(squares / "masks"), settings=SETTINGS)
    top = {(row.learned, row.shown): row.card.metrics["top_1"].value for row in study.rows}
    assert top["foreground", "foreground"] == top["crop", "crop"] == top["parts", "parts"] == 1.0
    assert top["surroundings", "surroundings"] < 0.85 and top["whole", "surroundings"] < 0.85
    assert study.left_out["test"] == (2, 24) and study.parts == ("cap",)
    assert study.rows[0].card.items == 22 and study.rows[0].difference is None


def test_the_command_prints_the_scores_and_writes_a_page(squares: Path, tmp_path: Path, run_main) -> None:
    given = ("--data", squares / "photos", "--masks", squares / "masks", "--out", tmp_path / "page.html")
    settings = ("--set", "backbone=resnet10t", "--set", "weights=random", "--set", "size=32")
    code, said, _ = run_main("foreground", "folder", *given, *settings)
    assert code == 0 and "surroundings" in said and "2 of 24 photos of test have no mask and are left out" in said
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Does the model look at the organism?" in page and page.count("data:image/jpeg") == 5


def test_what_cannot_be_compared_is_refused(squares: Path) -> None:
    with pytest.raises(MisuseError, match="does not ask for one label of each photo"):
        study_foreground("folder/segmentation", squares)
    with pytest.raises(InputError, match="found no masks, expected a release with masks"):
        study_foreground("folder", squares / "photos", settings=SETTINGS)


def test_hidden_pixels_have_the_mean_color_and_boxes_are_cut_before_any_resizing() -> None:
    pixels = np.zeros((20, 40, 3), dtype=np.uint8)
    mask = np.zeros((10, 20), dtype=bool)  # half as large as the photo
    mask[2:5, 2:5] = True
    pixels[4:10, 4:10] = 255
    photo = Image.fromarray(pixels)
    seen = {shown: np.asarray(hide(photo, {"fruiting_body": mask}, shown)) for shown in ("background", "foreground")}
    assert seen["background"].shape == pixels.shape and (seen["background"] == 0).all()  # the object leaves no color
    assert seen["foreground"].shape[0] < 20 and (seen["foreground"] == 255).all()
    nothing = np.asarray(hide(photo, {"fruiting_body": mask}, "cap"))
    assert (nothing == 128).all()
