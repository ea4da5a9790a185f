"""Run files of real participants."""

from __future__ import annotations

import polars as pl
import pytest
from sklearn.metrics import f1_score

import fieldmark


@pytest.mark.parametrize("name", ["etheredge_val_predictions_closed.csv", "etheredge_val_predictions_openset.csv"])
def test_real_fungiclef_runs_score_as_a_naive_program_scores_them(real_data, name):
    path = real_data / "fungiclef" / name
    run = pl.read_csv(path, infer_schema=False)
    # A truth made for the run: every third answer is replaced by the next class, every tenth by unknown.
    classes = [*map(str, range(1605))]
    answered = run["class_id"].to_list()
    truth = [
        "-1" if row % 10 == 0 else str((max(int(label), 0) + 1) % 1605) if row % 3 == 0 else label
        for row, label in enumerate(answered)
    ]
    poisonous = {str(n) for n in range(0, 1605, 9)}
    card = fieldmark.score(
        "fungiclef-2023",
        path,
        truth={"id": run[run.columns[0]].to_list(), "label": truth},
        classes={"label": classes, "poisonous": ["1" if name in poisonous else "0" for name in classes]},
    )
    pairs = list(zip(truth, answered, strict=True))
    track_1 = sum(t != a for t, a in pairs) / len(pairs)
    track_2 = sum(
        100 * (t in poisonous and a not in poisonous) + (t not in poisonous and a in poisonous) for t, a in pairs
    )
    track_4 = sum(0 if t == a else 10 if t == "-1" else 0.1 if a == "-1" else 1 for t, a in pairs)
    assert card.metrics["track_1"].value == pytest.approx(track_1)
    assert card.metrics["track_2"].value == pytest.approx(track_2 / len(pairs))
    assert card.metrics["track_3"].value == pytest.approx(track_1 + track_2 / len(pairs))
    assert card.metrics["track_4"].value == pytest.approx(track_4 / len(pairs))
    assert card.metrics["macro_f1_union"].value == pytest.approx(f1_score(truth, answered, average="macro"))


def test_a_real_fungiclef_2025_run_scores_exactly(real_data):
    path = real_data / "fungiclef" / "fungiclef2025_submission_i2c.csv"
    run = pl.read_csv(path, infer_schema=False)
    answers = [line.split() for line in run["predictions"]]
    truth = [line[row % len(line)] for row, line in enumerate(answers)]  # the right answer stands at rank row % 10 + 1
    card = fieldmark.score(
        "fungiclef-2025",
        path,
        truth={"id": run["observationId"].to_list(), "label": truth},
        classes={"label": [str(n) for n in range(2427)]},
    )
    expected = sum(t in line[:5] for t, line in zip(truth, answers, strict=True)) / len(answers)
    assert card.metrics["recall_at_5"].value == pytest.approx(expected)


def test_the_solution_of_semi_aves_scores_all_right_against_itself(real_data):
    path = real_data / "semi_aves_2020" / "solution.csv"
    solution = pl.read_csv(path, infer_schema=False)
    truth = {"id": solution["Id"].to_list(), "label": solution["Category"].to_list()}
    card = fieldmark.score("semi-aves-2020", path, truth=truth, classes={"label": [str(n) for n in range(200)]})
    assert card.metrics["top_1"].value == 1.0 and card.metrics["top_1"].low > 0.999
    assert card.items == 8000
