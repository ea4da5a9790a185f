"""Values of contexts and the wider ones they back off to; countries."""

from __future__ import annotations

import csv
import datetime
from collections import Counter
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.steps import make_step
from fieldmark.steps.priors.contexts import levels_of
from fieldmark.steps.priors.countries import find_country

ITEMS = pl.DataFrame(
    {
        "date": [datetime.date(2020, 12, 31), datetime.date(2020, 3, 1), None],
        "country": ["DK", "united states of america", "UNKNOWN"],
        "habitat": ["forest", " ", None],
        "landcover": [4, 5, None],
        "elevation_m": [1.5, 2.5, None],
    }
)


def texts(context: str, **options: int) -> list[list[str | None]]:
    return [column.to_list() for column in levels_of(context, ITEMS, **options)]


def test_months_back_off_to_seasons_and_countries_to_continents():
    assert texts("month") == [["Dec-Feb", "Mar-May", None], ["12", "03", None]]
    assert texts("season") == [["Dec-Feb", "Mar-May", None]]
    assert texts("country") == [["Europe", "North America", None], ["DK", "US", None]]
    assert texts("month", months_later=1)[1] == ["01", "04", None]  # the year is a circle
    assert texts("habitat") == [["forest", None, None]] and texts("landcover") == [["4", "5", None]]


def test_a_context_within_another_backs_off_to_the_other():
    assert texts("landcover/month") == [
        ["4", "5", None],
        ["4 / Dec-Feb", "5 / Mar-May", None],
        ["4 / 12", "5 / 03", None],
    ]


def test_what_cannot_be_counted_is_refused_in_a_sentence():
    with pytest.raises(MisuseError, match="elevation_m holds Float64"):
        levels_of("elevation_m", ITEMS)
    with pytest.raises(MisuseError, match="no column 'substrate' among the inputs of the task: date, country"):
        levels_of("substrate", ITEMS)


@pytest.mark.parametrize(
    ("step", "benchmark", "sentence"),
    [
        ("prior", "fungitastic/closed", "needs a column"),
        ("prior:column=observer", "fungitastic/closed", "no prior over observer"),
        ("prior:column=site", "fungitastic/closed", "reads site, which the task does not provide"),
        ("country-prior", "folder", "reads country, which the task does not provide"),
        ("prior:column=site,rule=product", "birdclef-2020", "for one label per item"),
        ("prior:source=birdnet", "snakeclef-2020", "needs to know the place"),
    ],
)
def test_what_a_task_does_not_allow_is_refused_before_anything_is_read(step, benchmark, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make_step(step).check(BENCHMARKS[benchmark].task)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("column=habitat,rule=sum", "prior:rule=sum: expected df20 or product"),
        ("column=habitat,exponent=-1", "prior:exponent=-1: expected a number of at least 0, or val"),
        ("column=habitat,learn_from=test", "prior:learn_from=test: expected train or val"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make_step(f"prior:{settings}")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("column=habitat,strength=0", "strength=0: expected a number above 0, or train"),
        ("column=habitat,source=presence", "add file=TABLE.csv"),
        ("column=country,file=a.csv,floor=0", "floor=0.0: expected a number above 0 and at most 1"),
        ("column=month,smooth=-1", "smooth=-1.0: expected a number of at least 0 .*in months"),
        ("column=habitat,source=guess", "no source of a prior called 'guess'"),
    ],
)
def test_settings_of_sources_that_cannot_be_are_refused_with_the_task(settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make_step(f"prior:{settings}").check(BENCHMARKS["fungitastic/closed"].task)


def test_every_country_has_its_own_codes_and_names_and_a_continent():
    rows = list(
        csv.DictReader(files("fieldmark.steps.priors").joinpath("countries.csv").read_text("utf-8").splitlines())
    )
    assert len(rows) == 250
    names = [
        name.casefold()
        for row in rows
        for name in {row["code"], row["code3"], row["name"], *row["other_names"].split("|")}
        if name
    ]
    assert not [name for name, times in Counter(names).items() if times > 1]
    assert all(len(row["code"]) == 2 and len(row["code3"]) == 3 for row in rows)
    assert {row["continent"] for row in rows} == {
        "Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania", "South America",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code"),
    [("NA", "NA"), ("namibia", "NA"), ("Swaziland", "SZ"), ("Czech Republic", "CZ"), ("USA", "US"), ("Burma", "MM")],
)
def test_countries_are_found_by_codes_and_by_old_and_new_names(text, code):
    country = find_country(text)
    assert country is not None and country.code == code


def test_a_place_backs_off_to_wider_cells_that_hold_the_narrower_ones():
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(54.5, 58, 300), rng.uniform(8, 15, 300)
    widest, middle, narrow = levels_of("place", pl.DataFrame({"lat": lat, "lon": lon}))
    assert 1 < widest.n_unique() < middle.n_unique() < narrow.n_unique()
    nested = pl.DataFrame({"widest": widest, "middle": middle, "narrow": narrow}).unique()
    assert nested["narrow"].is_duplicated().sum() == 0  # each narrow cell lies in one of the wider ones
    assert nested.select("widest", "middle").unique()["middle"].is_duplicated().sum() == 0


def test_a_place_that_is_missing_or_none_on_earth_is_in_no_cell():
    places = pl.DataFrame({"lat": [None, 91.0, float("nan"), 55.0], "lon": [10.0, 10.0, 10.0, None]})
    assert all(level.is_null().all() for level in levels_of("place", places))
