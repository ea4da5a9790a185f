"""Parts show what is allowed, open what is theirs, and can be cut, joined and sent to another process."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.tables.inputs import NotInPartError
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.views.parts import Part


@pytest.fixture(scope="module")
def fungi(fungi_world: Path) -> Opened:
    """A tiny world with every layer."""
    declared = BENCHMARKS["fungitastic/closed"]
    return open_benchmark(declared, open_release(declared, fungi_world))


def first_medium(part: Part | None) -> str:
    assert part is not None
    return str(part.items["media_ids"].explode()[0])


def test_a_part_opens_its_own_photos(fungi):
    for part in (fungi.view.train, fungi.view.val, fungi.view.test):
        assert part is not None and part.media is not None
        assert part.media.read(first_medium(part))[:2] == b"\xff\xd8"


@pytest.mark.parametrize(("part", "other"), [("train", "test"), ("train", "val"), ("val", "test"), ("test", "train")])
def test_a_part_cannot_open_the_photos_of_another(fungi, part, other):
    own, foreign = getattr(fungi.view, part), getattr(fungi.view, other)
    for ask in (own.media.read, own.media.open, own.media.where):
        with pytest.raises(NotInPartError, match="not among what this part may open"):
            ask(first_medium(foreign))


@pytest.mark.parametrize("layer", ["caption", "climate", "satellite_rgb", "satellite_nir"])
def test_a_part_cannot_ask_a_layer_about_items_of_another(fungi, layer):
    train, test = fungi.view.train, fungi.view.test
    key = "media_ids" if train.layers[layer].by == "media_id" else "observation_id"
    own, foreign = (
        part.items[key].explode()[0] if key == "media_ids" else part.items[key][0] for part in (train, test)
    )
    assert len(train.layers[layer].read([own])) == 1
    with pytest.raises(NotInPartError):
        train.layers[layer].read([own, foreign])


def test_what_was_cut_away_can_no_longer_be_opened(fungi):
    train = fungi.view.train
    kept = train.take([0, 1])
    assert kept.media is not None and kept.media.read(first_medium(kept))
    with pytest.raises(NotInPartError):
        kept.media.read(first_medium(train.take([5])))


def test_taking_and_joining_gives_the_same_items_labels_and_media(fungi):
    train = fungi.view.train
    n = len(train)
    parts = [train.take(np.arange(0, n // 2)), train.take(np.arange(n // 2, n))]
    joined = Part.concat(parts)
    assert joined.items.equals(train.items)
    np.testing.assert_array_equal(joined.truth, train.truth)
    assert joined.media == train.media
    assert Part.concat(list(train.blocks(7))).items.equals(train.items)


def test_a_part_takes_rows_by_number_or_by_flag_in_the_order_asked_for(fungi):
    train = fungi.view.train
    assert train.take([4, 2]).item_ids == (train.item_ids[4], train.item_ids[2])
    flags = np.arange(len(train)) % 3 == 0
    assert train.take(flags).item_ids == train.item_ids[::3]


def test_parts_can_be_pickled_with_their_media_and_layers(fungi):
    train = fungi.view.train
    train.layers["climate"].read([train.items["observation_id"][0]])  # what was looked up is left behind
    again = pickle.loads(pickle.dumps(train))
    assert again.items.equals(train.items)
    assert again.media.read(first_medium(train)) == train.media.read(first_medium(train))
    ids = train.items["observation_id"].unique(maintain_order=True).to_list()[:3]
    for name in ("climate", "satellite_rgb"):
        ours, theirs = train.layers[name].read(ids), again.layers[name].read(ids)
        assert [one is None for one in ours] == [one is None for one in theirs]
    with pytest.raises(NotInPartError):
        again.media.read(first_medium(fungi.view.test))


def test_a_part_does_not_show_what_gives_the_label_away(fungi):
    for part in (fungi.view.train, fungi.view.test):
        assert not {"label", "genus", "family", "species", "poisonous", "scientific_name"} & set(part.items.columns)
        assert "masks" not in part.layers or "masks" in fungi.benchmark.task.inputs
    assert fungi.view.test is not None and fungi.view.test.targets is None


def test_train_and_val_together_lose_nothing(make_release):
    view = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release())).view
    together = view.with_val_in_train()
    assert together.val is None
    assert together.train.item_ids == view.train.item_ids + view.val.item_ids
    assert together.train.truth.tolist() == [*view.train.truth, *view.val.truth]
