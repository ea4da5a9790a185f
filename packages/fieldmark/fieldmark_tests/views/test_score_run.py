from __future__ import annotations

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.scoring import Scorecard
from fieldmark.views.score_run import write_truth

TRUTH = {"id": ["1", "2", "3", "4"], "label": ["a", "a", "b", "c"], "unit": ["o1", "o1", "o2", "o3"]}
RUN = "id,predicted\n1,a|b|c\n2,b|a|c\n3,b|c|a\n4,a|b|d\n"


@pytest.fixture
def run_file(tmp_path):
    (tmp_path / "run.csv").write_text(RUN)
    return tmp_path / "run.csv"


def test_the_scorecard_equals_scikit_learn_on_a_case_typed_by_hand(run_file):
    card = fieldmark.score("folder", run_file, truth=TRUTH, classes={"label": list("abcd")})
    truth, first = list("aabc"), list("abba")
    assert card.metrics["macro_f1_all"].value == pytest.approx(
        f1_score(truth, first, labels=list("abcd"), average="macro", zero_division=0)
    )
    assert card.metrics["macro_f1_union"].value == pytest.approx(f1_score(truth, first, average="macro"))
    assert card.metrics["top_1"].value == 0.5 and card.metrics["top_3"].value == 0.75
    assert (card.items, card.units, card.classes) == (4, 3, 4)
    assert "rests on about 2 units" in card.metrics["macro_f1_all"].reason and card.metrics["top_1"].reason is None


def test_frames_dictionaries_and_files_give_the_same_score(run_file, tmp_path):
    (tmp_path / "truth.csv").write_text("id,label,unit\n1,a,o1\n2,a,o1\n3,b,o2\n4,c,o3\n")
    (tmp_path / "classes.csv").write_text("label\na\nb\nc\nd\n")
    from_files = fieldmark.score("folder", run_file, truth=tmp_path / "truth.csv", classes=tmp_path / "classes.csv")
    from_frame = fieldmark.score("folder", run_file, truth=pl.DataFrame(TRUTH), classes={"label": list("abcd")})
    assert from_files == from_frame


def test_the_json_holds_what_is_promised_and_reads_back(run_file, tmp_path):
    card = fieldmark.score("folder", run_file, truth=TRUTH, classes={"label": list("abcd")})
    card.write(tmp_path / "card.json")
    data = json.loads((tmp_path / "card.json").read_text())
    assert {"benchmark", "version", "items", "units", "metrics", "conventions"} <= set(data)
    assert {"value", "low", "high"} <= set(data["metrics"]["macro_f1_all"])
    assert next(iter(data["metrics"])) == "macro_f1_all"
    back = Scorecard.read(tmp_path / "card.json")
    assert back == card
    assert back.pseudo["top_1"].tolist() == card.pseudo["top_1"].tolist() and back.unit_ids == card.unit_ids


def test_pseudo_values_of_a_share_average_to_the_score_when_units_have_one_item(tmp_path):
    ids = [str(n) for n in range(50)]
    rng = np.random.default_rng(0)
    labels = [str(label) for label in rng.integers(0, 3, 50)]
    (tmp_path / "run.csv").write_text("id,predicted\n" + "".join(f"{i},{rng.integers(0, 3)}\n" for i in ids))
    card = fieldmark.score("folder", tmp_path / "run.csv", truth={"id": ids, "label": labels})
    assert card.pseudo["top_1"].mean() == pytest.approx(card.metrics["top_1"].value)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("id,label\n1,a\n1,b\n", "line 3: found the id '1' again"),
        ("id,species\n1,a\n", "expected a column 'label'"),
        ("id,label\n1,z\n", "found the label 'z', expected a label listed in"),
    ],
)
def test_a_wrong_truth_is_refused(run_file, tmp_path, truth, message):
    (tmp_path / "truth.csv").write_text(truth)
    with pytest.raises(InputError, match=message):
        fieldmark.score("folder", run_file, truth=tmp_path / "truth.csv", classes={"label": ["a", "b"]})


def test_the_truth_comes_from_exactly_one_place(run_file):
    with pytest.raises(MisuseError, match="either --data ROOT or --truth FILE"):
        fieldmark.score("folder", run_file)


def test_without_a_list_of_classes_those_of_the_truth_and_of_the_run_count(run_file):
    card = fieldmark.score("folder", run_file, truth=TRUTH)
    assert card.classes == 4  # d is named by the run alone
    listed = fieldmark.score("folder", run_file, truth=TRUTH, classes={"label": list("abcd")})
    assert card.metrics == listed.metrics
    with pytest.raises(InputError, match="found the label 'd', expected a label of the benchmark"):
        fieldmark.score("folder", run_file, truth=TRUTH, classes={"label": list("abc")})


def frames_of(table):
    """The same table by every library that people hold one in."""
    yield pl.DataFrame(table)
    yield pl.LazyFrame(table)
    yield pa.table(table)
    kinds = [(name, np.array(values).dtype) for name, values in table.items()]
    yield np.array(list(zip(*table.values(), strict=True)), dtype=kinds)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table)
    yield frame
    yield frame.set_index("id")  # an index with a name is a column
    yield pandas.concat([frame.iloc[2:], frame.iloc[:2]])  # one without a name is none
    yield frame.astype("category")


def test_a_run_in_a_frame_of_any_library_is_scored_like_its_lines_in_a_file(tmp_path):
    """Ids such as 007 and 7.0 stay what they are, and numbers keep all their digits."""
    run = {"id": ["007", "7.0", "7", "x"], "predicted": ["a|b", "b", "c|a", "d"]}
    (tmp_path / "run.csv").write_text("id,predicted\n007,a|b\n7.0,b\n7,c|a\nx,d\n")
    truth = {**TRUTH, "id": run["id"]}
    expected = fieldmark.score("folder", tmp_path / "run.csv", truth=truth, classes={"label": list("abcd")})
    for frame in frames_of(run):
        assert fieldmark.score("folder", frame, truth=truth, classes={"label": list("abcd")}) == expected
    for frame in frames_of(truth):
        assert fieldmark.score("folder", run, truth=frame, classes={"label": list("abcd")}) == expected


def test_missing_values_of_a_frame_are_blank_fields(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "run.csv").write_text("id,predicted\n1,a\n2,\n3,b\n4,c\n")
    run = pandas.DataFrame({"id": [1, 2, 3, 4], "predicted": ["a", float("nan"), "b", "c"]})
    with pytest.raises(InputError) as of_file:
        fieldmark.score("folder", tmp_path / "run.csv", truth=TRUTH)
    with pytest.raises(InputError) as of_frame:
        fieldmark.score("folder", run, truth=TRUTH)
    assert str(of_frame.value) == str(of_file.value).replace(str(tmp_path / "run.csv"), "the run")


@pytest.mark.parametrize(
    ("run", "error", "sentence"),
    [
        (np.zeros((4, 2)), InputError, "the run: found an array of 2 dimensions without names of fields"),
        ({"id": ["1"], "predicted": ["a", "b"]}, InputError, "the run: found no table"),
        (3, MisuseError, "A run is a file, a folder, a table or predictions, not int"),
        (None, MisuseError, "A run is a file, a folder, a table or predictions, not NoneType"),
        ([["1", "a"]], MisuseError, "A run is a file, a folder, a table or predictions, not list"),
    ],
)
def test_what_is_no_run_is_refused_in_a_sentence(run, error, sentence):
    with pytest.raises(error, match=sentence):
        fieldmark.score("folder", run, truth=TRUTH)


def test_an_hour_of_400_digits_is_refused_with_its_line(tmp_path):
    (tmp_path / "truth.csv").write_text(f"r;a;00:00:00-00:00:05\nr;a;{'9' * 400}:00:00-{'9' * 400}:00:05\n")
    media = {"MediaId": ["r"], "seconds": ["10"], "site": ["x"]}
    run = {"a": ["r"], "b": ["a"]}
    with pytest.raises(InputError, match=r"truth.csv, line 2: found .*9…9"):
        fieldmark.score("birdclef-2020", run, truth=tmp_path / "truth.csv", media=media, classes={"label": ["a"]})


@pytest.mark.parametrize("name", ["fungitastic/cost-poison", "fungitastic/closed"])
def test_the_truth_of_a_world_is_called_simulated_wherever_it_goes(fungi_world, tmp_path, name):
    run = tmp_path / "run.csv"
    made = fieldmark.fit(name, fungi_world, "frequent", tmp_path / "made")
    run.write_bytes((tmp_path / "made" / "run.csv").read_bytes())  # without the run.json that tells where it came from
    from_release = fieldmark.score(name, run, data=fungi_world)
    assert from_release.provenance["simulated"] is True
    write_truth(name, fungi_world, tmp_path / "truth")
    tables = {what: tmp_path / "truth" / f"{what}.csv" for what in ("truth", "classes")}
    beside = fieldmark.score(name, run, **tables)
    assert beside.provenance["simulated"] is True
    assert beside.metrics == from_release.metrics == made.scorecard.metrics
    (tmp_path / "truth" / "WORLD.json").unlink()  # tables are sent to a platform by themselves
    assert fieldmark.score(name, run, **tables).provenance["simulated"] is True
