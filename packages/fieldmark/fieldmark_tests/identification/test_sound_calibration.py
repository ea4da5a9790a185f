"""Scores of a timeline become probabilities by curves of a site, or are said to be none."""

from pathlib import Path

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.identification.name_lists import KnownNames, NameFinder
from fieldmark.identification.results import Detection, Timeline
from fieldmark.identification.sound_calibration import read_calibration, with_probabilities
from fieldmark.tables.labels import Labels

FINDER = NameFinder(KnownNames(Labels(("Parus major", "Turdus merula")), pl.DataFrame({"label": ["Parus major"]})))


def timeline():
    voices = [
        Detection("Parus major", "Parus major", "Great Tit", 0.5, 0.0, 3.0),
        Detection("Turdus merula", "Turdus merula", None, 0.5, 0.0, 3.0),
        Detection("Parus major", "Parus major", "Great Tit", 0.9, 3.0, 6.0),
    ]
    return Timeline(Path("a.wav"), 6.0, 3.0, tuple(voices), 0.25, simulated=False)


def test_each_species_has_its_own_curve_or_that_of_all(tmp_path):
    (tmp_path / "c.csv").write_text(
        "name,slope,offset,answers,of_logits\n,1.0,0.0,90,False\nParus major,2.0,-1.0,50,False\n"
    )
    answer = with_probabilities(timeline(), read_calibration(tmp_path / "c.csv"), FINDER)
    assert [one.probability for one in answer.windows] == [0.2689, 0.5, pytest.approx(0.9675, abs=1e-3)]
    (tit, _) = sorted(answer.detections, key=lambda one: one.label)
    assert (tit.score, tit.probability, tit.end_s) == (0.9, answer.windows[2].probability, 6.0)
    assert "1 species heard here" in answer.remarks[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [("name,slope,offset\n", "no curve"), ("name,slope,offset\nx,-1,0\n", "slope -1.0"), ("a,b\n1,2\n", "'name'")],
)
def test_a_table_of_curves_at_fault_is_refused(tmp_path, text, said):
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_calibration(tmp_path / "c.csv")
