"""Runs that say what cannot be meant are refused; events are read as the organizers read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldmark_tests.oracles.comparing import refusal, score_files
from fieldmark_tests.oracles.tables import write_texts

PLANTS = "ObservationId;ClassId;Probability;Rank\n"
TABLES = {"truth": "id,label\n1,a\n2,b\n", "classes": "label\na\nb\n"}
BIRDS = {
    "run": "X;00:00:00-00:00:05;jay;0.5\nX;00:00:05-00:00:10;jay;0.9\n",
    "truth": "X;jay;00:00:00-00:00:05\n",
    "media": "MediaId,seconds,site\nX,20,PER\n",
}


@pytest.mark.parametrize(
    "ranks",
    [
        pytest.param(("-1", "1"), id="below one"),
        pytest.param(("0", "1"), id="zero"),
        pytest.param(("1.5", "1"), id="between two ranks"),
        pytest.param(("1", "3"), id="with a gap"),
        pytest.param(("1", "1"), id="the same rank twice"),
    ],
)
def test_a_rank_that_is_none_is_refused(ranks: tuple[str, str], tmp_path: Path) -> None:
    run = f"{PLANTS}1;a;0.5;{ranks[0]}\n1;b;0.5;{ranks[1]}\n2;b;0.5;1\n"
    sentence = refusal("plantclef-2020", write_texts(tmp_path, {"run": run, **TABLES}))
    assert "run.csv" in sentence and "rank" in sentence.lower()


@pytest.mark.parametrize(
    ("benchmark", "texts"),
    [
        pytest.param("plantclef-2020", {"run": PLANTS, **TABLES}, id="plants"),
        pytest.param("geolifeclef-2020", {"run": "observation_id;species_id;score\n", **TABLES}, id="places"),
        pytest.param("birdclef-2020", BIRDS | {"run": ""}, id="birds"),
    ],
)
def test_a_run_without_an_answer_is_refused(benchmark: str, texts: dict[str, str], tmp_path: Path) -> None:
    assert "run.csv" in refusal(benchmark, write_texts(tmp_path, texts))


def test_an_event_without_a_length_marks_no_segment(tmp_path: Path) -> None:
    texts = BIRDS | {"truth": f"{BIRDS['truth']}X;jay;00:00:05-00:00:05\n"}
    assert score_files("birdclef-2020", write_texts(tmp_path, texts)).metrics["cmap"].value == 0.5
