"""BirdCLEF: segments and the events that overlap them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import fieldmark
from fieldmark.errors import InputError, MisuseError


def test_birdclef_marks_every_segment_an_event_overlaps(run, tmp_path):
    (tmp_path / "truth.csv").write_text("A;jay;00:00:03-00:00:10\nA;owl;00:00:12-00:00:13\nB;jay;00:00:00-00:00:05\n")
    media = {"MediaId": ["A", "B", "C"], "seconds": ["20", "10", "10"], "site": ["PER", "PER", "SSW"]}
    content = (
        "A;00:00:00-00:00:05;jay;0.9\nA;00:00:10-00:00:15;jay;0.8\nA;00:00:05-00:00:10;jay;0.7\n"
        "C;00:00:00-00:00:05;owl;0.6\nA;00:00:10-00:00:15;owl;0.5\n"
    )
    card = fieldmark.score("birdclef-2020", run(content), truth=tmp_path / "truth.csv", media=media)
    # jay: relevant A/0, A/5, B/0; ranked A/0 (right), A/10 (wrong), A/5 (right); B/0 is missed. owl: second of two.
    jay, owl = (1 / 1 + 2 / 3) / 3, 1 / 2
    assert card.metrics["cmap"].value == pytest.approx((jay + owl) / 2)
    # Segments with a bird: A/0 right, A/5 right, A/10 owl after jay, B/0 nothing.
    assert card.metrics["rmap"].value == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert (card.items, card.units) == (8, 3)
    assert set(card.groups["site"]) == {"PER", "SSW"}
    with pytest.raises(MisuseError, match="need a table of recordings"):
        fieldmark.score("birdclef-2020", run(content), truth=tmp_path / "truth.csv")


def test_birdclef_takes_no_class_from_birds_that_nobody_could_name(run, tmp_path):
    truth = tmp_path / "truth.csv"
    truth.write_text("A;jay;00:00:00-00:00:05\nA;????;00:00:00-00:00:10\nA;?;00:00:05-00:00:10\n")
    media = {"MediaId": ["A", "B"], "seconds": ["10", "10"]}
    card = fieldmark.score("birdclef-2020", run("A;00:00:00-00:00:05;jay;0.9\n"), truth=truth, media=media)
    assert card.metrics["cmap"].value == card.metrics["rmap"].value == 1.0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"A;jay;00:00:00-00:00:05\n\n\nA;jay;five\n", "line 4: found the interval 'five'"),
        (b"A;jay;00:00:00-00:00:05\n \nA;jay\n", "line 3: found 2 fields"),
        (b"", "found no event with a name, expected at least one"),
        (b"A;????;00:00:00-00:00:05\n", "found no event with a name"),
        (b"A;jay;00:00:00-00:00:05\nA;h\xe9ron;00:00:00-00:00:05\n", "line 2: found bytes that are not UTF-8"),
        (b"A;00:00:00-00:00:05;jay;0.9\n", "line 1: found the interval 'jay'"),  # a run in the place of the truth
    ],
)
def test_what_is_wrong_with_a_truth_of_soundscapes_is_said_with_its_line(run, tmp_path, content, sentence):
    (tmp_path / "truth.csv").write_bytes(content)
    media = {"MediaId": ["A"], "seconds": ["10"]}
    with pytest.raises(InputError, match=sentence):
        fieldmark.score("birdclef-2020", run(""), truth=tmp_path / "truth.csv", media=media)


def test_birdclef_equals_scikit_learn_where_no_scores_tie(run):
    rng = np.random.default_rng(0)
    classes = [f"bird{n}" for n in range(6)]
    segments = [(f"M{m}", start) for m in range(8) for start in range(0, 60, 5)]
    truth = [(name, bird, start) for name, start in segments for bird in classes if rng.random() < 0.15]
    lines, scores = [], np.zeros((len(segments), len(classes)))
    for row, (name, start) in enumerate(segments):
        for column in range(len(classes)):
            scores[row, column] = round(float(rng.random()), 6)
            clock = f"00:00:{start:02d}-00:{(start + 5) // 60:02d}:{(start + 5) % 60:02d}"
            lines.append(f"{name};{clock};{classes[column]};{scores[row, column]}\n")
    marks = np.array([[(name, bird, start) in set(truth) for bird in classes] for name, start in segments])
    table = {
        "MediaId": [name for name, _, _ in truth],
        "ClassId": [bird for _, bird, _ in truth],
        "interval": [f"00:00:{start + 1:02d}-00:00:{start + 2:02d}" for _, _, start in truth],
    }
    media = {"MediaId": [f"M{m}" for m in range(8)], "seconds": ["60"] * 8}
    card = fieldmark.score("birdclef-2020", run("".join(lines)), truth=table, classes={"label": classes}, media=media)
    assert card.metrics["cmap"].value == pytest.approx(average_precision_score(marks, scores, average="macro"))
    assert card.metrics["cmap_expected"].value == pytest.approx(card.metrics["cmap"].value)
