"""Tables that other people made, opened as occurrences."""

from __future__ import annotations

import datetime
import shutil

import polars as pl
import pytest
from dwca.read import DwCAReader

import fieldmark
from fieldmark.errors import InputError
from fieldmark.exporting.darwin_core import export_darwin_core
from fieldmark.releases import release_of
from fieldmark.releases.checks import CHECKS


def test_a_table_of_photos_is_a_table_of_specimens_with_months_before_days(real_data):
    dataset = fieldmark.dataset("occurrences", real_data / "fungi_amanita" / "images_with_metadata.csv")
    assert (len(dataset.observations), len(dataset.media), len(dataset.taxa)) == (108, 535, 32)
    first = dataset.observations.row(0, named=True)
    assert first["label"] == "Amanita aff. fulva" and first["date"] == datetime.date(2024, 9, 1)
    assert first["lat"] == pytest.approx(46.878951) and dataset.observations["date"].null_count() == 0
    assert dataset.taxa["genus"].unique().to_list() == ["Amanita"]
    assert dataset.read_medium(dataset.media["media_id"][0])[:2] == b"\xff\xd8"


def test_a_table_of_photos_comes_back_from_an_archive(real_data, tmp_path):
    before = fieldmark.dataset("occurrences", real_data / "fungi_amanita" / "images_with_metadata.csv")
    export_darwin_core(before, tmp_path / "amanita.zip")
    after = fieldmark.dataset("occurrences", tmp_path / "amanita.zip")
    columns = [name for name in before.observations.columns if name != "event_date"]
    assert after.observations.select(columns).equals(before.observations.select(columns))
    assert after.taxa.equals(before.taxa)
    with DwCAReader(str(tmp_path / "amanita.zip")) as opened:
        assert len(list(opened)) == 108


def test_places_alone_are_read(real_data, tmp_path):
    dataset = fieldmark.dataset("occurrences", real_data / "sdm_bradypus" / "bradypus.csv")
    assert len(dataset.observations) == 116 and dataset.taxa["label"].to_list() == ["Bradypus variegatus"]
    assert dataset.observations.select("lat", "lon").row(0) == (-10.3833, -65.4)
    table = pl.read_csv(real_data / "geolifeclef_2020" / "example_occurrences.csv", separator=";")
    sample = fieldmark.dataset("occurrences", real_data / "geolifeclef_2020" / "example_occurrences.csv")
    assert sample.observations["lat"].to_list() == table["lat"].to_list()
    assert sample.observations["label"].to_list() == table["species_id"].cast(pl.String).to_list()


def test_an_old_download_of_gbif_by_r_needs_its_encoding_and_then_reads(real_data, tmp_path):
    shutil.copy(real_data / "sdm_bradypus" / "acaule.csv", tmp_path)
    with pytest.raises(InputError, match=r'line 53: found bytes that are not UTF-8.*encoding = "cp1252"'):
        fieldmark.dataset("occurrences", tmp_path)
    (tmp_path / "occurrences.toml").write_text('encoding = "cp1252"')
    dataset = fieldmark.dataset("occurrences", tmp_path)
    table = pl.read_csv((tmp_path / "acaule.csv").read_bytes().decode("cp1252").encode(), infer_schema=False)
    lat = table["lat"].replace("NA", None).cast(pl.Float64)
    lon = table["lon"].replace("NA", None).cast(pl.Float64)
    assert len(dataset.observations) == len(table) == 594
    possible = (lat.is_not_null() & lon.is_not_null() & ~((lat == 0) & (lon == 0))).sum()
    assert dataset.observations["lat"].is_not_null().sum() == possible > 500
    assert dataset.observations["label"].n_unique() < table["species"].n_unique()  # authors and forms are cut off
    report = CHECKS["occurrences"](release_of("occurrences", tmp_path))
    assert {part.part: part.found.observations for part in report.counts} == {
        "all": 594,
        "places": possible,
        "photos": 0,
    }


def test_a_quarter_of_a_million_dated_records_need_one_stated_column(real_data, tmp_path):
    (tmp_path / "stream.csv.xz").symlink_to(real_data / "mushroom_observer_stream" / "stream.csv.xz")
    (tmp_path / "occurrences.toml").write_text('[columns]\ndate = "created"\n')
    dataset = fieldmark.dataset("occurrences", tmp_path)
    assert len(dataset.observations) == 254_787 and dataset.observations["date"].null_count() == 0
    assert dataset.observations.select("observation_id", "label", "date").row(0) == (
        *("stream.csv.xz:2", "Xylaria magnoliae"),
        datetime.date(2004, 7, 17),
    )
