import numpy as np
import pytest

from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.samplers import epoch_order

LABELS = np.repeat(np.arange(3, dtype=np.int32), [900, 90, 10])


def order(sampler="natural", groups=None, per_group=0, seed=0, epoch=0):
    return epoch_order(LABELS, groups, sampler=sampler, per_group=per_group, seed=seed, epoch=epoch)


def test_natural_sampling_shows_everything_once_in_another_order_each_epoch():
    assert sorted(order()) == list(range(1000))
    assert (order(epoch=0) == order(epoch=0)).all()
    assert (order(epoch=0) != order(epoch=1)).any()
    assert (order(seed=0) != order(seed=1)).any()


@pytest.mark.parametrize(
    ("sampler", "shares"),
    [("class-balanced", [1 / 3] * 3), ("square-root", np.sqrt([900, 90, 10]) / np.sqrt([900, 90, 10]).sum())],
)
def test_samplers_give_classes_the_shares_they_promise(sampler, shares):
    shown = np.concatenate([LABELS[order(sampler, epoch=epoch)] for epoch in range(20)])
    expected = np.array(shares) * len(shown)
    # Five standard deviations of a binomial count.
    assert (np.abs(np.bincount(shown) - expected) < 5 * np.sqrt(expected)).all()


def test_observations_give_a_few_photos_an_epoch_and_all_of_them_in_the_end():
    groups = np.repeat(np.arange(250), 4).astype(np.int64)
    epochs = [order(groups=groups, per_group=1, epoch=epoch) for epoch in range(4)]
    for shown in epochs:
        assert (np.bincount(groups[shown]) == 1).all()
    assert sorted(np.concatenate(epochs)) == list(range(1000))
    assert len(order(groups=groups, per_group=9)) == 1000  # more than an observation has


def test_draws_do_not_depend_on_who_draws_them():
    seeds = example_seeds(7, 3, np.arange(100))
    whole = Draws(seeds).uniform("left")
    halves = [Draws(part).uniform("left") for part in np.split(seeds, 2)]
    np.testing.assert_array_equal(whole, np.concatenate(halves))


def test_draws_are_uniform_and_have_nothing_in_common():
    draws = Draws(example_seeds(0, 0, np.arange(20_000)))
    left, top = draws.uniform("left"), draws.uniform("top")
    later = Draws(example_seeds(0, 1, np.arange(20_000))).uniform("left")
    counts = np.histogram(left, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
    for other in (top, later, np.roll(left, 1)):
        assert abs(np.corrcoef(left, other)[0, 1]) < 5 / np.sqrt(20_000)
    assert abs(draws.beta("mixup", 0.2).mean() - 0.5) < 0.02
    assert set(draws.integers("operation", 14)) == set(range(14))
