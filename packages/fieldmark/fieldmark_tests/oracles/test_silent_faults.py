"""What once changed a number without a word: scored as written, or refused with its line; by version 1 as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fieldmark.errors import InputError
from fieldmark_challenge.lifecycle.creation import material_of_files
from fieldmark_tests.oracles.comparing import refusal, same, score_files
from fieldmark_tests.oracles.tables import write_texts

RANKS = "label,kingdom,phylum,class,order,family,genus,species"
LYNX = "1,a,a,lynx\n2,-1,n,lynx\n3,b,b,lynx\n"


def value(benchmark: str, texts: Mapping[str, str], folder: Path, metric: str) -> float:
    """One metric of a case that is given as texts."""
    return float(score_files(benchmark, write_texts(folder, texts)).metrics[metric].value)


def refused(benchmark: str, texts: Mapping[str, str], folder: Path) -> str:
    """The sentence that refuses it."""
    return refusal(benchmark, write_texts(folder, texts))


def birds(listed: str, true: str) -> dict[str, str]:
    return {"run": f"row_id,birds\nr_5,{listed}\n", "truth": f"id,label\nr_5,{true}\n", "classes": "label\nx\ny\n"}


@pytest.mark.parametrize(
    ("listed", "true", "score", "before"),
    [("nocall x", "x", 2 / 3, 1.0), ("nocall x", "", 2 / 3, 0.0), ("", "", 0.0, 1.0), ("nocall", "", 1.0, 1.0)],
)
def test_a_list_of_birds_is_scored_as_written(
    listed: str, true: str, score: float, before: float, tmp_path: Path
) -> None:
    assert same(value("birdclef-2021", birds(listed, true), tmp_path, "sample_f1"), score)
    assert value("birdclef-2021@1", birds(listed, true), tmp_path, "sample_f1") == before


PLOTS = {
    "run": '"quadrat_id","species_ids"\n"a1","[1]"\n"a2","[1]"\n"a3","[1]"\n"b1","[2]"\n',
    "truth": "id,label,unit\na1,1,a\na2,1,a\na3,1,a\nb1,1,b\n",
    "classes": "label\n1\n2\n",
}
SNAKES = {
    "run": "UUID,prediction\n1,x\n2,y\n3,y\n",
    "truth": "id,label,country\n1,x,Nepal\n2,y,Nepal\n3,x,Ghana\n",
    "classes": "label\nx\ny\n",
}
ANIMALS = {
    "run": "image_id,identity\n1,a\n2,new_individual\n3,a\n",
    "truth": f"id,label,unit,dataset\n{LYNX}",
    "classes": "label\na\nb\n",
}
NEEDED = {
    ("plantclef-2025", "unit"): (PLOTS, "transect", 50.0, 75.0),
    ("snakeclef-2021", "country"): (SNAKES, "cuontry", None, None),
    ("animalclef-2025", "unit"): (ANIMALS, "untis", None, None),
    ("animalclef-2025", "dataset"): (ANIMALS, "datset", None, None),
}


@pytest.mark.parametrize(("benchmark", "column"), list(NEEDED))
def test_a_truth_without_what_the_deciding_metric_needs_is_refused(benchmark: str, column: str, tmp_path: Path) -> None:
    texts, misspelt, score, before = NEEDED[benchmark, column]
    lacking = {**texts, "truth": texts["truth"].replace(column, misspelt)}
    sentence = refused(benchmark, lacking, tmp_path)
    assert "truth.csv, line 1" in sentence and f"expected a column {column!r}, which" in sentence
    assert misspelt in sentence and ("Did you mean" in sentence or misspelt == "transect")
    paths = write_texts(tmp_path, lacking)
    with pytest.raises(InputError, match=f"a column '{column}'"), material_of_files(benchmark, paths["truth"]):
        pass
    assert score_files(f"{benchmark}@1", paths).version == "1"
    if score is not None and before is not None:
        assert same(value(benchmark, texts, tmp_path, "unit_f1"), score / 100)
        assert same(value(f"{benchmark}@1", lacking, tmp_path, "unit_f1"), before / 100)


def test_plots_without_transects_are_scored_where_plots_decide_and_the_other_metric_is_left_off(tmp_path: Path) -> None:
    texts = {
        **PLOTS,
        "run": PLOTS["run"].replace("quadrat_id", "plot_id"),
        "truth": "id,label\na1,1\na2,1\na3,1\nb1,1\n",
    }
    card = score_files("plantclef-2024", write_texts(tmp_path, texts))
    assert card.metrics["sample_f1"].value == 0.75 and "unit_f1" not in card.metrics
    assert card.remarks == ["unit_f1 is left off: the truth has no column 'unit'"]
    by_unit = score_files("plantclef-2024", write_texts(tmp_path, texts | {"truth": PLOTS["truth"]}))
    assert by_unit.metrics["unit_f1"].value == 0.5 and "remarks" not in by_unit.to_json()


@pytest.mark.parametrize(
    ("benchmark", "texts", "truth", "sentence"),
    [
        (
            "plantclef-2025",
            PLOTS,
            "id,label,unit\na1,1,a\na2,1,a\na3,1,a\na1,2,b\nb1,1,b\n",
            "the unit 'b' for the id 'a1'",
        ),
        ("birdclef-2021", birds("x", "x"), "id,label,site\nr_5,x,A\n\nr_5,y,B\n", "the site 'B' for the id 'r_5'"),
        ("birdclef-2021", birds("x", "x"), "id,label,site\nr_5,x,A\n\nr_5,y,\n", "no site for the id 'r_5'"),
        (
            "birdclef-2021",
            birds("x", "x"),
            "id,label\nr_5,x\n\nr_5,\n",
            "no label for the id 'r_5' beside the label 'x'",
        ),
        ("snakeclef-2021", SNAKES, "id,label,country\n1,x,A\n2,y,A\n3,x,A\n1,x,B\n", "the id '1' again (first"),
    ],
)
def test_rows_that_contradict_each_other_are_refused_with_both_lines(
    benchmark: str, texts: dict[str, str], truth: str, sentence: str, tmp_path: Path
) -> None:
    said = refused(benchmark, texts | {"truth": truth}, tmp_path)
    assert sentence in said and "in line 2" in said
    assert "truth.csv, line 4" in said or "truth.csv, line 5" in said


def test_of_contradictory_rows_the_first_counts_by_version_1(tmp_path: Path) -> None:
    truth = "id,label,unit\na1,1,a\na2,1,a\na3,1,a\nb1,1,b\nb1,2,a\n"
    card = score_files("plantclef-2025@1", write_texts(tmp_path, PLOTS | {"truth": truth}))
    assert card.units == 2


def tree(*rows: str) -> dict[str, str]:
    return {
        "run": "annotation_id,concept_name\n1,genus\n2,genus\n",
        "truth": "id,label,unit\n1,species,p\n2,genus,q\n",
        "classes": "\n".join([RANKS, *rows]) + "\n",
    }


def test_a_blank_rank_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    fishes = tree("species,Animalia,Chordata,,O,F,G,S", "genus,Animalia,Chordata,,O,F,G,")
    assert value("fathomnet-2025", fishes, tmp_path, "tree_distance") == 0.5
    assert value("fathomnet-2025@1", fishes, tmp_path, "tree_distance") == 0.0


def test_a_name_without_any_rank_is_as_far_from_every_other_as_one_that_nobody_knows(tmp_path: Path) -> None:
    blank = tree("species,,,,,,,", "genus,,,,,,,", "x,Animalia,,,,,,", "y,Animalia,,,,,,")
    card = score_files("fathomnet-2025", write_texts(tmp_path, blank))
    assert card.metrics["tree_distance"].value == 6.0
    assert "2 names (species, genus) without any rank" in card.remarks[0]
    assert "2 names (x, y) with the ranks of another name" in card.remarks[1]
    assert value("fathomnet-2025@1", blank, tmp_path, "tree_distance") == 0.0


def test_one_name_in_two_datasets_is_two_individuals(tmp_path: Path) -> None:
    texts = {
        "run": "image_id,identity\n1,a\n2,b\n3,new_individual\n4,a\n5,a\n6,a\n",
        "truth": "id,label,unit,dataset\n1,a,a,lynx\n2,a,a,lynx\n3,-1,n,lynx\n4,a,a,newt\n5,a,a,newt\n6,-1,n,newt\n",
        "classes": "label\na\nb\n",
    }
    card = score_files("animalclef-2025", write_texts(tmp_path, texts))
    assert same(card.metrics["known_and_new"].value, 0.5**0.5 / 2)
    assert list(card.unit_ids) == ["lynx/a", "lynx/n", "newt/a", "newt/n"]
    old = score_files("animalclef-2025@1", write_texts(tmp_path, texts))
    assert list(old.unit_ids) == ["a", "n"] and not same(old.metrics["known_and_new"].value, 0.5**0.5 / 2)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("1,a,u,lynx\n2,-1,n,lynx\n3,b,u,lynx\n", "line 4: found the label 'b' for the unit 'u'"),
        ("1,a,u,lynx\n2,-1,u,lynx\n3,b,b,lynx\n", "line 3: found the label '-1' for the unit 'u'"),
        ("1,a,u,lynx\n2,-1,n,lynx\n3,a,v,lynx\n", "line 4: found the unit 'v' for the label 'a'"),
    ],
)
def test_an_individual_with_two_names_is_refused(rows: str, sentence: str, tmp_path: Path) -> None:
    texts = ANIMALS | {"truth": f"id,label,unit,dataset\n{rows}"}
    assert sentence in refused("animalclef-2025", texts, tmp_path)
    clusters = texts | {"run": "image_id,cluster\n1,cluster_1\n2,cluster_1\n3,cluster_2\n"}
    if "-1" not in sentence:
        assert sentence in refused("animalclef-2026", clusters, tmp_path)
    assert score_files("animalclef-2025@1", write_texts(tmp_path, texts)).items == 3


@pytest.mark.parametrize("spelling", ["r_05", "r_\uff15", "r/0", "r_5.0", "r_+5"])
def test_the_id_of_a_segment_is_text(spelling: str, tmp_path: Path) -> None:
    for benchmark, run in (("birdclef-2021", "row_id,birds\n{},x\n"), ("birdclef-2023", "row_id,x,y\n{},1,0\n")):
        texts = birds("x", "x") | {"run": run.format(spelling)}
        assert f"line 2: found the id {spelling!r}" in refused(benchmark, texts, tmp_path)
        texts = {"run": run.format("r_5"), "truth": f"id,label\n\n{spelling},x\n", "classes": "label\nx\ny\n"}
        assert f"truth.csv, line 3: found the id {spelling!r}" in refused(benchmark, texts, tmp_path)


@pytest.mark.parametrize("number", ["1_0", "\u0663", "\uff11", "0x1", "1e999", "1,5"])
def test_numbers_are_ascii_digits(number: str, tmp_path: Path) -> None:
    runs = {
        "birdclef-2023": f'row_id,x,y\nr_5,0,"{number}"\n',
        "plantclef-2022": f"obsid;classid;probability;rank\nr_5;x;{number};1\n",
        "fungitastic/open": f'id,predicted,unknown_score\nr_5,x,"{number}"\n',
    }
    for benchmark, run in runs.items():
        assert f"line 2: found {number!r}" in refused(benchmark, birds("x", "x") | {"run": run}, tmp_path)
    media = {"media": f'MediaId,seconds\nX,"{number}"\n', "truth": "X;x;00:00:00-00:00:01\n"}
    texts = {"run": "X;00:00:00-00:00:05;x;1\n", **media}
    assert f"media.csv, line 2: found {number!r}" in refused("birdclef-2020", texts, tmp_path)


def test_times_are_ascii_digits_and_short(tmp_path: Path) -> None:
    for time in ("00:00:\u06600", "9" * 400 + ":00:00"):
        texts = {"truth": "X;x;00:00:00-00:00:01\n", "media": "MediaId,seconds\nX,10\n"}
        assert "line 1" in refused("birdclef-2020", texts | {"run": f"X;{time}-00:00:05;x;1\n"}, tmp_path)
        run = {"run": "X;00:00:00-00:00:05;x;1\n"}
        assert "line 1" in refused("birdclef-2020", texts | run | {"truth": f"X;x;00:00:00-{time}\n"}, tmp_path)


def test_a_run_that_says_yes_or_no_to_some_pairs_only_is_refused(tmp_path: Path) -> None:
    texts = {
        "run": "row_id,target\nr_x_5,True\n",
        "truth": "id,label,present\nr_5,x,true\nr_5,y,false\nr_10,x,false\nr_10,y,true\n",
        "classes": "label\nx\ny\n",
    }
    assert "no line for 3 of 4 ids (r_y_5, r_x_10, r_y_10)" in refused("birdclef-2022", texts, tmp_path)
    assert value("birdclef-2022@1", texts, tmp_path, "balanced_decisions") == 0.75


def test_observations_without_a_line_count_as_wrong_and_the_scorecard_says_so(tmp_path: Path) -> None:
    texts = {
        "run": "ObservationId;ClassId;Probability;Rank\n1;x;0.5;1\n",
        "truth": "id,label\n1,x\n2,x\n3,y\n",
        "classes": "label\nx\ny\n",
    }
    card = score_files("plantclef-2020", write_texts(tmp_path, texts))
    assert same(card.metrics["mrr"].value, 1 / 3)
    assert card.remarks == ["2 of 3 ids have no line in the run: they count as wrong"] == card.to_json()["remarks"]


@pytest.mark.parametrize(
    ("benchmark", "run", "sentence"),
    [
        ("fungiclef-2023", "observationID,class_id,class_id\nr_5,x,y\n", "line 1: found the column 'class_id' again"),
        (
            "fungiclef-2023",
            "observationID,observation_id,class_id\nr_5,q,x\n",
            "'observation_id' beside 'observationID'",
        ),
        ("folder", "id,predicted\nr_5,|y\n", "line 2: found nothing as answer 1, expected a label before and after"),
        ("folder", "id,predicted\nr_5,x||y\n", "line 2: found nothing as answer 2"),
        ("folder", "predicted,id\ny,r_5\n", "The columns stand in another order: exchange them"),
        ("folder", "id,predicted,more\nr_5,x,1\n", "Leave out the column 'more'."),
        ("folder", "id;predicted\nr_5;x\n", "The fields are separated by semicolons: write commas"),
        (
            "plantclef-2022",
            "obsid;classid;probability;rank\nr_5;x;0.5;1\nr_5;y;0.2;3\n",
            "line 2: found the ranks 1, 3",
        ),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(benchmark: str, run: str, sentence: str, tmp_path: Path) -> None:
    texts = birds("", "x") | {"run": run, "classes": "label,poisonous\nx,true\ny,false\n"}
    assert sentence in refused(benchmark, texts, tmp_path)


def test_a_label_of_the_truth_that_no_class_is_called_is_refused_with_its_line(tmp_path: Path) -> None:
    texts = birds("x", "x") | {"truth": "id,label\n\nr_5,z\n"}
    assert "truth.csv, line 3: found the label 'z'" in refused("birdclef-2021", texts, tmp_path)
