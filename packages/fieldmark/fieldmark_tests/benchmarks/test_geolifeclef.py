"""GeoLifeCLEF: sets of thirty on average."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.errors import InputError


def test_geolifeclef_cuts_sets_of_thirty_on_average(run):
    # Two places, 31 species each listed: the threshold leaves the 60 best of 62 pairs.
    lines = [f"{place};{species};{100 * (place == 'p') + species}\n" for place in "pq" for species in range(31)]
    content = "observation_id;species_id;score\n" + "".join(lines)
    classes = {"label": [str(n) for n in range(40)]}
    truth = {"id": ["p", "q"], "label": ["0", "1"]}
    card = fieldmark.score("geolifeclef-2020", run(content), truth=truth, classes=classes)
    # Species 0 and 1 of q are cut off: p keeps all 31, q keeps 29.
    assert card.metrics["adaptive_top_30"].value == 0.5
    assert card.metrics["mean_set_size"].value == 30
    assert card.metrics["recall_at_30"].value == 0.5  # species 1 of q is its 30th, species 0 of p its 31st


def test_geolifeclef_also_takes_lists_of_thirty(run):
    classes, truth = {"label": [str(n) for n in range(40)]}, {"id": ["p", "q"], "label": ["29", "30"]}
    listed = " ".join(str(n) for n in range(30))
    card = fieldmark.score(
        "geolifeclef-2020", run(f"Id,Predicted\np,{listed}\nq,{listed}\n"), truth=truth, classes=classes
    )
    assert card.metrics["recall_at_30"].value == 0.5 and card.metrics["mean_set_size"].value == 30
    with pytest.raises(
        InputError, match="found the header 'id,species', expected 'observation_id;species_id;score' or"
    ):
        fieldmark.score("geolifeclef-2020", run("id,species\n"), truth=truth, classes=classes)
