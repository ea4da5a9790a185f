"""Two domains laid over each other: sheets of species without field photos are moved to where photos would lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.methods.align import Align
from fieldmark.methods.base import told_choices
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.domains import Domains, pairs_of
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import View
from fieldmark_tests.lessons import part_of

SPECIES, SHOWN, WIDE = 16, 12, 24
NAMES = tuple(f"s{number:02}" for number in range(SPECIES))


def draw(rng, means, labels, domain, first, plants=2):
    rows = means[labels] + rng.normal(0, 0.35, (len(labels), WIDE))
    ids = [f"{domain}{first + number}" for number in range(len(labels))]
    part = part_of(ids, labels, rows.astype(np.float32))
    items = part.items.with_columns(
        domain=pl.lit(domain, pl.String),
        observation_id=pl.Series([f"{domain}-{label}-{row % plants}" for row, label in enumerate(labels)]),
    )
    return replace(part, items=items)


@pytest.fixture(scope="module")
def view():
    """Sixteen species on sheets, twelve of them in the field, which is turned and shifted; test is of all."""
    rng = np.random.default_rng(4)
    sheets = rng.normal(0, 1, (SPECIES, WIDE))
    turn = np.linalg.qr(np.eye(WIDE) + 0.25 * rng.normal(0, 1, (WIDE, WIDE)))[0]
    field = sheets @ turn + 2.5 * rng.normal(0, 1, WIDE)
    labels = Labels(NAMES)
    train = [
        draw(rng, sheets, np.repeat(np.arange(SPECIES), 8), "herbarium", 0, plants=8),
        draw(rng, field, np.repeat(np.arange(SHOWN), 6), "photo", 500),
    ]
    test = draw(rng, field, np.repeat(np.arange(SPECIES), 5), "photo", 900)
    taxa = pl.DataFrame({"label": NAMES, "genus": [f"g{number % 4}" for number in range(SPECIES)]})
    return View(labels, Taxonomy.of(labels, taxa), type(test).concat(train), None, None, test)


def reciprocal(fitted, view, rows):
    scores = fitted.method.scores(fitted.arrays, view.test)[rows]
    own = scores[np.arange(len(scores)), view.test.truth[rows]]
    return float((1 / (scores >= own[:, None]).sum(axis=1)).mean())


@pytest.mark.parametrize("by", ["mean", "covariance", "subspace", "map"])
def test_every_way_finds_species_without_field_photos_better_than_their_sheets_do(view, by):
    sheets = view.train.take((view.train.items["domain"] == "herbarium").to_numpy())
    plain = Centroid().fit(replace(view, train=sheets))
    unseen = view.test.truth >= SHOWN
    fitted = Align(by=by, shrinkage=0.5, strength=3.0, relatives=0.0, bias=0.1).fit(view)
    assert reciprocal(fitted, view, unseen) > reciprocal(plain, view, unseen)


def test_a_bias_moves_right_answers_from_seen_to_unseen_species(view):
    settled = Align(shrinkage=0.5, strength=3.0, relatives=0.0)
    unseen = view.test.truth >= SHOWN
    low, high = (replace(settled, bias=bias).fit(view) for bias in (0.0, 0.5))
    assert reciprocal(high, view, unseen) > reciprocal(low, view, unseen)
    assert reciprocal(high, view, ~unseen) < reciprocal(low, view, ~unseen)


def test_what_is_open_is_chosen_without_val_or_test_and_keeps_the_seen(view):
    fitted = Align(shrinkage=0.5, strength=3.0).fit(view)
    assert fitted.method.bias >= 0 and fitted.method.relatives in (0.0, 0.3, 0.6)
    curve = fitted.arrays["curve"]
    chosen = curve[curve[:, 0] == fitted.method.bias][0]
    assert chosen[2] >= 0.8 * curve[:, 2].max()
    blind = Align(shrinkage=0.5, strength=3.0).fit(replace(view, test=None))
    assert (blind.arrays["prototypes"] == fitted.arrays["prototypes"]).all()
    assert "12 labels have both domains, 4 none of it" in fitted.remarks[0]
    told = told_choices(fitted.chosen)
    assert told[0].startswith("Chosen on train, by leaving species out: relatives") and len(told) == 1
    assert not any(choice.on_val for choice in fitted.chosen)


def test_settings_that_nobody_gave_and_nothing_chose_are_called_usual(view):
    both = np.flatnonzero(Domains.of(view, "align").both)
    few = view.train.take(~np.isin(view.train.truth, both[3:]))
    told = told_choices(Align(shrinkage=0.5).fit(replace(view, train=few)).chosen)
    assert len(told) == 1 and told[0].startswith("Neither given nor chosen, so at the usual values: strength")
    assert "shrinkage" not in told[0]  # that one was given


def test_one_domain_is_refused_in_a_sentence(view):
    sheets = view.train.take((view.train.items["domain"] == "herbarium").to_numpy())
    with pytest.raises(MisuseError, match=r"align learns from two domains.*train has herbarium"):
        Align().fit(replace(view, train=sheets))
    with pytest.raises(MisuseError, match="by=magic: expected"):
        Align(by="magic")


def test_plants_that_were_photographed_and_pressed_are_pairs(view):
    domains = Domains.of(view, "align")
    ids = [f"o{row % 100}" for row in range(len(view.train))]
    part = replace(view.train, items=view.train.items.with_columns(observation_id=pl.Series(ids)))
    sheets, photos = pairs_of(part, domains.field)
    assert len(sheets) and (~domains.field[sheets]).all() and domains.field[photos].all()
    assert [ids[row] for row in sheets] == [ids[row] for row in photos]
