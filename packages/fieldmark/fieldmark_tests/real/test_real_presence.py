"""The table of snakes by country as participants of SnakeCLEF used it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.steps.priors.presence_tables import PresenceTable
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy


def test_slugs_of_classes_are_found_in_the_table_but_for_four(real_data):
    names = pl.read_csv(real_data / "snakeclef" / "round4_classes.csv")["scientific_name"].to_list()
    labels = Labels(tuple(names))
    file = real_data / "snakeclef" / "snakeclef2021_species_to_country_mapping.csv"
    taxonomy = Taxonomy.of(labels, pl.DataFrame({"label": labels.names}))
    table = PresenceTable(file=str(file), floor=0.05).fit_frame(pl.read_csv(file, infer_schema=False), taxonomy)
    missing = [name for name, listed in zip(labels.names, table.arrays["listed"], strict=True) if not listed]
    assert (table.listed, len(labels)) == (779, 783)
    assert missing == [
        "macropisthodon-plumbicolor",
        "macropisthodon-rudis",
        "sinonatrix-percarinata",
        "xenochrophis-flavipunctatus",
    ]
    asked = pl.DataFrame(
        {"country": ["Iceland", "AUS", "UNKNOWN", "UNKNOWN"], "continent": [None, None, "Europe", None]}
    )
    iceland, australia, europe, nowhere = table.log_ratio(asked)
    assert (iceland == europe).all()  # no snake lives in Iceland: Europe answers for it
    adder, rattler = labels.code_of["vipera-berus"], labels.code_of["crotalus-atrox"]
    assert iceland[adder] > 0 > iceland[rattler]
    assert not nowhere.any()
    silent = PresenceTable(file=str(file), back_off="world").fit_frame(pl.read_csv(file, infer_schema=False), taxonomy)
    assert not silent.log_ratio(asked)[[0, 2, 3]].any()
    assert (australia > 0).sum() == 80
    assert australia.max() - australia.min() == pytest.approx(-np.log(0.05))
