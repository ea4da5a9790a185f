"""Where the organizers compute another number, it is one convention away: `fieldmark.score(..., metrics=[...])`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fieldmark.benchmarks.measures import top
from fieldmark.errors import MisuseError
from fieldmark_tests.oracles.comparing import refusal, same, score_files, values_of
from fieldmark_tests.oracles.pictures import write_folder
from fieldmark_tests.oracles.segmentation import Mask
from fieldmark_tests.oracles.stored import Stored
from fieldmark_tests.oracles.tables import write_texts


def value(benchmark: str, paths: dict[str, Path], metric: str) -> float:
    """The value of one metric, by its name or in another convention."""
    card = score_files(benchmark, paths, metrics=[metric])
    assert len(card.metrics) == 1
    return next(iter(values_of(card).values()))


def test_the_area_under_the_curve_in_which_a_tied_pair_counts_nothing_has_a_name(tmp_path: Path) -> None:
    scores = {"1": ("a", 0.125), "2": ("a", 0.5), "3": ("a", 0.625), "4": ("-1", 0.5), "5": ("-1", 0.875)}
    texts = {
        "run": "id,predicted,unknown_score\n" + "".join(f"{item},a,{score}\n" for item, (_, score) in scores.items()),
        "truth": "id,label\n" + "".join(f"{item},{label}\n" for item, (label, _) in scores.items()),
        "classes": "label\na\n",
    }
    paths = write_texts(tmp_path, texts)
    assert value("fungitastic/open", paths, "roc_auc") == 4.5 / 6
    assert same(value("fungitastic/open", paths, "roc_auc:ties=zero"), 4 / 6)


def test_the_intersection_over_union_in_which_nothing_against_nothing_counts_0_has_a_name(tmp_path: Path) -> None:
    nothing: Mask = [[False, False, False]]
    run = write_folder(tmp_path / "run", {"0-1": {"cap": nothing}, "0-2": {"cap": [[True, False, False]]}}, Random(0))
    truth = write_folder(tmp_path / "truth", {"0-1": {"cap": nothing}, "0-2": {"cap": [[True] * 3]}}, Random(0))
    paths = {"run": run, "truth": truth}
    assert same(value("fungitastic-mini/segmentation", paths, "iou"), 4 / 6)
    assert same(value("fungitastic-mini/segmentation", paths, "iou:empty=zero"), 1 / 6)


def test_the_top_3_in_which_the_last_of_equal_classes_comes_first_has_a_name(tmp_path: Path) -> None:
    labels = ["a", "b", "c", "d"]
    texts = {"truth": "id,label\n1,d\n2,a\n3,d\n", "classes": "label\n" + "".join(f"{name}\n" for name in labels)}
    run = Stored(["1", "2", "3"], labels, [[0.5] * 4] * 3).write(tmp_path / "run.parquet")
    paths = write_texts(tmp_path, texts) | {"run": run}
    assert same(value("fungitastic/closed", paths, "top_3"), 1 / 3)
    assert same(value("fungitastic/closed", paths, "top_3:ties=highest"), 2 / 3)


def test_the_reciprocal_rank_that_goes_by_the_stated_rank_alone_has_a_name(tmp_path: Path) -> None:
    texts = {
        "run": "ObservationId;ClassId;Probability;Rank\n1;a;0.9;2\n1;b;0.1;1\n",
        "truth": "id,label\n1,b\n2,a\n",
        "classes": "label\na\nb\n",
    }
    paths = write_texts(tmp_path, texts)
    assert value("plantclef-2020", paths, "mrr") == 0.25
    assert value("plantclef-2020", paths, "mrr:by=rank") == 0.5


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
    paths = write_texts(tmp_path, texts)
    assert "rests on about 8 units" in score_files("fungitastic/open", paths).metrics[metric].reason  # 7 against 140
    assert score_files("fungitastic/open@2", paths).metrics[metric].reason.startswith("7 units")


@pytest.mark.parametrize(("found", "expected"), [("5.0,a", "'5': ids are compared as text"), ("5,zz", "misspelt")])
def test_ids_with_a_point_and_labels_outside_the_list_are_refused_with_the_reason(
    found: str, expected: str, tmp_path: Path
) -> None:
    texts = {"truth": "id,label\n5,a\n", "classes": "label,poisonous\na,true\n"}
    paths = write_texts(tmp_path, texts | {"run": f"observationID,class_id\n{found}\n"})
    assert expected in refusal("fungiclef-2023", paths)


def test_a_metric_or_convention_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"run": "id,predicted\n1,a\n", "truth": "id,label\n1,a\n"})
    with pytest.raises(MisuseError, match="top_3:ties=highest"):
        score_files("folder", paths, metrics=["top_3:ties=hihgest"])
    with pytest.raises(MisuseError, match="at least one metric"):
        score_files("folder", paths, metrics=[])
    own = score_files("folder", paths, metrics=[top(1)])
    assert list(own.metrics) == ["top_1"] and list(own.conventions) == ["top_1", "intervals"]


@pytest.mark.parametrize("seed", range(20))
def test_random_runs_by_other_conventions_equal_naive_programs(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    items, labels = [str(n) for n in range(rng.randint(4, 20))], ["a", "b", "c", "d"]
    scores = [[rng.randint(0, 2) / 2 for _ in labels] for _ in items]
    strange = [rng.randint(0, 3) for _ in items]
    true = ["-1", "a", *(rng.choice([*labels, "-1"]) for _ in items[2:])]
    texts = {
        "classes": "label\n" + "\n".join(labels),
        "truth": "id,label\n" + "\n".join(f"{item},{label}" for item, label in zip(items, true, strict=True)),
    }
    paths = write_texts(tmp_path, texts)
    paths["run"] = Stored(items, labels, scores, strange).write(tmp_path / "run.parquet")

    pairs = [
        strange[unknown] > strange[known]
        for unknown in range(len(items))
        for known in range(len(items))
        if true[unknown] == "-1" != true[known]
    ]
    assert same(value("fungitastic/open", paths, "roc_auc:ties=zero"), sum(pairs) / len(pairs))

    first = [max(range(4), key=lambda place, row=row: (row[place], place)) for row in scores]
    hits = [labels[place] == label for place, label in zip(first, true, strict=True)]
    assert same(value("fungitastic/open", paths, "top_1:ties=highest"), sum(hits) / len(hits))

    lines, reciprocal = ["ObservationId;ClassId;Probability;Rank"], []
    for item, label in zip(items, true, strict=True):
        listed = rng.sample(labels, rng.randint(1, 4))
        lines += [f"{item};{name};{rng.random()};{place}" for place, name in enumerate(listed, 1)]
        reciprocal.append(1 / (1 + listed.index(label)) if label in listed else 0.0)
    plants = {
        "run": "\n".join(lines),
        "truth": texts["truth"].replace("-1", "other"),
        "classes": texts["classes"] + "\nother",
    }
    found = value("plantclef-2020", write_texts(tmp_path, plants), "mrr:by=rank")
    assert same(found, sum(reciprocal) / len(reciprocal))
