"""The real files of FGVCx Fungi 2018 that are at hand: the list of test photos, and the categories."""

from __future__ import annotations

import polars as pl

import fieldmark
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release


def test_the_real_test_file_and_category_list_open(real_data):
    dataset = fieldmark.dataset("fgvcx-fungi-2018", real_data / "fgvcx_fungi_2018")
    assert len(dataset.media) == 9_758 and dataset.media["media_id"].cast(pl.Int64).min() == 8192
    assert dataset.taxa["label"].to_list() == [str(number) for number in range(1_394)]
    assert "Not there: train.json, val.json." in dataset.remarks


def test_every_real_name_but_one_gives_genus_and_species(real_data):
    taxa = fieldmark.dataset("fgvcx-fungi-2018", real_data / "fgvcx_fungi_2018").taxa
    assert taxa["genus"].null_count() == 0
    assert taxa.filter(pl.col("species").is_null())["name"].to_list() == ["Hydnum umbilicatum ss auct. eur."]
    twice = taxa.filter(pl.col("name").is_duplicated())["name"].unique().sort()
    assert twice.to_list() == ["Cortinarius anomalus", "Inocybe rimosa"]
    assert taxa["infraspecific"].is_not_null().sum() == 39
    assert taxa["name"].str.ends_with(" ").sum() > 0


def test_what_is_at_hand_is_of_the_final_release(real_data):
    report = CHECKS["fgvcx-fungi-2018"](Release(real_data / "fgvcx_fungi_2018"))
    assert report.sound
    expected = "the counts are those of the final release: 1,394 species, 9,758 photos of test"
    assert expected in [problem.what for problem in report.problems]
