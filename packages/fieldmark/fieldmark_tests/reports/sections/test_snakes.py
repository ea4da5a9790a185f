"""Priors and venom on the page of a run on snakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score

import fieldmark
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS
from fieldmark.reports.sections.priors import softmax_effect
from fieldmark.reports.sections.venom import venom_tallies

SETTINGS = {"size": 64, "weights": "random"}


@pytest.fixture(scope="module")
def page(snake_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Context:
    """A run of the method `country-prior` with the table of presence of the world."""
    out = tmp_path_factory.mktemp("run") / "country"
    settings = {**SETTINGS, "file": str(snake_world / "species_to_country.csv"), "floor": 0.05}
    fieldmark.fit("snakeclef-2020", snake_world, "country-prior", out, settings=settings)
    return load_context([out], data=snake_world)


def test_a_softmax_after_the_product_over_783_classes_gives_the_loss_of_a_guess_at_unchanged_f1():
    rng, classes, items = np.random.default_rng(0), 783, 2000
    truth = rng.integers(classes, size=items).astype(np.int32)
    logits = rng.normal(size=(items, classes)).astype(np.float64)
    logits[np.arange(items), truth] += rng.normal(3.0, 1.5, items)
    photo = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    lives = rng.random((145, classes)) < 0.06  # which species lives in which of 145 countries
    country = rng.integers(145, size=items)
    lives[country, truth] = True
    product = photo * (lives / lives.sum(axis=1, keepdims=True))[country]  # times the share of each species there
    right = product / product.sum(axis=1, keepdims=True)
    effect = softmax_effect(right, truth, np.arange(items, dtype=np.int32))
    assert effect.uniform == pytest.approx(6.663, abs=5e-4)
    assert effect.same_answers and effect.stated.value < 3
    softened = np.exp(product) / np.exp(product).sum(axis=1, keepdims=True)  # as it was done, without renormalizing
    loss = -np.log(softened[np.arange(items), truth]).mean()
    assert np.log(783) - 0.02 < loss < np.log(783)  # the overview reports 6.650
    before, after = (f1_score(truth, given.argmax(axis=1), average="macro") for given in (right, softened))
    assert before == after and before > 0.3


def test_the_page_shows_what_the_softmax_would_do(page):
    shown = SECTIONS["priors"].render(page)
    assert SECTIONS["priors"].applies(page)
    effect = softmax_effect(page.probabilities.astype(np.float64), page.truth, page.unit)
    assert f"{effect.stated.value:.3f}" in shown and f"{effect.softened.value:.3f}" in shown
    assert effect.stated.value == pytest.approx(page.first.scorecard.metrics["log_loss"].value, abs=1e-5)
    assert "6.650" in shown and "table of presence, floor 0.05, 7 labels listed" in shown
    located = page.items["country"].is_not_null().sum()
    assert f"{located} of {len(page.truth)}" in shown


def test_the_page_says_how_many_venomous_ones_are_called_harmless_per_thousand(page):
    taxa = page.opened.dataset.taxa
    flag = dict(taxa.select("label", "poisonous").iter_rows())
    names = page.labels.names
    rows = [(flag[names[truth]], flag[names[answer]], truth == answer) for truth, answer in zip(
        page.truth, page.predictions.probabilities().argmax(axis=1), strict=True)]  # fmt: skip
    venomous = [row for row in rows if row[0]]
    harmless = 1000 * sum(not row[1] for row in venomous) / len(venomous)
    other = 1000 * sum(row[1] and not row[2] for row in venomous) / len(venomous)
    shown = SECTIONS["venom"].render(page)
    assert f"<strong>{harmless:.0f} in 1,000 harmless</strong>" in shown
    assert f"<strong>{other:.0f} in 1,000 for another venomous species</strong>" in shown
    tallies = {one.title: one for one in venom_tallies(page)}
    cheapest = tallies["least expected cost"]
    assert cheapest.called_harmless.value <= tallies["the likeliest label"].called_harmless.value


def test_the_steps_of_the_method_calibrate_before_and_after_the_prior(page):
    assert [step["step"] for step in page.first.run.steps] == ["temperature", "country-prior", "temperature"]
    assert any("table of presence" in said for said in page.first.run.external_data)


def test_any_matrix_prices_mistakes_after_the_prior(snake_world, tmp_path, page):
    names = page.labels.names
    dear = pl.DataFrame({"true": [names[0]], "predicted": [names[1]], "cost": [50]})
    dear.write_csv(tmp_path / "costs.csv")
    steps = ["temperature", "country-prior", "temperature", f"min-cost:cost={tmp_path / 'costs.csv'}"]
    done = fieldmark.fit(
        "snakeclef-2020", snake_world, "linear", tmp_path / "run", settings={**SETTINGS, "l2": 0.1}, steps=steps
    )
    assert done.scorecard.metrics["venom_cost"].value >= 0
    with_matrix = load_context([tmp_path / "run"], data=snake_world)
    assert SECTIONS["costs"].applies(with_matrix) and not SECTIONS["venom"].applies(with_matrix)
