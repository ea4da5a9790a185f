"""Regions with real records, sites and rasters open in one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import open_benchmark


@pytest.mark.parametrize(
    ("region", "counts"),
    [("SWI", (35_105, 10_013, 10_000, 13)), ("SA", (2_220, 152, 10_000, 11))],
)
def test_both_regions_of_disdat_open_by_a_table_of_theirs(real_data, region, counts):
    dataset = open_dataset("occurrences", real_data / "sdm_disdat" / f"{region}train_po.parquet", "presence")
    kinds = dict(dataset.observations["kind"].value_counts().iter_rows())
    assert (kinds["record"], kinds["site"], kinds["background"]) == counts[:3]
    assert len(dataset.layers["environment"].names) == counts[3]  # type: ignore[attr-defined]
    opened = open_benchmark(BENCHMARKS["occurrences/presence"], dataset)
    assert len(opened.truth["test"].items) == counts[1] and len(opened.view.labels) == 30


def test_bradypus_opens_with_the_rasters_beside_it(real_data):
    dataset = open_dataset("occurrences", real_data / "sdm_bradypus" / "bradypus.csv", "presence")
    environment = dataset.layers["environment"]
    assert environment.names == ("bio1", "bio12", "bio16", "bio17", "bio5", "bio6", "bio7", "bio8", "biome")  # type: ignore[attr-defined]
    kinds = dict(dataset.observations["kind"].value_counts().iter_rows())
    assert kinds == {"record": 116, "background": 10_000}


BREEDING_BIRDS = """
[sites]
file = "latlongs.csv.gz"
id = "stateroute"
presences = "bbs_sub1.csv.gz"
species = "Aou"
tables = ["bioclim_mean.csv.gz", "all_env.csv.gz"]
"""


def test_breeding_birds_open_with_six_lines_of_settings(real_data, tmp_path: Path):
    for file in (real_data / "breeding_birds").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "occurrences.toml").write_text(BREEDING_BIRDS)
    dataset = open_dataset("occurrences", tmp_path, "presence")
    assert (len(dataset.observations), len(dataset.taxa)) == (953, 637)
    assert dataset.observations["labels"].list.len().sum() == 86_852
