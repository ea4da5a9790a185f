"""Each challenge scored on a small case that is worked out by hand or by a naive program."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError

OPEN_TRUTH = {
    "id": list("123456"),
    "label": ["a", "a", "-1", "b", "c", "-1"],
    "unit": ["o1", "o1", "o2", "o3", "o4", "o5"],
    "date": ["2023-09-01", "2023-09-02", "2023-10-01", "2023-10-05", "2023-10-06", "2023-11-06"],
}
CLASSES = {"label": ["a", "b", "c"], "poisonous": ["1", "0", "0"]}
OPEN_RUN = "id,predicted,unknown_score\n1,a b,0.1\n2,b a,0.3\n3,-1 a,0.9\n4,b,0.2\n5,-1 c,0.7\n6,a b,0.5\n"


@pytest.fixture
def run(tmp_path):
    def write(content: str):
        (tmp_path / "run.csv").write_text(content)
        return tmp_path / "run.csv"

    return write


def test_every_benchmark_declares_what_a_scorer_needs():
    for name in BENCHMARKS:
        benchmark = BENCHMARKS[name]
        assert benchmark.name == name and benchmark.task.metrics
        names = [metric.name for metric in benchmark.task.metrics]
        assert len(set(names)) == len(names)
        for metric in benchmark.task.metrics:
            assert metric.without_each_unit is None or metric.resampled is None
            assert metric.about
        for reported in benchmark.reported:
            assert reported.source and set(reported.values) <= set(names), (name, reported.what)


def test_open_set(run):
    metrics = fieldmark.score("fungitastic/open", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES).metrics
    truth, first = OPEN_TRUTH["label"], ["a", "b", "-1", "b", "-1", "a"]
    known = [label != "-1" for label in truth]
    score = [0.1, 0.3, 0.9, 0.2, 0.7, 0.5]
    assert metrics["roc_auc"].value == pytest.approx(roc_auc_score(known, [-s for s in score]))
    assert metrics["macro_f1_all"].value == pytest.approx(
        f1_score(truth, first, labels=["a", "b", "c", "-1"], average="macro", zero_division=0)
    )
    assert metrics["f1_unknown"].value == pytest.approx(f1_score(truth, first, labels=["-1"], average="macro"))
    assert metrics["f1_known"].value == pytest.approx(
        f1_score(truth, first, labels=["a", "b", "c"], average="macro", zero_division=0)
    )
    # 95 % of four known items are all four: the threshold is 0.7, and one of two unknown items lies above it.
    assert metrics["tnr_at_95_tpr"].value == 0.5


def test_time_order_is_shown_by_month(run):
    card = fieldmark.score("fungitastic/temporal", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    assert set(card.groups["month"]) == {"09", "10", "11"}
    assert card.groups["month"]["09"]["top_1"].value == 0.5
    assert math.isnan(card.groups["month"]["09"]["roc_auc"].value)  # nothing unknown in September
    card.write(run("").with_name("card.json"))
    assert (
        fieldmark.scoring.Scorecard.read(run("").with_name("card.json")).groups["month"]["10"]
        == card.groups["month"]["10"]
    )


def test_costs(run):
    poison = fieldmark.score("fungitastic/cost-poison", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    # Item 2: poisonous a taken for b, 100. Item 6: unknown (harmless) taken for a, 1.
    assert poison.metrics["cost_poison"].value == pytest.approx(101 / 6)
    unknown = fieldmark.score("fungitastic/cost-unknown", run(OPEN_RUN), truth=OPEN_TRUTH, classes=CLASSES)
    # Item 2 wrong 1, item 5 known taken for unknown 1, item 6 unknown missed 10.
    assert unknown.metrics["cost_unknown"].value == pytest.approx(12 / 6)
    with pytest.raises(InputError, match="expected a column 'poisonous'"):
        fieldmark.score("fungitastic/cost-poison", run(OPEN_RUN), truth=OPEN_TRUTH, classes={"label": list("abc")})


def test_an_open_set_run_without_strangeness_is_refused(run):
    with pytest.raises(InputError, match="expected the header 'id,predicted,unknown_score'"):
        fieldmark.score("fungitastic/open", run("id,predicted\n1,a\n"), truth=OPEN_TRUTH, classes=CLASSES)


def test_fungiclef_2023_tracks(run):
    content = "observationID,class_id\n1,a\n2,b\n3,-1\n4,b\n5,-1\n6,a\n"
    metrics = fieldmark.score("fungiclef-2023", run(content), truth=OPEN_TRUTH, classes=CLASSES).metrics
    assert metrics["track_1"].value == pytest.approx(3 / 6)
    assert metrics["track_2"].value == pytest.approx(101 / 6)
    assert metrics["track_3"].value == pytest.approx(104 / 6)
    assert metrics["track_4"].value == pytest.approx((1 + 0.1 + 10) / 6)
    truth, first = OPEN_TRUTH["label"], ["a", "b", "-1", "b", "-1", "a"]
    assert metrics["macro_f1_union"].value == pytest.approx(f1_score(truth, first, average="macro"))


def test_fungiclef_2025_recall_at_5(run):
    truth = {"id": ["7", "8"], "label": ["5", "6"]}
    classes = {"label": [str(n) for n in range(12)]}
    content = "observationId,predictions\n7,0 1 2 3 5 6\n8,0 1 2 3 4 6\n"
    assert (
        fieldmark.score("fungiclef-2025", run(content), truth=truth, classes=classes).metrics["recall_at_5"].value
        == 0.5
    )


def test_fgvcx_has_both_error_rules(run):
    truth, classes = {"id": ["1", "2"], "label": ["3", "0"]}, {"label": list("012345")}
    card = fieldmark.score(
        "fgvcx-fungi-2018", run("id, predicted\n1, 0 1 2 3\n2, 0 1 2\n"), truth=truth, classes=classes
    )
    assert (card.metrics["top_5_error"].value, card.metrics["top_3_error"].value) == (0.0, 0.5)
    with pytest.raises(InputError, match="found 2 labels, expected at least 3"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,0 1\n2,0 1 2\n"), truth=truth, classes=classes)


def test_fgvcx_reads_runs_as_the_organizers_program_does(run):
    truth = {"id": ["1", "2"], "label": ["5", "0"], "usage": ["Public", "Private"]}
    classes = {"label": list("012345")}
    # The sixth answer is cut off, the id that nobody asked about is passed over.
    card = fieldmark.score(
        "fgvcx-fungi-2018", run("id,predicted\n1,0 1 2 3 4 5\n9,0 1 2\n2,0 1 2\n"), truth=truth, classes=classes
    )
    assert (card.items, card.metrics["top_5_error"].value) == (2, 0.5)
    boards = {board: scores["top_3_error"].value for board, scores in card.groups["usage"].items()}
    assert boards == {"Public": 1.0, "Private": 0.0}
    with pytest.raises(InputError, match="no line for 1 of 2 ids"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,0 1 2\n"), truth=truth, classes=classes)
    # Ids of categories are text: the organizers would count 05 as wrong, here it is refused.
    with pytest.raises(InputError, match="found the label '05'"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,05 1 2\n2,0 1 2\n"), truth=truth, classes=classes)


def test_plantclef_sorts_by_probability_breaks_ties_by_rank_and_counts_the_silent(run):
    content = "ObservationId;ClassId;Probability;Rank\n1;x;0.5;2\n1;y;0.5;1\n2;y;0.9;1\n2;x;0.1;2\n2;z;0.3;3\n"
    truth = {"id": ["1", "2", "3"], "label": ["x", "x", "z"]}
    classes = {"label": ["x", "y", "z"], "rare": ["no", "no", "yes"]}
    card = fieldmark.score("plantclef-2020", run(content), truth=truth, classes=classes)
    assert card.metrics["mrr"].value == pytest.approx((1 / 2 + 1 / 3 + 0) / 3)
    assert card.metrics["mrr_rare"].value == 0.0
    without = fieldmark.score("plantclef-2020", run(content), truth=truth, classes={"label": ["x", "y", "z"]})
    assert "mrr_rare" not in without.metrics


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


def test_snakeclef(run):
    truth, classes = {"id": ["x", "y"], "label": ["a", "b"]}, {"label": list("abc"), "poisonous": ["yes", "no", "no"]}
    content = "hashed_id,a,b,c\nx,0.5,0.25,0.25\ny,0.8,0.1,0.1\n"
    card = fieldmark.score("snakeclef-2020", run(content), truth=truth, classes=classes)
    assert card.metrics["log_loss"].value == pytest.approx(-(math.log(0.5) + math.log(0.1)) / 2, abs=1e-6)
    assert card.metrics["macro_f1_union"].value == pytest.approx(f1_score(["a", "b"], ["a", "a"], average="macro"))
    assert card.metrics["venom_cost"].value == 2  # harmless b taken for venomous a


def test_semi_inat(run):
    truth, classes = {"id": ["p.jpg", "q.jpg"], "label": ["3", "0"]}, {"label": list("0123456")}
    card = fieldmark.score(
        "semi-inat-2021", run("Id,Category\np.jpg,0 1 2 3 4\nq.jpg,0 1 2 3 4\n"), truth=truth, classes=classes
    )
    assert (card.metrics["top_1"].value, card.metrics["top_5"].value) == (0.5, 1.0)


def test_confusion_between_phyla_is_counted_where_classes_name_them(run):
    truth = {"id": list("pqr"), "label": ["3", "0", "1"]}
    classes = {"label": list("0123"), "group": ["Chordata", "Chordata", "Mollusca", "Mollusca"]}
    card = fieldmark.score("semi-inat-2021", run("Id,Category\np,2\nq,2\nr,0\n"), truth=truth, classes=classes)
    assert card.confusion == {"groups": ["Chordata", "Mollusca"], "counts": [[1, 1], [0, 1]]}


def test_public_and_private_parts_are_shown_apart(run):
    truth = {"id": ["1", "2"], "label": ["a", "b"], "split": ["public", "private"]}
    card = fieldmark.score("folder", run("id,predicted\n1,a\n2,a\n"), truth=truth)
    assert {part: scores["top_1"].value for part, scores in card.groups["split"].items()} == {
        "public": 1.0,
        "private": 0.0,
    }


@pytest.mark.parametrize("name", ["folder", "fungitastic/open"])
def test_the_order_of_lines_and_the_naming_of_classes_change_nothing(run, name):
    rng = np.random.default_rng(1)
    ids, labels = [str(n) for n in range(60)], [f"c{n}" for n in rng.integers(0, 5, 60)]
    separator, extra = ("|", "") if name == "folder" else (" ", ",0.5")
    header = "id,predicted" + (",unknown_score" if extra else "") + "\n"
    lines = [f"{i},{separator.join(f'c{n}' for n in rng.permutation(5)[:3])}{extra}\n" for i in ids]
    truth = {"id": ids, "label": labels}
    first = fieldmark.score(name, run(header + "".join(lines)), truth=truth)
    shuffled = fieldmark.score(name, run(header + "".join(rng.permutation(lines))), truth=truth)
    assert str(first.metrics) == str(shuffled.metrics)  # as text, because nan is not equal to itself
    renamed_truth = pl.DataFrame(truth).with_columns(pl.col("label").str.replace("c", "z"))
    renamed = fieldmark.score(
        name, run(header + "".join(line.replace("c", "z") for line in lines)), truth=renamed_truth
    )
    for metric, score in first.metrics.items():
        assert renamed.metrics[metric].value == pytest.approx(score.value, nan_ok=True)


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


def test_dense_scores_in_parquet_are_scored_like_the_run_file(make_release, tmp_path):
    root = make_release()
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    stored = fieldmark.score("folder", tmp_path / "run" / "predictions" / "test.parquet", data=root)
    assert stored.metrics == result.scorecard.metrics
    with pytest.raises(InputError, match="no answer for 6 of 6 ids"):
        fieldmark.score("folder", tmp_path / "run" / "predictions" / "val.parquet", data=root)


def test_observations_are_answered_as_a_whole(tmp_path):
    root = tmp_path / "world"
    fieldmark.world("fungitastic", root, size="tiny")
    settings = {"backbone": "resnet10t", "weights": "random", "size": 32}
    result = fieldmark.fit("fungiclef-2025", root, "centroid", tmp_path / "run", settings=settings)
    lines = (tmp_path / "run" / "run.csv").read_text().splitlines()
    observations = (
        fieldmark.dataset("fungitastic", root, "FewShot").media.explode("parts").filter(parts="ClosedSet-Test")
    )
    assert lines[0] == "observationId,predictions"
    assert len(lines) - 1 == result.scorecard.items == observations["observation_id"].n_unique()
