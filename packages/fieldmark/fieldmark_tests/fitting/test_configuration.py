"""One method may read several inputs, each with settings of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import configured_method
from fieldmark.methods import METHODS
from fieldmark.methods.base import Arrays, Fitted, Method, Need, features_of, truth_of
from fieldmark.runs.label_scores import Scale
from fieldmark.views.parts import Part, View


@dataclass(frozen=True)
class BothPictures(Method):
    """The nearest class mean over the photo and the satellite picture together."""

    scale: ClassVar[Scale] = "score"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("features", "photo"), Need("features", "satellite"), Need("table", "habitat"))

    def fit(self, view: View) -> Fitted:
        together, truth = self._together(view.train), truth_of(view.train)
        means = [together[truth == code].mean(axis=0) for code in range(len(view.labels))]
        return Fitted(self, {"means": np.nan_to_num(np.stack(means)), "widths": np.array(together.shape)})

    def scores(self, arrays: Arrays, part: Part) -> np.ndarray:
        assert "habitat" in part.items.columns and np.isfinite(features_of(part, "habitat")).all()
        apart = self._together(part)[:, None] - arrays["means"]
        return np.asarray(-np.square(apart).sum(axis=2), dtype=np.float32)

    def _together(self, part: Part) -> np.ndarray:
        assert part.missing["satellite"].dtype == bool
        return np.hstack([features_of(part, "photo"), features_of(part, "satellite")])


@pytest.fixture
def both(add_entry) -> None:
    """The method as if a package had added it."""
    add_entry("fieldmark.methods", "both", f"{__name__}:BothPictures")
    assert METHODS.about("both") == "from the package both"


def test_a_method_reads_photo_table_and_satellite_together(both, fungi_world, tmp_path):
    settings = {"photo.size": "32", "satellite.size": "40", "views": "one"}
    result = fieldmark.fit("fungitastic/closed", fungi_world, "both", tmp_path / "run", settings=settings, steps=[])
    assert result.run.features is not None
    assert {name: about["size"] for name, about in result.run.features["inputs"].items()} == {
        "photo": 32,
        "satellite": 40,
    }
    again = fieldmark.load_model(tmp_path / "run")
    assert {name: one.size for name, one in again.features.items()} == {"photo": 32, "satellite": 40}
    predictions = fieldmark.predict(again, fungi_world)
    np.testing.assert_allclose(predictions.scores, fieldmark.predict(result.model, fungi_world).scores)


def test_settings_of_an_input_that_a_method_does_not_read_are_refused(both):
    with pytest.raises(
        MisuseError, match="no input called 'climate' to set size of; this method names: photo, satellite"
    ):
        configured_method("both", {"climate.size": "32"})


def test_settings_without_a_name_hold_for_all_inputs(both):
    features = configured_method("both", {"size": "32", "satellite.size": "40"}).features
    assert features == {"photo": {"size": "32"}, "satellite": {"size": "40"}}


def test_an_input_that_the_task_does_not_allow_is_refused(both, make_release, tmp_path):
    with pytest.raises(MisuseError, match="needs the input 'satellite'"):
        fieldmark.fit("folder", make_release(), "both", tmp_path / "run")
