"""Reviewing answers: the order of looks, what is kept, and going on later."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, read_answers, table_of
from fieldmark.identification.review.queue import Drawn, ReviewQueue
from fieldmark.identification.review.session import Review

TAXA = [
    {"label": "Parus major", "species": "Parus major", "genus": "Parus", "family": "Paridae"},
    {"label": "Pica pica", "species": "Pica pica", "genus": "Pica", "family": "Corvidae"},
]


def answers(folder: Path, entries: int = 40, question: str = "answers") -> Path:
    rows = [
        AnsweredEntry(
            observation_id=f"photo-{number:02d}",
            files=[f"photo-{number:02d}.jpg"],
            name="Parus major",
            probability=(number + 1) / (entries + 1),
            certainty=(number + 1) / (entries + 1),
            names=["Parus major", "Pica pica"],
            probabilities=[0.6, 0.4],
            given="Pica pica" if question == "labels" else None,
        )
        for number in range(entries)
    ]
    about = {"question": question, "model": "by hand", "simulated": False, "kind": "photo"}
    AnswerFolder(table_of(rows), folder.parent, about, TAXA).write(folder)
    return folder


def test_answers_come_back_as_they_were_written(tmp_path):
    read = read_answers(answers(tmp_path / "answers"))
    assert len(read) == 40 and read["photo-03"].names == ["Parus major", "Pica pica"]
    assert read.names == ("Parus major", "Pica pica") and read.path_of("a.jpg") == tmp_path / "a.jpg"


def test_the_least_certain_come_first_and_one_in_ten_at_random(tmp_path):
    review = Review(answers(tmp_path / "answers", 60))
    seen = []
    for _ in range(30):
        entry, drawn = review.next()
        seen.append((entry.observation_id, drawn))
        review.decide(entry.observation_id, entry.name)
    assert [drawn for _, drawn in seen].count(Drawn.RANDOM) == 3
    uncertain = [one for one, drawn in seen if drawn is Drawn.UNCERTAIN]
    assert uncertain == sorted(uncertain) and uncertain[0] == "photo-00"


def test_a_review_goes_on_where_it_stopped(tmp_path):
    folder = answers(tmp_path / "answers")
    first, whole = Review(folder), []
    for _ in range(25):
        whole.append(first.next()[0].observation_id)
        first.decide(whole[-1], "Pica pica")
    again = Review(folder)
    assert again.next() == first.next()
    assert again.progress() == first.progress() and again.progress().corrected == 25
    while (shown := again.next()) is not None:
        again.decide(shown[0].observation_id, shown[0].name)
    assert len(again.looks) == 40 and again.progress().enough


def test_a_line_that_was_cut_off_is_asked_again(tmp_path):
    folder = answers(tmp_path / "answers")
    review = Review(folder)
    review.decide("photo-00", "Pica pica")
    with (folder / "review.jsonl").open("a") as log:
        log.write('{"observation_id": "photo-01", "na')
    again = Review(folder)
    assert again.next()[0].observation_id == "photo-01"
    again.decide("photo-01", "Pica pica")
    assert set(Review(folder).looks) == {"photo-00", "photo-01"}
    (folder / "review.jsonl").write_text("nonsense\n{}\n")
    with pytest.raises(InputError, match="line 1"):
        Review(folder)


def test_what_was_said_last_counts_and_how_it_was_drawn_stays(tmp_path):
    folder = answers(tmp_path / "answers")
    review = Review(folder)
    for _ in range(10):
        entry, drawn = review.next()
        review.decide(entry.observation_id, entry.name)
    assert drawn is Drawn.RANDOM
    review.decide(entry.observation_id, "Pica pica")
    checked = pl.read_csv(folder / "checked.csv")
    mine = checked.filter(pl.col("observation") == entry.observation_id)
    assert mine["label"].to_list() == ["Pica pica"] and mine["drawn"].to_list() == ["random"]
    assert review.progress().audit.wrong == 1


def test_a_group_that_holds_the_species_is_right(tmp_path):
    rows = [AnsweredEntry("a", ["a.jpg"], name="Paridae", rank="family"), AnsweredEntry("b", ["b.jpg"], name="Paridae")]
    AnswerFolder(table_of(rows), tmp_path, {}, TAXA).write(tmp_path / "answers")
    review = Review(tmp_path / "answers")
    review.decide("a", "Parus major")
    review.decide("b", "Pica pica")
    assert review.is_right("a") and not review.is_right("b")


def test_the_finished_list_says_who_named_what(tmp_path):
    review = Review(answers(tmp_path / "answers", 5))
    review.decide("photo-02", "Pica pica")
    review.decide("photo-03", "")
    finished = review.finished()
    assert finished["by"].to_list() == ["machine", "machine", "person", "person", "machine"]
    assert finished["name"].to_list() == ["Parus major", "Parus major", "Pica pica", "", "Parus major"]
    assert review.checked()["observation"].to_list() == ["photo-02"]  # nothing is learned where nobody could tell


def test_of_doubted_labels_nothing_is_drawn_at_random(tmp_path):
    review = Review(answers(tmp_path / "doubts", 25, "labels"))
    for _ in range(25):
        entry, drawn = review.next()
        assert drawn is Drawn.UNCERTAIN
        review.decide(entry.observation_id, entry.given)
    progress = review.progress()
    assert progress.audit is None and progress.corrected == 0 and review.next() is None


def test_strange_answers_are_refused(tmp_path):
    review = Review(answers(tmp_path / "answers", 3))
    with pytest.raises(MisuseError, match="no observation"):
        review.decide("elsewhere", "Pica pica")
    with pytest.raises(MisuseError, match="200"):
        review.decide("photo-00", "x" * 300)
    with pytest.raises(InputError, match="no answers"):
        read_answers(tmp_path)


def test_entries_drawn_at_random_are_a_random_draw_of_what_is_not_reached():
    """However the certainties lie, each entry that is not reached is as likely to have been drawn as any other."""
    ids = [f"{number:02d}" for number in range(20)]
    certainty = {one: float(one) for one in ids}
    counts = dict.fromkeys(ids, 0)
    for seed in range(3000):
        queue = ReviewQueue(certainty, seed=seed, one_in=3)
        while len(queue.reached) < 10:
            queue.note(*queue.next())
        for one in queue.drawn:
            counts[one] += one not in queue.reached
    left = [counts[one] for one in ids if counts[one]]
    assert len(left) == 10 and max(left) - min(left) < 0.2 * (sum(left) / 10)
