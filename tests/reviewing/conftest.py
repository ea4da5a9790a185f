"""A model of three colors and photos to be named, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark.fitting import fit
from tests.conftest import COLORS, save_photo


@pytest.fixture(scope="session")
def color_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a linear model on small photos of three colors."""
    root = tmp_path_factory.mktemp("colors")
    for label_number, (label, color) in enumerate(COLORS.items()):
        for number in range(12):
            part = ("train", "train", "val", "test")[number % 4]
            save_photo(
                root / "photos" / part / label / f"{label_number}-{number}.jpg", color, 50 * label_number + number
            )
    (root / "photos" / "taxa.csv").write_text(
        "label,genus,species,poisonous\nAlba alba,Alba,Alba alba,false\n"
        "Alba nigra,Alba,Alba nigra,true\nRubra vera,Rubra,Rubra vera,false\n"
    )
    settings = {"size": 32, "l2": 0.01}
    fit("folder", root / "photos", "linear", root / "run", settings=settings)
    return root / "run"
