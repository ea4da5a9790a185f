"""Priors over contexts: the rules, exponents from val, and what must never change an answer."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.base import Lesson, fit_step
from fieldmark.steps.priors.prior import Prior
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part
from fieldmark_tests.lessons import lesson, pairs_of, with_columns

LABELS = Labels(("ceps", "morel", "puffball", "stinkhorn"))
TAXA = pl.DataFrame({"label": LABELS.names, "genus": ["Boletus", "Morchella", "Lycoperdon", "Phallus"]})
HABITATS = ("forest", "meadow", "dune")
# P(habitat | label) of the made-up nature below.
LIVES = np.array([[0.8, 0.15, 0.05], [0.5, 0.45, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


def items_of(n: int, prefix: str, rng: np.random.Generator, codes: np.ndarray) -> pl.DataFrame:
    habitat = [HABITATS[rng.choice(3, p=LIVES[code])] for code in codes]
    month = [1 + (3 * code + rng.integers(0, 3)) % 12 for code in codes]
    return with_columns(
        pl.DataFrame(
            {
                "item_id": [f"{prefix}{row}" for row in range(n)],
                "habitat": habitat,
                "date": [datetime.date(2020, int(one), 15) for one in month],
                "country": [("DK", "SE", "US")[rng.choice(3, p=LIVES[code])] for code in codes],
            }
        )
    )


def world(seed: int = 0, n: int = 400, *, several: bool = False) -> tuple[LabelScores, Lesson]:
    """Calibrated posteriors of val that know nothing of habitats, and a train that does."""
    rng = np.random.default_rng(seed)
    frequency = np.array([0.5, 0.3, 0.15, 0.05])
    train_codes, codes = (rng.choice(4, size=n, p=frequency).astype(np.int32) for _ in range(2))
    features = rng.normal(0, 1, (n, 4)) + 1.2 * np.eye(4)[codes]
    logits = (1.2 * features + np.log(frequency)).astype(np.float32)
    items = items_of(n, "v", rng, codes)
    marks = np.eye(4, dtype=bool)[codes]
    val = LabelScores(tuple(items["item_id"]), LABELS, logits, "logit")
    if several:
        val = val.with_scores(val.probabilities(), "score")
    made = lesson(val, marks if several else codes, items, taxa=TAXA)
    train_items = items_of(n, "t", rng, train_codes)
    targets = pairs_of(np.eye(4, dtype=bool)[train_codes]) if several else LabelTargets(train_codes)
    return val, replace(made, train=Part(train_items, targets))


def fitted(text: str, val: LabelScores, about: Lesson) -> Prior:
    step = fit_step(make_step(text), val, about)
    assert isinstance(step, Prior)
    return step


def log_loss(predictions: LabelScores, truth: np.ndarray) -> float:
    return float(-np.log(predictions.probabilities()[np.arange(len(truth)), truth]).mean())


def test_the_df20_rule_by_hand():
    """Photo (0.6, 0.4); counts 3:1 and 1:3 in two habitats, strength 2, so that forest gives (5.125, 3.125) / 4.125."""
    labels = Labels(("a", "b"))
    train = with_columns(
        pl.DataFrame({"item_id": [str(n) for n in range(8)], "habitat": ["forest"] * 4 + ["meadow"] * 4})
    )
    codes = np.array([0, 0, 0, 1, 0, 1, 1, 1], dtype=np.int32)
    items = with_columns(pl.DataFrame({"item_id": ["x"], "habitat": ["forest"]}))
    val = LabelScores(("x",), labels, np.log(np.array([[0.6, 0.4]])), "logit")
    about = replace(lesson(val, np.array([0]), items), train=Part(train, LabelTargets(codes)))
    for rule in ("df20", "product"):  # the labels are equally frequent, so that both rules agree
        step = fitted(f"prior:column=habitat,strength=2,exponent=1,rule={rule}", val, about)
        given_photo_and_habitat = np.array([0.6 * 5.125, 0.4 * 3.125])
        expected = given_photo_and_habitat / given_photo_and_habitat.sum()
        assert step.apply(val, items).probabilities()[0] == pytest.approx(expected, rel=1e-5)
        assert np.exp(step.log_prob(items))[0] == pytest.approx(np.array([5.125, 3.125]) / 8.25, rel=1e-5)


@pytest.mark.parametrize("column", ["habitat", "month", "country", "habitat/month", "habitat+month+country"])
def test_a_telling_context_lowers_the_log_loss_on_items_it_has_not_seen(column):
    val, about = world(0)
    step = fitted(f"prior:column={column}", val, about)
    assert len(step.exponents) == column.count("+") + 1 and any(step.exponents)
    assert step.log_loss["fitted"] <= min(step.log_loss["0"], step.log_loss["1"])
    test, unseen = world(1)
    assert log_loss(step.apply(test, unseen.items), unseen.truth) < log_loss(test, unseen.truth) - 0.05


def test_on_calibrated_posteriors_the_exponent_of_a_single_context_is_near_1():
    val, about = world(3, n=4000)
    assert fitted("prior:column=habitat", val, about).exponents[0] == pytest.approx(1, abs=0.12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["df20", "product"]), st.floats(0, 2))
@settings(max_examples=15, deadline=None)
def test_probabilities_sum_to_one_and_the_order_of_items_does_not_matter(seed, rule, exponent):
    val, about = world(seed, n=40)
    step = fitted(f"prior:column=habitat+month,rule={rule},exponent={exponent}", val, about)
    changed = step.apply(val, about.items)
    assert changed.probabilities().sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert np.exp(step.log_prob(about.items)).sum(axis=1) == pytest.approx(1)
    turned = val.select(val.items[::-1])
    again = step.apply(turned, about.items.sample(fraction=1, shuffle=True, seed=1)).select(val.items)
    assert again.scores == pytest.approx(changed.scores, abs=1e-6)


@pytest.mark.parametrize("several", [False, True])
def test_what_tells_nothing_changes_nothing(several):
    val, about = world(0, several=several)
    step = fitted("prior:column=habitat+month,exponent=1", val, about)
    before = val.chances()

    def after(items: pl.DataFrame, which: Prior = step) -> np.ndarray:
        return which.apply(val, items).chances()

    nothing = about.items.with_columns(habitat=pl.lit(None, pl.String), date=pl.lit(None, pl.Date))
    new = nothing.with_columns(habitat=pl.lit("moon"))
    for items in (nothing, new, about.items.drop("habitat", "date")):
        assert after(items) == pytest.approx(before, abs=1e-6)
    assert not np.allclose(after(about.items), before, atol=0.01)
    off = fitted("prior:column=habitat,exponent=0", val, about)
    assert off.apply(val, about.items) is val


def test_a_context_that_is_the_same_everywhere_changes_nothing():
    val, about = world(0)
    assert about.train is not None
    same = replace(about.train, items=about.train.items.with_columns(habitat=pl.lit("forest")))
    step = fitted("prior:column=habitat,exponent=1", val, replace(about, train=same))
    changed = step.apply(val, about.items.with_columns(habitat=pl.lit("forest")))
    assert changed.probabilities() == pytest.approx(val.probabilities(), abs=1e-6)


def test_values_that_are_new_or_missing_give_exactly_the_wider_level():
    val, about = world(0)
    months, country = fitted("month-prior:exponent=1", val, about), fitted("country-prior:exponent=1", val, about)
    (source,) = country.fitted_sources
    seen = pl.DataFrame({"country": ["DK", "NO", "Norway", "ZA", "Atlantis", "unknown", None]})
    ratios = source.log_ratio(seen)
    assert (ratios[1] == ratios[2]).all() and np.abs(ratios[1]).max() > 0  # Norway is new, its continent is not
    assert not ratios[3:].any() and (source.log_prob(seen)[3] == source.log_prior).all()
    assert not (ratios[0] == ratios[1]).all()
    assert [list(level) for level in source.groups] == [["Europe", "North America"], ["DK", "SE", "US"]]
    assert [len(level) for level in months.fitted_sources[0].groups] == [4, 12]


def test_under_product_a_classifier_of_balanced_classes_learns_how_frequent_labels_are():
    val, about = world(5, n=1500)
    balanced = val.with_scores(val.scores - np.log([0.5, 0.3, 0.15, 0.05]).astype(np.float32), "logit")
    nothing = about.items.with_columns(habitat=pl.lit(None, pl.String))
    step = fitted("prior:column=habitat,rule=product,exponent=1", balanced, about)
    frequencies = np.exp(step.fitted_sources[0].log_prior)
    expected = balanced.probabilities() * frequencies
    expected /= expected.sum(axis=1, keepdims=True)
    assert step.apply(balanced, nothing).probabilities() == pytest.approx(expected, rel=1e-4)


def test_unknown_keeps_its_share_in_a_context_that_tells_nothing_and_gains_where_no_label_fits():
    val, about = world(0, n=60)
    open_set = replace(val, unknown_label=np.full(60, 1.0, np.float32))
    for rule in ("df20", "product"):
        step = fitted(f"prior:column=habitat,exponent=1,rule={rule}", val, about)
        changed = step.apply(open_set, about.items)
        assert changed.probabilities().sum(axis=1) == pytest.approx(1, abs=1e-5)
    step = fitted("prior:column=habitat,exponent=1", val, about)
    nothing = about.items.with_columns(habitat=pl.lit(None, pl.String))
    assert step.apply(open_set, nothing).probabilities() == pytest.approx(open_set.probabilities(), abs=1e-6)
    sure = replace(open_set, scores=np.tile([9.0, 0, 0, 0], (60, 1)).astype(np.float32))
    gained = step.apply(sure, about.items.with_columns(habitat=pl.lit("dune"))).probabilities()[:, -1]
    assert (gained > sure.probabilities()[:, -1]).all()  # ceps do not live in dunes


@pytest.mark.parametrize("text", ["prior:column=habitat+month,borrow=genus", "country-prior", "month-prior:smooth=1"])
def test_a_fitted_prior_is_plain_data_and_arrays(text):
    val, about = world(0)
    step = fitted(text, val, about)
    again = step_from_data(step_to_data(step), step.arrays)
    assert isinstance(again, Prior) and step_to_data(again) == step_to_data(step)
    assert (again.apply(val, about.items).scores == step.apply(val, about.items).scores).all()


def test_each_observation_counts_once_however_many_photos_it_has():
    val, about = world(0, n=60)
    assert about.train is not None
    doubled = about.train.take(np.repeat(np.arange(60), 2))
    doubled = replace(doubled, items=doubled.items.with_columns(item_id=pl.int_range(120).cast(pl.String)))
    once, twice = (
        fitted("prior:column=habitat,exponent=1", val, replace(about, train=train)) for train in (about.train, doubled)
    )
    assert twice.fitted_sources[0].observations == 60
    assert twice.apply(val, about.items).scores == pytest.approx(once.apply(val, about.items).scores, abs=1e-6)


def test_smoothing_around_the_year_lets_december_teach_january():
    val, about = world(0)
    assert about.train is not None
    only = about.train.items.with_columns(date=pl.lit(datetime.date(2020, 12, 15)))
    mixed = only.with_columns(
        date=pl.when(pl.int_range(len(only)) % 2 == 0).then("date").otherwise(datetime.date(2020, 6, 1))
    )
    train = replace(about.train, items=mixed)
    january, june = (pl.DataFrame({"date": [datetime.date(2021, month, 3)]}) for month in (1, 6))
    plain, smooth = (
        fitted(f"month-prior:exponent=1,strength=1,smooth={width}", val, replace(about, train=train)).fitted_sources[0]
        for width in (0, 1)
    )
    assert "01" not in plain.groups[1] and "01" in smooth.groups[1]
    assert np.abs(smooth.log_ratio(january) - smooth.log_ratio(june)).max() > 0


def test_counts_from_val_are_judged_on_observations_they_have_not_seen():
    """Each item of val has a context of its own: from the same items it would be a perfect prior."""
    val, about = world(0, n=100)
    items = about.items.with_columns(habitat=pl.col("item_id"))
    alone = replace(about, val=replace(about.val, items=items), train=None)
    with pytest.raises(MisuseError, match="set learn_from=val"):
        fitted("prior:column=habitat", val, alone)
    step = fitted("prior:column=habitat,learn_from=val", val, alone)
    assert step.exponents == (0.0,) and step.log_loss["fitted"] == step.log_loss["0"]
    honest = fitted("prior:column=habitat,learn_from=val", *world(0))
    assert honest.exponents[0] > 0.3


def test_where_several_labels_hold_log_odds_are_added_and_what_was_ruled_out_stays_so():
    val, about = world(0, several=True)
    step = fitted("prior:column=habitat", val, about)
    assert step.several and step.exponents[0] > 0.3 and step.log_loss["fitted"] < step.log_loss["0"]
    chances = val.scores.astype(np.float64)
    changed = step.apply(val, about.items)
    (source,) = step.fitted_sources
    odds = np.log(chances / (1 - chances)) + step.exponents[0] * source.log_odds_ratio(about.items)
    assert changed.scale == "score" and changed.scores == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-5)
    ruled_out = val.with_scores(np.where(np.arange(4) == 2, 0, val.scores), "score")
    assert not step.apply(ruled_out, about.items).scores[:, 2].any()


def test_scores_that_only_rank_are_refused_where_one_label_holds():
    val, about = world(0)
    with pytest.raises(MisuseError, match="these scores only rank"):
        fitted("prior:column=habitat", val.with_scores(val.scores, "score"), about)


def test_borrowing_from_a_rank_that_nobody_knows_is_misuse():
    val, about = world(0)
    with pytest.raises(MisuseError, match="borrow from the family of a label: the taxa of this release tell genus"):
        fitted("prior:column=habitat,borrow=family", val, about)


TABLE = "species,denmark,Sweden,brazil\nCeps,1,1,0\nmorel,0,1,0\nPuffball ,0,0,0\npuffball,1,0,0\n"


def test_a_table_of_presence_has_a_floor_and_says_nothing_about_the_rest(tmp_path):
    (tmp_path / "ranges.csv").write_text(TABLE)
    val, about = world(0)
    for rule in ("df20", "product"):
        step = fitted(f"country-prior:file={tmp_path / 'ranges.csv'},floor=0.1,exponent=1,rule={rule}", val, about)
        shift = step.log_shift(pl.DataFrame({"country": ["DK", "Brazil", "USA", None]}), LABELS)
        weights = np.array([1, 0.1, 1, 1])  # the stinkhorn is not listed, and stays as it is
        assert np.exp(shift[0] - shift[0, 0]) == pytest.approx(weights)
        assert np.ptp(shift[1:], axis=1) == pytest.approx(0)  # nobody of ours lives in Brazil: no information
        changed = step.apply(val, about.items.with_columns(country=pl.lit("denmark"))).probabilities()
        expected = val.probabilities() * weights
        assert changed == pytest.approx(expected / expected.sum(axis=1, keepdims=True), rel=1e-4)
    digest = hashlib.sha256(TABLE.encode()).hexdigest()[:16]
    assert step.external_data == (f"The table of presence ranges.csv (SHA-256 {digest}).",)
    again = step_from_data(step_to_data(step), step.arrays)
    assert (again.apply(val, about.items).scores == step.apply(val, about.items).scores).all()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("species,denmark\nceps,2\n", "line 2: found '2' in column 'denmark', expected 0 or 1"),
        ("species,denmark\nceps,\n", "line 2: found None in column 'denmark', expected 0 or 1"),
        ("species,denmark\nceps,1\n,1\n", "line 3: found no label"),
        ("species,denmark\nyeti,1\n", "found none of them"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "ranges.csv"
    path.write_text(text)
    val, about = world(0, n=20)
    with pytest.raises(InputError, match=sentence):
        fitted(f"country-prior:file={path}", val, about)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        fitted(f"country-prior:file={path}", val, about)


def test_a_fitted_model_of_places_is_a_source_like_any_other(add_entry):
    """Another package adds a source with arrays of its own; the prior saves and loads it."""
    from fieldmark_tests.steps.priors.latitudes import Latitudes

    add_entry("fieldmark.priors", "latitudes", "fieldmark_tests.steps.priors.latitudes:Latitudes")
    val, about = world(0)
    rng = np.random.default_rng(0)
    assert about.train is not None and about.train.truth is not None

    def with_lat(part: Part, codes: np.ndarray) -> Part:
        return replace(part, items=part.items.with_columns(lat=pl.Series(20.0 * codes + rng.normal(0, 8, len(codes)))))

    about = replace(about, val=with_lat(about.val, about.truth), train=with_lat(about.train, about.train.truth))
    step = fitted("prior:source=latitudes", val, about)
    assert step.exponents[0] > 0.5 and step.log_loss["fitted"] < step.log_loss["0"] - 0.2
    assert isinstance(step.fitted_sources[0], Latitudes)
    again = step_from_data(step_to_data(step), step.arrays)
    assert (again.apply(val, about.items).scores == step.apply(val, about.items).scores).all()


def test_a_country_without_any_label_backs_off_to_its_continent_and_then_says_nothing(tmp_path):
    path = tmp_path / "ranges.csv"
    path.write_text(TABLE.replace(",brazil", ",iceland"))  # nobody lives in Iceland
    val, about = world(0)
    asked = pl.DataFrame(
        {
            "country": ["DK", "Iceland", "Norway", None, "Brazil", "Atlantis", "Lemuria"],
            "continent": ["Europe", "Europe", None, "Europe", "South America", "Europe", None],
        }
    )
    step = fitted(f"country-prior:file={path},floor=0.1,exponent=1", val, about)
    shift = step.log_shift(asked, LABELS)
    europe = np.array([1, 1, 1, 1])  # ceps and morel in Sweden, puffball in Denmark: all live in Europe
    assert np.exp(shift[0] - shift[0, 0]) == pytest.approx([1, 0.1, 1, 1])
    for row in (1, 2, 3, 5):  # no label, not in the table, country not known, a country that no list has
        assert np.exp(shift[row] - shift[row, 0]) == pytest.approx(europe)
    assert np.ptp(shift[[4, 6]], axis=1) == pytest.approx(0)  # neither country nor continent in the table
    path.write_text("species,denmark,iceland\nCeps,1,0\nmorel,0,0\npuffball,1,0\n")
    for back_off, morel in (("continent", 0.1), ("world", 1.0)):
        step = fitted(f"country-prior:file={path},floor=0.1,exponent=1,back_off={back_off}", val, about)
        shift = step.log_shift(asked[1:2], LABELS)
        assert np.exp(shift[0] - shift[0, 0])[list(LABELS.names).index("morel")] == pytest.approx(morel)
    with pytest.raises(MisuseError, match="back_off=galaxy: expected continent or world"):
        fitted("country-prior:back_off=galaxy", val, about)


def test_counts_back_off_to_the_continent_or_at_once_to_the_world():
    val, about = world(0)
    asked = pl.DataFrame({"country": ["Norway", "unknown"], "continent": [None, "Europe"]})
    by_continent, at_once = (
        fitted(f"country-prior:exponent=1,back_off={name}", val, about).fitted_sources[0]
        for name in ("continent", "world")
    )
    known = by_continent.log_ratio(asked)
    assert np.abs(known[0]).max() > 0 and (known[0] == known[1]).all()  # the stated continent serves as well
    assert not at_once.log_ratio(asked).any()
    assert [list(level) for level in at_once.groups] == [["DK", "SE", "US"]]


def test_counts_enter_once_how_frequent_a_label_is_does_not_count_twice():
    """Under df20 a prior from one country alone changes nothing, however unequal its labels are."""
    val, about = world(3)
    assert about.train is not None
    same = replace(about.train, items=about.train.items.with_columns(country=pl.lit("Kenya")))
    step = fitted("country-prior:exponent=1", val, replace(about, train=same))
    changed = step.apply(val, about.items.with_columns(country=pl.lit("Kenya")))
    assert changed.probabilities() == pytest.approx(val.probabilities(), abs=1e-6)


def listed_of(val: LabelScores, width: int) -> LabelScores:
    """The same predictions, of which each item lists its likeliest labels."""
    codes = np.argsort(-val.scores, axis=1)[:, :width].astype(np.int32)
    scores = np.take_along_axis(val.scores, codes.astype(np.int64), axis=1).ravel()
    return LabelScores(val.items, val.labels, scores, val.scale, codes.ravel(), np.arange(len(val.items) + 1) * width)


@pytest.mark.parametrize("rule", ["df20", "product"])
def test_lists_of_all_labels_are_weighed_as_dense_scores_are(rule):
    val, about = world()
    dense, listed = (fitted(f"prior:column=habitat,rule={rule}", one, about) for one in (val, listed_of(val, 4)))
    assert listed.exponents == pytest.approx(dense.exponents, abs=1e-4)
    expected = dense.apply(val, about.items)
    found = dense.apply(listed_of(val, 4), about.items)
    assert (found.top(4) == expected.top(4)).all()
    row, code, scores = found.pairs()
    assert scores == pytest.approx(expected.scores[row, code], abs=1e-5)


def test_a_list_of_some_labels_keeps_them_and_only_changes_their_order():
    val, about = world()
    few = listed_of(val, 2)
    after = fitted("prior:column=habitat", few, about).apply(few, about.items)
    pairs = [set(zip(*one.pairs()[:2], strict=True)) for one in (few, after)]
    assert pairs[0] == pairs[1] and (after.top(2) != few.top(2)).any()
    assert (after.top(1)[:, 0] == about.truth).mean() > (few.top(1)[:, 0] == about.truth).mean()


def test_a_step_that_needs_every_label_refuses_lists_before_it_learns():
    val, about = world()
    with pytest.raises(MisuseError, match="The step prior-em needs a score for every label, and the method lists"):
        fit_step(make_step("prior-em"), listed_of(val, 2), about)
