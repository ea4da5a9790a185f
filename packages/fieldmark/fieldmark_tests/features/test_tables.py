from __future__ import annotations

import numpy as np
import pytest

from fieldmark.features.tables import NumbersEncoder, TableColumn, TableEncoder

NAN = float("nan")


def test_numbers_have_mean_zero_and_spread_one_on_train_and_say_what_is_missing():
    train = np.array([1.0, 3.0, NAN, 5.0])
    encoder = TableEncoder.fit({"elevation": TableColumn("number", train)})
    encoded = encoder({"elevation": TableColumn("number", train)})
    there = encoded[[0, 1, 3], 0]
    assert there.mean() == pytest.approx(0, abs=1e-6) and there.std() == pytest.approx(1)
    assert encoded[:, 1].tolist() == [0, 0, 1, 0] and encoded[2, 0] == 0
    other = encoder({"elevation": TableColumn("number", np.array([7.0]))})
    assert other[0, 0] == pytest.approx((7 - 3) / np.std([1, 3, 5]))  # by train, not by what it is applied to


def test_categories_that_train_has_rarely_or_never_share_a_column():
    train = ["oak"] * 3 + ["beech"] * 2 + ["yew", None]
    encoder = TableEncoder.fit({"habitat": TableColumn("category", train)})
    encoded = encoder({"habitat": TableColumn("category", ["beech", "oak", "yew", "never seen", None])})
    assert encoded.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    fewer = TableEncoder.fit({"habitat": TableColumn("category", train)}, categories=1)
    assert fewer({"habitat": TableColumn("category", ["beech", "oak"])}).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_what_is_the_same_for_all_of_train_has_no_column_so_that_news_cannot_throw_an_answer_off():
    encoder = TableEncoder.fit({"habitat": TableColumn("category", ["oak"] * 2 + ["fir"] * 2)})
    assert encoder({"habitat": TableColumn("category", ["oak", "new", None])}).tolist() == [[0, 1], [0, 0], [0, 0]]


def test_the_last_day_of_the_year_lies_next_to_the_first():
    days = np.array([0.0, 364 / 365, 182 / 365, 30 / 365, NAN])
    encoder = TableEncoder.fit({"date": TableColumn("date", days)})
    encoded = encoder({"date": TableColumn("date", days)})
    apart = np.linalg.norm(encoded[:4] - encoded[0], axis=1)
    assert apart[1] < 0.05 < apart[3] < apart[2]
    assert encoded[4, :-1].tolist() == [0, 0, 0, 0] and encoded[4, -1] == 1


def test_midnight_lies_next_to_one_minute_before():
    hours = np.array([0.0, 23 + 59 / 60, 12.0])
    encoded = TableEncoder.fit({"time": TableColumn("hour", hours)})({"time": TableColumn("hour", hours)})
    assert np.linalg.norm(encoded[1] - encoded[0]) < 0.02 < np.linalg.norm(encoded[2] - encoded[0])


def test_the_date_line_is_no_border_and_impossible_places_are_missing():
    places = np.array([[10.0, 179.99], [10.0, -179.99], [10.0, 150.0], [95.0, 0.0], [NAN, 3.0]])
    encoder = TableEncoder.fit({"place": TableColumn("place", places)})
    encoded = encoder({"place": TableColumn("place", places)})
    apart = np.linalg.norm(encoded - encoded[0], axis=1)
    assert apart[1] < 0.03 < apart[2]
    assert encoded[3].tolist() == encoded[4].tolist() and encoded[:, -1].tolist() == [0, 0, 0, 1, 1]


def test_waves_tell_places_apart_that_are_a_hundredth_of_the_area_away():
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(54.5, 57.5, 200), rng.uniform(8, 13, 200)])  # a small country
    near = np.add(places[:1], [0.03, 0.05])
    apart = []
    for waves in (0, 4):
        encoder = TableEncoder.fit({"place": TableColumn("place", places)}, waves=waves)
        one, other = encoder({"place": TableColumn("place", np.vstack([places[:1], near]))})
        apart.append(np.linalg.norm(one - other))
    assert apart[1] > 5 * apart[0]


def test_an_encoder_from_its_arrays_encodes_alike():
    columns = {
        "elevation": TableColumn("number", np.array([1.0, NAN, 4.0])),
        "habitat": TableColumn("category", ["Ëk\nand fir", "Ëk\nand fir", None]),
        "place": TableColumn("place", np.array([[1.0, 2.0], [3.0, 4.0], [NAN, NAN]])),
        "date": TableColumn("date", np.array([0.1, 0.5, NAN])),
    }
    encoder = TableEncoder.fit(columns)
    again = TableEncoder.of({name: np.array(array) for name, array in encoder.arrays.items()})
    assert (again(columns) == encoder(columns)).all() and again.kinds == encoder.kinds


def test_numbers_of_layers_are_standardized_and_missing_ones_are_the_mean():
    train = np.array([[1.0, 5.0, NAN], [3.0, 5.0, NAN], [NAN, 5.0, NAN]])
    encoder = NumbersEncoder.fit(train)
    assert encoder(train).tolist() == [[-1], [1], [0]]  # the second is constant, the third unknown
    again = NumbersEncoder.of(encoder.arrays)
    assert again(np.array([[7.0, 9.0, 1.0]])).tolist() == [[5]]
