"""Real tables of SnakeCLEF: the check finds what the documents say, and the 2021 tables open."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release


def test_check_finds_779_of_783_slugs_and_names_the_other_four(real_data):
    report = CHECKS["snakeclef-2020"](Release(real_data / "snakeclef"))
    said = {problem.what: problem.places for problem in report.problems}
    assert said["the table of presence has 779 of 783 species"] == (
        "snakeclef2021_species_to_country_mapping.csv: 3,758 species by 195 countries",
    )
    missing = "macropisthodon-plumbicolor, macropisthodon-rudis, sinonatrix-percarinata, xenochrophis-flavipunctatus"
    assert said["the table of presence lacks 4 species, maybe under another name"] == (missing,)
    words = " ".join(said)
    for fact in ("783 species in the data and 973 in the test set", "12,201", "17 of the least", "about 80%"):
        assert fact in words
    published = {part.part: next(iter(part.published.values()), None) for part in report.counts}
    assert (published["train"].photos, published["val"].photos) == (245_185, 14_029)


@pytest.mark.parametrize(
    ("folder", "photos", "classes"), [("snakeclef", 10_000, 633), ("snakeclef_2021_tables", 33_498, 633)]
)
def test_the_2021_tables_open(real_data, folder, photos, classes):
    data = fieldmark.dataset("snakeclef-2021", real_data / folder)
    assert (len(data.media), len(data.taxa)) == (photos, classes)
    assert not data.observations["country"].str.to_lowercase().is_in(["unknown"]).any()


def test_318_photos_are_in_two_of_the_tables_and_are_one_row_each(real_data):
    data = fieldmark.dataset("snakeclef-2021", real_data / "snakeclef_2021_tables")
    assert data.media["media_id"].is_unique().all()
    assert data.media.filter(data.media["parts"].list.len() > 1).height == 318
    assert data.taxa["poisonous"].is_not_null().sum() == 135
    boxed = data.layers["boxes"].read(data.media["media_id"].to_list())
    assert sum(box is not None for box in boxed) == 23_816
