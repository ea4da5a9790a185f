"""Real herbarium sheets and field photos open as they are, and no plant is on two sides."""

from __future__ import annotations

import csv

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.releases.plant_families import families
from fieldmark.views.open_benchmark import open_benchmark


def test_sheets_and_field_photos_open_as_domains_and_plants_stay_together(real_data):
    dataset = open_dataset("folder", real_data / "plants_sheets_and_field")
    assert dict(dataset.media["domain"].value_counts().iter_rows()) == {"herbarium": 600, "photo": 518, None: 241}
    assert dataset.taxa["family"].null_count() == 0 and len(dataset.taxa) == 60
    opened = open_benchmark(BENCHMARKS["folder"], dataset)
    assert opened.items["val"]["domain"].unique().to_list() == ["photo"]
    plants = [set(opened.items[part]["observation_id"]) for part in ("train", "val", "test")]
    assert not plants[0] & plants[1] and not plants[0] & plants[2] and not plants[1] & plants[2]


def test_every_genus_of_the_challenge_has_a_family(real_data):
    with (real_data / "plantclef_2020/neuon_clef2020_herbarium_species.csv").open(newline="") as file:
        genera = {row["species"].split()[0] for row in csv.DictReader(file)}
    assert len(genera) > 500 and genera <= set(families())
