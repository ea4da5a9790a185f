from __future__ import annotations

import math

import numpy as np
import pytest

from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature
from fieldmark_worlds.nature.observations import Sightings, observe
from fieldmark_worlds.nature.posterior import log_context, log_likelihood, log_posterior


@pytest.fixture(scope="module")
def seen(nature: Nature) -> Sightings:
    return observe(nature, [2022], 4000, np.random.default_rng(4))


def test_the_likelihood_agrees_with_the_product_over_traits_done_by_hand() -> None:
    small = grow_nature(NatureSettings(species=4, genera=2, kingdom=FUNGI), seed=0)
    traits = observe(small, [2018], 6, np.random.default_rng(0)).traits
    fast = log_likelihood(small, traits)
    for n in range(6):
        for s in range(4):
            by_hand = 0.0
            for c in range(small.means.shape[1]):
                mean, sd = small.means[s, c], small.sds[s, c]
                density = math.exp(-0.5 * ((traits.latents[n, c] - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
                by_hand += math.log(density) if density > 0 else -math.inf
            for k, probabilities in enumerate(small.option_probabilities):
                by_hand += math.log(probabilities[s, traits.options[n, k]])
            if math.isfinite(by_hand):
                assert fast[n, s] == pytest.approx(by_hand, rel=1e-9)


def test_the_context_of_one_observer_sums_to_one_over_all_that_could_be_noted() -> None:
    small = grow_nature(NatureSettings(species=4, genera=2, kingdom=FUNGI, observers=3), seed=0)
    template = observe(small, [2018], 1, np.random.default_rng(0))
    cells = np.arange(len(small.country))
    everywhere = template.take(np.zeros(len(cells), dtype=np.int64))
    table = everywhere.table.with_columns(cell=cells)
    place = np.exp(log_context(small, Sightings(table, everywhere.observer_codes, everywhere.traits))).sum(axis=0)
    row = template.table.row(0, named=True)
    habitat = small.settings.kingdom.habitats.index(row["habitat"])
    substrate = small.settings.kingdom.substrates.index(row["substrate"])
    rest = small.day_probabilities[:, row["day"]] * small.habitat_probabilities[:, habitat]
    rest *= small.substrate_probabilities[:, substrate]
    assert np.allclose(place, rest, rtol=1e-9)


def test_the_posterior_sums_to_one_and_rules_out_what_cannot_occur(nature: Nature, seen: Sightings) -> None:
    prior = nature.prior([2018])
    absent = prior == 0
    assert absent.any()
    posterior = np.exp(log_posterior(nature, seen.traits, prior=prior))
    assert np.allclose(posterior.sum(axis=1), 1)
    assert np.all(posterior[:, absent] == 0)


def test_the_posterior_is_right_as_often_as_it_says(nature: Nature, seen: Sightings) -> None:
    for context in (None, seen):
        posterior = np.exp(log_posterior(nature, seen.traits, prior=nature.prior([2022]), context=context))
        confidence = posterior.max(axis=1)
        right = posterior.argmax(axis=1) == seen.species
        assert abs(confidence.mean() - right.mean()) < 4 * np.sqrt((confidence * (1 - confidence)).mean() / len(seen))
        doubtful = confidence < 0.8
        assert doubtful.sum() > 30
        assert abs(confidence[doubtful].mean() - right[doubtful].mean()) < 4 * 0.5 / np.sqrt(doubtful.sum())


def test_no_nearest_mean_rule_beats_the_posterior_and_context_helps_it(nature: Nature, seen: Sightings) -> None:
    truth, prior = seen.species, nature.prior([2022])
    exact = (log_posterior(nature, seen.traits, prior=prior).argmax(axis=1) == truth).mean()
    informed = (log_posterior(nature, seen.traits, prior=prior, context=seen).argmax(axis=1) == truth).mean()
    for scale in (np.ones_like(nature.sds[0]), nature.sds.mean(axis=0), nature.means.std(axis=0)):
        x, means = seen.traits.latents / scale, nature.means / scale
        gaps = (means**2).sum(axis=1) - 2 * x @ means.T
        gaps[:, prior == 0] = np.inf
        assert (gaps.argmin(axis=1) == truth).mean() < exact
    assert exact < informed
    assert 0.75 < exact < 0.98  # hard enough to be interesting, not hopeless


def test_the_wrong_prior_costs_accuracy(nature: Nature, seen: Sightings) -> None:
    right = log_posterior(nature, seen.traits, prior=nature.prior([2022])).argmax(axis=1) == seen.species
    flat = log_posterior(nature, seen.traits, prior=np.ones(len(nature))).argmax(axis=1) == seen.species
    assert flat.mean() < right.mean()
