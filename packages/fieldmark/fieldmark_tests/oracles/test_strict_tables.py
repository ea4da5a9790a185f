"""Tables of truth, classes and media: duplicates, blanks and impossible values are refused with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fieldmark.errors import InputError
from fieldmark_tests.oracles.comparing import refusal, score_files
from fieldmark_tests.oracles.tables import write_texts

RUN = "id,predicted\n1,a\n2,b\n"
TRUTH = "id,label\n1,a\n2,b\n"
OPEN_RUN = "id,predicted,unknown_score\n1,b,0.5\n2,b,0.5\n"
BIRDS = {
    "run": "X;00:00:00-00:00:05;jay;0.5\n",
    "truth": "X;jay;00:00:00-00:00:05\n",
    "media": "MediaId,seconds,site\nX,10,PER\n",
}


def card_of(folder: Path, **texts: str) -> Any:
    """The scorecard of a folder of photos."""
    return score_files("folder", write_texts(folder, texts))


def test_an_empty_line_among_the_classes_is_no_class(tmp_path: Path) -> None:
    texts = {"run": RUN, "truth": TRUTH, "classes": "label\na\n\nb\n"}
    try:
        found = card_of(tmp_path, **texts).metrics["macro_f1_all"].value
    except InputError as error:
        assert "classes.csv, line 3" in str(error)
    else:
        assert found == 1.0


def test_a_class_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    classes = "label,poisonous\na,true\na,true\nb,false\n"
    paths = write_texts(tmp_path, {"run": OPEN_RUN, "truth": TRUTH, "classes": classes})
    assert "classes.csv, line 3" in refusal("fungitastic/cost-poison", paths)


def test_spaces_around_a_field_of_the_truth_do_not_matter(tmp_path: Path) -> None:
    assert card_of(tmp_path, run=RUN, truth="id, label\n1, a\n2, b \n").metrics["top_1"].value == 1.0


def test_an_empty_unit_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"run": RUN, "truth": "id,label,unit\n1,a,first\n2,b,\n"})
    assert "truth.csv, line 3" in refusal("folder", paths)


def test_a_class_of_which_nobody_says_whether_it_is_poisonous_is_refused(tmp_path: Path) -> None:
    classes = "label,poisonous\na,\nb,false\n"
    paths = write_texts(tmp_path, {"run": OPEN_RUN, "truth": TRUTH, "classes": classes})
    assert "classes.csv, line 2" in refusal("fungitastic/cost-poison", paths)


def test_a_recording_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, BIRDS | {"media": f"{BIRDS['media']}X,10,PER\n"})
    assert "media.csv, line 3" in refusal("birdclef-2020", paths)


def test_a_date_in_another_form_is_refused(tmp_path: Path) -> None:
    texts = {"run": OPEN_RUN, "truth": "id,label,date\n1,a,12/31/2023\n2,b,12/30/2023\n", "classes": "label\na\nb\n"}
    assert "truth.csv, line 2" in refusal("fungitastic/temporal", write_texts(tmp_path, texts))


NO_SENTENCE = (TypeError, ValueError, OverflowError)


@pytest.mark.parametrize("seconds", ["", "nan", "inf"])
def test_a_recording_without_a_length_is_refused(seconds: str, tmp_path: Path) -> None:
    paths = write_texts(tmp_path, BIRDS | {"media": f"MediaId,seconds,site\nX,{seconds},PER\n"})
    assert "media.csv, line 2" in refusal("birdclef-2020", paths)


def test_a_recording_of_thirty_years_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, BIRDS | {"media": "MediaId,seconds,site\nX,1e9,PER\n"})
    assert "media.csv, line 2" in refusal("birdclef-2020", paths)


def test_more_recordings_than_could_be_held_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"R{number},172800,PER\n" for number in range(200))
    paths = write_texts(tmp_path, BIRDS | {"media": f"MediaId,seconds,site\nX,10,PER\n{rows}"})
    assert "media.csv: found recordings of 34,560,010 seconds" in refusal("birdclef-2020", paths)
