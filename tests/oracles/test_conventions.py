"""Where the organizers compute another number, the scorecard has theirs too, by a name of its own.

A test here asks only that some metric has the organizers' value; what it is called is for the benchmark to say.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.oracles.comparing import refusal, same, score_files, values_of
from tests.oracles.pictures import write_folder
from tests.oracles.segmentation import Mask
from tests.oracles.stored import Stored
from tests.oracles.tables import write_texts


def has_value(card: Any, value: float) -> bool:
    """Whether any metric of a scorecard has that value."""
    return any(same(found, value) for found in values_of(card).values())


@pytest.mark.xfail(strict=True, reason="the convention has no name", raises=AssertionError)
def test_the_area_under_the_curve_in_which_a_tied_pair_counts_nothing_has_a_name(tmp_path: Path) -> None:
    scores = {"1": ("a", 0.125), "2": ("a", 0.5), "3": ("a", 0.625), "4": ("-1", 0.5), "5": ("-1", 0.875)}
    texts = {
        "run": "id,predicted,unknown_score\n" + "".join(f"{item},a,{score}\n" for item, (_, score) in scores.items()),
        "truth": "id,label\n" + "".join(f"{item},{label}\n" for item, (label, _) in scores.items()),
        "classes": "label\na\n",
    }
    card = score_files("fungitastic/open", write_texts(tmp_path, texts))
    assert card.metrics["roc_auc"].value == 4.5 / 6
    assert has_value(card, 4 / 6)


@pytest.mark.xfail(strict=True, reason="the convention has no name", raises=AssertionError)
def test_the_intersection_over_union_in_which_nothing_against_nothing_counts_0_has_a_name(tmp_path: Path) -> None:
    nothing: Mask = [[False, False, False]]
    run = write_folder(tmp_path / "run", {"0-1": {"cap": nothing}, "0-2": {"cap": [[True, False, False]]}}, Random(0))
    truth = write_folder(tmp_path / "truth", {"0-1": {"cap": nothing}, "0-2": {"cap": [[True] * 3]}}, Random(0))
    card = score_files("fungitastic-mini/segmentation", {"run": run, "truth": truth})
    assert same(card.metrics["iou"].value, 4 / 6)
    assert has_value(card, 1 / 6)


@pytest.mark.xfail(strict=True, reason="the convention has no name", raises=AssertionError)
def test_the_top_3_in_which_the_last_of_equal_classes_comes_first_has_a_name(tmp_path: Path) -> None:
    labels = ["a", "b", "c", "d"]
    texts = {"truth": "id,label\n1,d\n2,a\n3,d\n", "classes": "label\n" + "".join(f"{name}\n" for name in labels)}
    paths = write_texts(tmp_path, texts)
    run = Stored(["1", "2", "3"], labels, [[0.5] * 4] * 3).write(tmp_path / "run.parquet")
    card = score_files("fungitastic/closed", paths | {"run": run})
    assert same(card.metrics["top_3"].value, 1 / 3)
    assert has_value(card, 2 / 3)


@pytest.mark.xfail(strict=True, reason="the convention has no name", raises=AssertionError)
def test_the_reciprocal_rank_that_goes_by_the_stated_rank_alone_has_a_name(tmp_path: Path) -> None:
    texts = {
        "run": "ObservationId;ClassId;Probability;Rank\n1;a;0.9;2\n1;b;0.1;1\n",
        "truth": "id,label\n1,b\n2,a\n",
        "classes": "label\na\nb\n",
    }
    card = score_files("plantclef-2020", write_texts(tmp_path, texts))
    assert card.metrics["mrr"].value == 0.25
    assert has_value(card, 0.5)


@pytest.mark.xfail(strict=True, reason="the sentence does not say that tabs are the reason", raises=AssertionError)
def test_a_run_of_fungiclef_with_tabs_scores_or_is_refused_because_of_the_tabs(tmp_path: Path) -> None:
    texts = {"truth": "id,label\n1,a\n2,b\n", "classes": "label,poisonous\na,true\nb,false\n"}
    paths = write_texts(tmp_path, texts)
    paths["run"] = tmp_path / "run.tsv"
    paths["run"].write_text("observationID\tclass_id\n1\ta\n2\tb\n")
    try:
        sentence = refusal("fungiclef-2023", paths)
    except AssertionError:
        assert score_files("fungiclef-2023", paths).metrics["track_1"].value == 0.0
    else:
        assert "tab" in sentence.partition("run.tsv")[2].replace("\\t", "").lower()


@pytest.mark.parametrize("metric", ["roc_auc", "tnr_at_95_tpr"])
def test_an_interval_that_rests_on_seven_unknown_observations_says_so(metric: str, tmp_path: Path) -> None:
    rng = Random(0)
    labels = ["-1" if number % 21 == 0 else rng.choice("abc") for number in range(147)]
    run = "".join(f"{n},a,{rng.random() + (label == '-1') / 2:.3f}\n" for n, label in enumerate(labels))
    texts = {
        "run": f"id,predicted,unknown_score\n{run}",
        "truth": "id,label\n" + "".join(f"{n},{label}\n" for n, label in enumerate(labels)),
        "classes": "label\na\nb\nc\n",
    }
    assert labels.count("-1") == 7
    assert score_files("fungitastic/open", write_texts(tmp_path, texts)).metrics[metric].reason.startswith("7 units")
