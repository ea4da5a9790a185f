"""Items of several photos: answered from the mean of their features, or photo by photo and pooled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks.folder import FOLDER
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Fitted
from fieldmark.methods.centroid import Centroid
from fieldmark.models.photo_by_photo import answer
from fieldmark.questions.observations import Observations
from fieldmark.runs.label_scores import log_softmax
from fieldmark.steps.pooling import POOLINGS
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import part_of, with_columns

LABELS = Labels(("light", "dark"))
ITEMS = with_columns(
    pl.DataFrame({"item_id": ["a", "b", "c"], "media_ids": [["a1", "a2"], ["b1"], ["c1", "c2", "c3"]]})
)
PHOTOS = {"a1": (1.0, 0.2), "a2": (0.1, 0.9), "b1": (0.7, 0.7), "c1": (0.0, 1.0), "c2": (0.3, 0.4), "c3": (1.0, 0.0)}
# The benchmark of folders with observations as items, as PlantCLEF asks.
BY_OBSERVATION = replace(FOLDER, name="by-observation", task=replace(FOLDER.task, items=Observations()))


def supply(part: Part) -> Part:
    means = [np.mean([PHOTOS[photo] for photo in photos], axis=0) for photos in part.items["media_ids"]]
    return replace(part, features={"photo": np.array(means, dtype=np.float32)})


@pytest.fixture
def fitted() -> Fitted:
    features = np.array([[1, 0], [0.9, 0.2], [0, 1], [0.1, 0.8]], dtype=np.float32)
    train = part_of(["1", "2", "3", "4"], np.array([0, 0, 1, 1]), features)
    view = View(LABELS, Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names})), train, train, None, None)
    return Centroid().fit(view)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_items_are_answered_photo_by_photo_and_pooled(fitted, pooling):
    part = Part(ITEMS)
    pooled = answer(fitted, part, LABELS, supply, pooling)
    assert pooled.items == ("a", "b", "c")
    own = with_columns(pl.DataFrame({"item_id": list(PHOTOS), "media_ids": [[photo] for photo in PHOTOS]}))
    each = log_softmax(fitted.predict(supply(Part(own)), LABELS).scores)
    if pooling == "mean":
        expected = log_softmax(np.stack([each[:2].mean(axis=0), each[2], each[3:].mean(axis=0)]))
        assert pooled.scores == pytest.approx(expected, abs=1e-5)
    assert pooled.scores[1] == pytest.approx(each[2], abs=1e-5)
    turned = ITEMS.with_columns(media_ids=pl.col("media_ids").list.reverse())
    assert answer(fitted, Part(turned), LABELS, supply, pooling).scores == pytest.approx(pooled.scores, abs=1e-5)


def test_without_a_pooling_items_are_answered_from_the_mean_of_their_features(fitted):
    part = Part(ITEMS)
    plain = answer(fitted, part, LABELS, supply, "features")
    assert (plain.scores == fitted.predict(supply(part), LABELS).scores).all()


def test_how_strange_an_item_is_is_the_mean_over_its_photos(fitted):
    class Strange(Centroid):
        def unknown(self, arrays, part):
            return np.array([PHOTOS[photos[0]][0] for photos in part.items["media_ids"]], dtype=np.float32)

    strange = Fitted(Strange(), fitted.arrays)
    pooled = answer(strange, Part(ITEMS), LABELS, supply, "mean")
    assert pooled.unknown == pytest.approx([0.55, 0.7, 1.3 / 3])


@pytest.fixture
def pairs(make_release) -> Path:
    """A folder whose photos come in pairs that show one specimen."""
    root: Path = make_release(per_class=16)
    files = sorted(path.relative_to(root) for path in root.rglob("*.jpg"))
    rows = [f"{file},{file.parent.parent.name}-{file.parent.name}-{n // 2}" for n, file in enumerate(files)]
    (root / "observations.csv").write_text("\n".join(["file,observation", *rows]) + "\n")
    return root


def test_a_run_with_a_pooling_says_so_and_its_model_and_identify_answer_alike(pairs, tmp_path, add_entry):
    pytest.importorskip("torch", reason="features of photos need the extra vision")
    add_entry("fieldmark.benchmarks", "by-observation", f"{__name__}:BY_OBSERVATION")
    settings = {"backbone": "resnet10t", "weights": "random", "size": 32}
    plain, _, pooled = (
        fieldmark.fit("by-observation", pairs, "linear", tmp_path / name, settings=settings, pooling=name)
        for name in ("features", "mean", "max")
    )
    assert plain.model.pooling == "features" and "pooling" not in plain.model.trained
    again = fieldmark.load_model(tmp_path / "max")
    assert again.pooling == pooled.model.pooling == "max"
    predictions, unpooled = fieldmark.predict(again, pairs), fieldmark.predict(plain.model, pairs)
    assert not np.allclose(predictions.scores, unpooled.scores)
    # The mean logit of a linear method is the logit of the mean features.
    assert fieldmark.predict(tmp_path / "mean", pairs).scores == pytest.approx(unpooled.scores, abs=1e-4)
    files = pl.read_csv(pairs / "observations.csv").filter(pl.col("observation") == predictions.items[0])["file"]
    specimen = [pairs / file for file in files]
    assert len(specimen) == 2
    said = fieldmark.identify(specimen, again, top=3, pooling="max")
    chances = dict(zip(predictions.labels.names, predictions.probabilities()[0], strict=True))
    # Names below 80 % carry the number of the model, those above what validation bears out of it.
    stated = {name.label: name.probability for name in said.names}
    assert all(stated[label] == pytest.approx(chance, abs=1e-4) for label, chance in chances.items() if chance < 0.79)
    assert all(stated[label] <= chance + 1e-4 for label, chance in chances.items())
    assert said.to_json()["further"] == [str(specimen[1])]
    turned = fieldmark.identify(specimen[::-1], again, top=3, pooling="max")
    assert {name.label: name.probability for name in turned.names} == pytest.approx(stated, abs=1e-4)
    with pytest.raises(MisuseError, match="no pooling called 'median'"):
        fieldmark.identify(specimen, again, pooling="median")
    with pytest.raises(MisuseError, match="no pooling called 'median'"):
        fieldmark.fit("by-observation", pairs, "linear", tmp_path / "median", pooling="median")
    with pytest.raises(MisuseError, match="at least one photo"):
        fieldmark.identify([], again)
