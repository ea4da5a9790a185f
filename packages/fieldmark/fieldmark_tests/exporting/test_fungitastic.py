"""One's own records drawn as a benchmark like FungiTastic, checked, fitted and scored; and rules that are broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError
from fieldmark.exporting.fungitastic import draw_fungitastic
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release
from fieldmark_tests.fixtures import save_photo

MAIN, FEW = "metadata/FungiTastic/FungiTastic", "metadata/FungiTastic-FewShot/FungiTastic-FewShot"
# Observations by species and year. The rare one has four in train, the new ones none.
SEEN = {
    "Amanita muscaria": {2019: 3, 2021: 3, 2022: 2, 2023: 2},
    "Mycena rosea": {2020: 5, 2022: 1, 2023: 3},
    "Boletus edulis": {2018: 2, 2021: 2, 2022: 1, 2023: 1},
    "Russula nova": {2022: 1, 2023: 1},
    "Russula serotina": {2023: 2, 2024: 1},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> Path:
    """Records with a photo each; the first has two, and one has none."""
    root = tmp_path_factory.mktemp("records")
    lines, number = ["id,scientificName,eventDate,decimalLatitude,decimalLongitude"], 0
    for species, years in SEEN.items():
        for year, times in years.items():
            for time in range(times):
                lines.append(f"find {number},{species},{year}-0{time + 5}-1{time},55.{number},11.{number}")
                save_photo(root / f"photos/find {number}.jpg", (9 * number % 255, 90, 60), seed=number)
                number += 1
    lines.append("bare,Mycena rosea,2021-01-01,55.1,11.1")
    shutil.copy(root / "photos/find 1.jpg", root / "photos/find 0_2.jpg")
    (root / "records.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def drawn(records, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("drawn") / "benchmark"
    done = CliRunner().invoke(app, ["split", str(records), "--fungitastic", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "species: 1 few-shot, 2 known, 2 unknown" in done.output
    assert "left out: 1 records without a photo" in done.output and "left out: 1 records after" in done.output
    return out


def table(root: Path, path: str) -> pl.DataFrame:
    return pl.read_csv(root / f"{path}.csv", infer_schema=False)


def test_parts_are_years_and_species_are_known_few_shot_or_unknown_by_what_train_holds(drawn):
    train = table(drawn, f"{MAIN}-Train")
    assert set(train["scientificName"]) == {"Amanita muscaria", "Mycena rosea"} and train["year"].max() == "2021"
    assert set(table(drawn, f"{MAIN}-ClosedSet-Test")["scientificName"]) == {"Amanita muscaria", "Mycena rosea"}
    opened = table(drawn, f"{MAIN}-OpenSet-Test")
    unknown = opened.filter(pl.col("category_id") == "-1")
    assert set(unknown["scientificName"]) == {"Russula nova", "Russula serotina"} and set(opened["year"]) == {"2023"}
    few = {part: len(table(drawn, f"{FEW}-{part}")) for part in ("Train", "Val", "Test")}
    assert few == {"Train": 4, "Val": 1, "Test": 1}
    assert train.filter(pl.col("occurrenceID") == "find 0")["filename"].to_list() == ["0-1.jpg", "1-1.jpg"]


def test_a_drawn_benchmark_passes_its_check_and_says_what_it_is(drawn):
    report = CHECKS["fungitastic"](Release(drawn))
    assert report.sound and not any(part.published for part in report.counts)
    assert not any("missing" in problem.what for problem in report.problems)
    remark = open_dataset("fungitastic", drawn).remarks[0]
    assert "up to 2021-12-31" in remark and "cannot be compared" in remark


@pytest.mark.parametrize("benchmark", ["fungitastic/closed", "fungitastic/open", "fungitastic-fewshot"])
def test_a_drawn_benchmark_is_fitted_and_scored(drawn, tmp_path, benchmark):
    result = fieldmark.fit(benchmark, drawn, "frequent", tmp_path / "run")
    assert result.scorecards["test"].metrics["top_1"].value is not None
    assert any(
        "cannot be compared" in remark for remark in json.loads((tmp_path / "run/run.json").read_text())["remarks"]
    )


def broken(drawn: Path, tmp_path: Path, path: str, change) -> list[str]:
    """What the check finds where one file was changed."""
    root = Path(shutil.copytree(drawn, tmp_path / "copy"))
    file = root / f"{path}.csv"
    change(pl.read_csv(file, infer_schema=False)).write_csv(file)
    report = CHECKS["fungitastic"](Release(root))
    assert not report.sound
    return [f"{problem.what}: {problem.places}" for problem in report.problems if problem.severity == "error"]


def test_a_training_observation_of_2023_is_reported_with_its_line(drawn, tmp_path):
    found = broken(drawn, tmp_path, f"{MAIN}-Train", lambda rows: _with(rows, 1, "eventDate", "2023-05-01"))
    assert len(found) == 1 and "outside the days of Train, which holds those up to 2021-12-31" in found[0]
    assert f"{MAIN}-Train.csv, line 3: 1-1.jpg, 2023-05-01" in found[0]


def test_an_unknown_species_with_photos_in_train_is_reported(drawn, tmp_path):
    named = pl.when(pl.col("category_id") == "-1").then(pl.lit("Mycena rosea")).otherwise("scientificName")
    found = broken(drawn, tmp_path, f"{MAIN}-OpenSet-Val", lambda rows: rows.with_columns(scientificName=named))
    assert any("an unknown species (-1) has photos in train" in one and "Mycena rosea" in one for one in found)


def test_a_few_shot_species_with_five_observations_is_reported(drawn, tmp_path):
    def fifth(rows: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([rows, _with(_with(rows.head(1), 0, "observationID", "99"), 0, "filename", "0-99.jpg")])

    found = broken(drawn, tmp_path, f"{FEW}-Train", fifth)
    assert any("a few-shot species has 5 or more observations in train" in one for one in found)
    assert any("Boletus edulis has 5" in one for one in found)


def test_days_of_ones_own_need_both_and_years_without_records_are_refused(records, tmp_path):
    wrong = CliRunner().invoke(app, ["split", str(records), "--fungitastic", "--out", "x", "--val-from", "2022"])
    assert isinstance(wrong.exception, MisuseError) and "--test-from 2023" in str(wrong.exception)
    both = CliRunner().invoke(app, ["split", str(records), "--fungitastic", "--out", "x", "--val", "0.1"])
    assert isinstance(both.exception, MisuseError) and "leave --val out" in str(both.exception)
    for days, said in (
        ((2010, 2011), "no species with 5 or more"),
        ((2022, 2031), "no observation of a known species"),
    ):
        options = ["--val-from", str(days[0]), "--test-from", str(days[1])]
        done = CliRunner().invoke(app, ["split", str(records), "--fungitastic", "--out", "x", *options])
        assert isinstance(done.exception, InputError) and said in str(done.exception)


def test_records_without_any_photo_are_one_row_each(tmp_path):
    lines = [f"{row},Mycena rosea,{2016 + row}-05-01" for row in range(8)]
    (tmp_path / "finds.csv").write_text("\n".join(["id,species,date", *lines]) + "\n")
    result = draw_fungitastic(tmp_path / "finds.csv", tmp_path / "out")
    assert result.counts["FungiTastic-Train"] == {"observations": 6, "photos": 6, "species": 1}
    assert result.species == {"known": 1} and not (tmp_path / "out/FungiTastic").exists()


def _with(rows: pl.DataFrame, row: int, column: str, value: str) -> pl.DataFrame:
    here = pl.int_range(pl.len()) == row
    return rows.with_columns(pl.when(here).then(pl.lit(value)).otherwise(column).alias(column))
