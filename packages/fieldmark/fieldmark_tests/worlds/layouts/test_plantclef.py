"""The world of invented plants: pressed and alive, most species without a field photo."""

from __future__ import annotations

import numpy as np
from PIL import Image

from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release


def test_a_world_is_sound_and_holds_what_it_says(plant_world):
    report = CHECKS["plantclef-2020"](Release(plant_world))
    counts = {part.part: part.found for part in report.counts}
    mark = Release(plant_world).world["counts"]
    assert report.sound and report.simulated
    for part in ("herbarium", "photo", "test"):
        assert (counts[part].photos, counts[part].classes) == (mark[part]["photos"], mark[part]["classes"])
    assert counts["pressed and photographed"].observations == mark["pressed and photographed"]["observations"]
    assert any("ampersands" in problem.what for problem in report.problems)


def test_most_species_have_no_field_photo_and_rare_ones_never_do(plant_world):
    dataset = open_dataset("plantclef-2020", plant_world)
    media = dataset.media.join(dataset.observations, on="observation_id")
    field = media.filter((media["domain"] == "photo") & (media["parts"].list.first() == "train"))
    photographed = set(field["label"])
    rare = set(dataset.taxa.filter(dataset.taxa["rare"])["label"])
    assert 2 * len(photographed) < len(dataset.taxa) and rare and not rare & photographed
    assert dataset.observations["label"].null_count() == 0


def test_sheets_are_paper_and_photos_are_not(plant_world):
    def edge(path):
        pixels = np.asarray(Image.open(path).convert("RGB"), dtype=float)
        return np.concatenate([pixels[:, :6].reshape(-1, 3), pixels[:, -6:].reshape(-1, 3)]).mean()

    sheets = [edge(path) for path in sorted((plant_world / "herbarium").glob("*/*.jpg"))]
    photos = [edge(path) for path in sorted((plant_world / "photo").glob("*/*.jpg"))]
    assert np.median(sheets) > 170 > np.median(photos)
