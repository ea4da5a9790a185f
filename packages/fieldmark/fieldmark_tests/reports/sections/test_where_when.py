"""The map and the calendar against the table of observations they are drawn from."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.dates import date2num

from fieldmark.reports.charts import heat
from fieldmark.reports.charts.calendars import choose_every, focus, over_one_year, over_the_years
from fieldmark.reports.charts.maps import FLATTEST, TALLEST, MapExtent, MapPoints, most_in_hexagon, uses_dots
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import SECTIONS, where_when
from fieldmark_tests.reports.by_hand import FUNGI, MakeRelease, MakeRun, noisy


def observations(root: Path) -> dict[str, dict[str, dict[str, str]]]:
    """`{part: {observation: row}}`, from the file."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    with (root / "observations.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["file"].split("/")[0], {}).setdefault(row["observation"], row)
    return found


def without(root: Path, column: str, *, every: int) -> None:
    """Empties a column of all but each so-many-th observation."""
    names = list(dict.fromkeys(name for part in observations(root).values() for name in part))
    keep = set(names[::every])
    with (root / "observations.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with (root / "observations.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, column: row[column] if row["observation"] in keep else ""} for row in rows)


def test_parts_have_the_places_and_dates_of_the_table(make_release: MakeRelease, make_run: MakeRun) -> None:
    root = make_release(FUNGI, dated=True, located=True)
    for column in ("latitude", "longitude"):
        without(root, column, every=2)
    context = load_context([make_run(root, noisy)])
    expected = observations(root)
    found = where_when.facts(context)
    assert [one.part for one in found] == ["train", "val", "test"]
    for one in found:
        rows = list(expected[one.part].values())
        assert (one.observations, one.dated) == (len(rows), len(rows))
        assert one.placed == sum(row["latitude"] != "" for row in rows)
        assert [str(one.first), str(one.last)] == [min(row["date"] for row in rows), max(row["date"] for row in rows)]
    for part, places in where_when.places(context).items():
        rows = [row for row in expected[part].values() if row["latitude"]]
        assert sorted(zip(places.lat, places.lon, strict=True)) == sorted(
            (float(row["latitude"]), float(row["longitude"])) for row in rows
        )


@pytest.mark.parametrize(("every", "shown"), [(1, True), (2, True), (3, False)])
def test_a_calendar_needs_dates_for_half_of_the_observations(
    make_release: MakeRelease, make_run: MakeRun, every: int, shown: bool
) -> None:
    root = make_release(FUNGI, dated=True)
    without(root, "date", every=every)
    context = load_context([make_run(root, noisy)])
    assert SECTIONS["where-when"].applies(context) == shown
    assert not where_when.has_map(where_when.facts(context))
    if shown:
        html = SECTIONS["where-when"].render(context)
        assert "No map: less than half" in html and "where-when-calendar" in html


def test_a_map_has_a_fair_shape_and_holds_all_places() -> None:
    for lat, lon in (
        ([10.0, 10.0], [0.0, 50.0]),
        ([0.0, 60.0], [3.0, 3.0]),
        ([55.0], [12.0]),
        ([-90, 90], [-180, 180]),
    ):
        extent = MapExtent.around({"train": MapPoints(np.array(lat, dtype=float), np.array(lon, dtype=float))})
        assert FLATTEST - 1e-9 <= extent.shape <= TALLEST + 1e-9
        assert extent.west < min(lon) <= max(lon) < extent.east
        assert extent.south < min(lat) <= max(lat) < extent.north


def test_a_degree_of_longitude_is_drawn_shorter_in_the_north() -> None:
    extent = MapExtent.around({"train": MapPoints(np.array([59.5, 60.5]), np.array([10.0, 12.0]))})
    assert extent.shrink == pytest.approx(0.5)
    assert extent.shape == pytest.approx(1.0)
    assert extent.scale_km == 20


def test_many_observations_are_counted_in_hexagons() -> None:
    rng = np.random.default_rng(0)
    places = {
        "train": MapPoints(
            np.append(rng.uniform(50, 58, 2000), [54.0] * 300), np.append(rng.uniform(4, 18, 2000), [9.0] * 300)
        )
    }
    assert not uses_dots(places)
    assert 300 <= most_in_hexagon(places) < 340


def test_months_hold_each_observation_once() -> None:
    days = [date(2019, 12, 31), date(2020, 1, 1), date(2020, 1, 31), date(2020, 2, 29), date(2031, 12, 1)]
    strip = over_the_years(pl.Series("date", days), "month")
    expected = Counter(date(day.year, day.month, 1) for day in days)
    assert dict(zip(strip.starts, strip.counts, strict=True)) == {date2num(day): n for day, n in expected.items()}
    assert strip.ends[-1] == date2num(date(2032, 1, 1))


def test_weeks_of_the_year_end_with_the_year() -> None:
    days = pl.Series("date", [date(2020, 12, 31), date(2021, 12, 31), date(2021, 1, 1), date(2021, 1, 8)])
    strip = over_one_year(days)
    assert strip.starts.tolist() == [0, 7, 357] and strip.ends[-1] == 366
    assert strip.counts.tolist() == [1, 1, 2]


def test_weeks_months_and_years_by_how_long_it_was() -> None:
    def every(first: int, last: int) -> str:
        return choose_every(pl.Series("date", [date(first, 1, 1), date(last, 6, 1)]))

    assert [every(2020, 2022), every(2000, 2022), every(1890, 2022)] == ["week", "month", "year"]


def test_a_few_old_observations_do_not_take_the_room() -> None:
    recent = pl.Series("date", [date(2015 + number % 6, 9, 1) for number in range(98)])
    old = pl.Series("date", [date(1950, 5, 1), date(1961, 5, 1)])
    assert focus({"train": pl.concat([recent, old])}) == date(2015, 9, 1)
    assert focus({"train": recent}) == date(2015, 9, 1)
    assert focus({"train": old}) == date(1950, 5, 1)


def test_steps_cover_all_counts_without_gaps() -> None:
    for most in (1, 3, 5, 6, 40, 999, 100_000):
        starts = heat.count_starts(most)
        assert starts[0] == 1 and list(starts) == sorted(set(starts)) and starts[-1] <= most
        assert set(heat.steps(np.arange(1, most + 1), starts)) == set(range(len(starts)))
        assert len(heat.titles(starts)) == len(starts) <= heat.STEPS
