from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature
from fieldmark_worlds.nature.observations import draw_traits, observe


def _mean_distance(nature: Nature, same: np.ndarray, of: np.ndarray) -> float:
    gaps = np.sqrt(((nature.means[:, None] - nature.means[None]) ** 2).sum(axis=2))
    pairs = same & of & ~np.eye(len(nature), dtype=bool)
    return float(gaps[pairs].mean())


def test_relatives_look_alike(nature: Nature) -> None:
    genus, family, order = (nature.taxa[rank].to_numpy() for rank in ("genus", "family", "order"))
    one_genus = genus[:, None] == genus[None]
    one_family = family[:, None] == family[None]
    one_order = order[:, None] == order[None]
    everything = np.ones_like(one_genus)
    within_genus = _mean_distance(nature, one_genus, everything)
    within_family = _mean_distance(nature, one_family, ~one_genus)
    between_orders = _mean_distance(nature, ~one_order, everything)
    assert within_genus < 0.9 * within_family
    assert within_family < between_orders


def test_equal_seeds_give_equal_natures_and_other_seeds_give_others() -> None:
    settings = NatureSettings(species=20, genera=5, kingdom=FUNGI)
    one, same, other = (grow_nature(settings, seed) for seed in (1, 1, 2))
    assert one.taxa.equals(same.taxa) and np.array_equal(one.means, same.means)
    assert np.array_equal(one.cell_affinity, same.cell_affinity) and np.array_equal(one.abundance, same.abundance)
    assert not one.taxa.equals(other.taxa) and not np.array_equal(one.means, other.means)


def test_abundance_is_long_tailed_and_shifts_between_years(nature: Nature) -> None:
    shares = np.sort(nature.prior([2018]))[::-1]
    assert shares[: len(shares) // 10].sum() > 0.4
    assert shares[len(shares) // 2 :].sum() < 0.2
    both = (nature.abundance[0] > 0) & (nature.abundance[-1] > 0)
    change = np.log(nature.abundance[-1][both] / nature.abundance[0][both])
    assert np.std(change) == pytest.approx(nature.settings.year_walk * 2, rel=0.3)  # four steps of a random walk


def test_newcomers_are_absent_before_their_first_year_and_present_from_it(nature: Nature) -> None:
    first = nature.taxa["first_year"].to_numpy()
    years = np.array(nature.settings.years)
    assert np.array_equal(nature.abundance > 0, years[:, None] >= first[None, :])
    assert 0 < (first >= nature.settings.newcomers_from).sum() < 0.2 * len(nature)


def test_poison_clusters_by_genus() -> None:
    nature = grow_nature(NatureSettings(species=2000, genera=400, kingdom=FUNGI), seed=0)
    poisonous = nature.taxa["poisonous"].to_numpy().astype(float)
    pairs = nature.genus_of[:-1] == nature.genus_of[1:]
    siblings = np.mean(poisonous[:-1][pairs] * poisonous[1:][pairs])
    assert siblings > 1.5 * poisonous.mean() ** 2
    assert 0.05 < poisonous.mean() < 0.5


def test_finds_follow_the_season_of_their_species_around_new_year_too(nature: Nature) -> None:
    seen = observe(nature, [2020], 6000, np.random.default_rng(0))
    day = seen.table["day"].to_numpy()
    turn = np.exp(2j * np.pi * np.arange(365) / 365)
    common = np.argsort(nature.prior([2020]))[-10:]
    for species in common:
        expected = nature.day_probabilities[species] @ turn
        found = turn[day[seen.species == species]].mean()
        assert abs(found - expected) < 4 / np.sqrt((seen.species == species).sum())
        assert abs(expected) > 0.5  # a season, not the whole year


def test_finds_follow_abundance_habitat_and_place(nature: Nature) -> None:
    seen = observe(nature, [2019], 8000, np.random.default_rng(1))
    counts = np.bincount(seen.species, minlength=len(nature))
    expected = nature.prior([2019]) * len(seen)
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected + 1))
    common = int(np.argmax(expected))
    mine = seen.table.filter(seen.table["species"] == common)
    habitats = nature.settings.kingdom.habitats
    shares = np.array([(mine["habitat"] == name).mean() for name in habitats])
    assert np.abs(shares - nature.habitat_probabilities[common]).max() < 4 * 0.5 / np.sqrt(mine.height)
    affinity = nature.cell_affinity[common]
    assert affinity[mine["cell"].to_numpy()].mean() > 1.5 * affinity.mean()


def test_who_observes_says_nothing_about_the_species(nature: Nature) -> None:
    seen = observe(nature, [2019], 20_000, np.random.default_rng(2))
    common = np.argsort(nature.prior([2019]))[-5:]
    for species in common:
        share = np.bincount(seen.observer_codes[seen.species == species], minlength=nature.settings.observers)
        expected = nature.observers.activity * share.sum()
        chi2 = ((share - expected) ** 2 / expected).sum()
        freedom = nature.settings.observers - 1
        assert chi2 < freedom + 5 * np.sqrt(2 * freedom)


def test_drawn_traits_have_the_means_and_spreads_of_their_species(nature: Nature) -> None:
    traits = draw_traits(nature, np.full(20_000, 7), np.random.default_rng(0))
    assert np.allclose(traits.latents.mean(axis=0), nature.means[7], atol=0.02)
    assert np.allclose(traits.latents.std(axis=0), nature.sds[7], rtol=0.03)
    for i, probabilities in enumerate(nature.option_probabilities):
        shares = np.bincount(traits.options[:, i], minlength=probabilities.shape[1]) / len(traits)
        assert np.allclose(shares, probabilities[7], atol=0.015)


def test_impossible_settings_are_refused_with_a_sentence() -> None:
    with pytest.raises(MisuseError, match="3 species cannot fall into 5 genera"):
        NatureSettings(species=3, genera=5, kingdom=FUNGI)
