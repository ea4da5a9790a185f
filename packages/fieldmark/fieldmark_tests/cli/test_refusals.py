"""What a stranger gets wrong, and the sentence that comes back: never a traceback, never a half-written output."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fieldmark.registry import Registry

TRUTH = "id,label,unit\na.jpg,Alba alba,1\nb.jpg,Rubra vera,2\nc.jpg,Alba alba,3\n"
RUN = "id,predicted\na.jpg,Alba alba\nb.jpg,Alba alba\nc.jpg,Rubra vera\n"


@pytest.fixture
def here(tmp_path, monkeypatch, make_release) -> Path:
    """A folder with photos, tables and things that are none, as the working directory."""
    make_release(per_class=4)
    (tmp_path / "truth.csv").write_text(TRUTH)
    (tmp_path / "run.csv").write_text(RUN)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "WORLD.json").write_text('{"fieldmark_world": 1, "dataset": "fungitastic"}')
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "WORLD.json").write_text("{")
    (tmp_path / "photo.xyz").write_bytes(b"ftypxyz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "folder", "--out", "run", "--data")
MISUSED = {
    "a kind to list": (("list", "methds"), "Nothing called 'methds' can be listed. Did you mean methods"),
    "a setting that is no number": (
        (*FIT, "photos", "--method", "linear", "--set", "l2=nan"),
        "--set l2=nan: found 'nan', expected a finite number of at least 0.",
    ),
    "a part to write": (
        ("truth", "folder", "--data", "photos", "--out", "t", "--split", "tset"),
        "There is no part called 'tset'. Did you mean test?",
    ),
    "a part to score": (
        ("score", "folder", "run.csv", "--data", "photos", "--split", "tset"),
        "There is no part called 'tset'. Did you mean test?",
    ),
    "recordings of photos": (
        ("score", "folder", "run.csv", "--truth", "truth.csv", "--media", "none.csv"),
        "Only soundscapes come with a table of recordings: leave --media out.",
    ),
    "a metric of episodes": (
        ("episodes", "folder", "--data", "photos", "--method", "frequent", "--metric", "top1"),
        "There is no score called 'top1' here. Did you mean top_1",
    ),
    "a folder for a file": (
        ("export", "coco", "folder", "--data", "photos", "--out", "folder"),
        "folder is a folder. Name a file in it.",
    ),
    "a folder for a photo": (("identify", "folder", "--model", "run"), "add --out ANSWERS"),
    "a timeline of a photo": (
        ("identify", "a.jpg", "--model", "run", "--format", "csv"),
        "--format csv, raven and audacity are for a recording",
    ),
}


@pytest.mark.parametrize("case", MISUSED)
def test_misuse_is_one_sentence_and_leaves_nothing(here, run_main, case):
    arguments, sentence = MISUSED[case]
    before = sorted(here.iterdir())
    code, _, said = run_main(*arguments)
    assert code == 2 and said.splitlines()[-1].startswith("fieldmark: ") and sentence in said.splitlines()[-1]
    assert sorted(here.iterdir()) == before


AT_FAULT = {
    "a file in the place of a folder": (
        (*FIT[:2], "--out", "file/run", "--data", "photos", "--method", "frequent"),
        "file: found a file, expected a folder.",
    ),
    "a world of another dataset": (
        (*FIT, "world", "--method", "frequent"),
        "world: found a world of fungitastic, expected one of folder. Ask about fungitastic, or make another",
    ),
    "a torn mark": ((*FIT, "torn", "--method", "frequent"), "torn/WORLD.json: found no JSON object"),
    "a folder for a table": (
        ("score", "folder", "run.csv", "--truth", "folder"),
        "folder: found a folder, expected a file.",
    ),
    "a photo of another format": (("identify", "photo.xyz", "--model", "run"), "Save it as JPEG"),
    "a cluster for a folder that is not there": (
        ("identify", "nowhere", "--model", "run", "--out", "answers", "--engine", "ray"),
        "nowhere: no such folder, expected a folder or a table of many. Check the path.",
    ),
    "a misspelt model": (("identify", "photos/train/Alba alba/0-0.jpg", "--model", "birdnt"), "Did you mean birdnet?"),
}


@pytest.mark.parametrize("case", AT_FAULT)
def test_input_at_fault_is_one_sentence_and_leaves_nothing(here, run_main, case):
    arguments, sentence = AT_FAULT[case]
    before = sorted(here.iterdir())
    code, _, said = run_main(*arguments)
    assert code == 1 and said.splitlines()[-1].startswith("fieldmark: ") and sentence in said.splitlines()[-1]
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        ("id,label\n", "truth.csv: found a header and no row, expected a row for each item that is asked about."),
        ("id,label\na.jpg,x\nb.jpg,\n", "truth.csv, line 3: found no label, expected one in each row."),
        ("id,label\n,x\n", "truth.csv, line 2: found no id, expected one in each row."),
    ],
)
def test_a_truth_with_holes_is_named_with_its_line(here, run_main, truth, sentence):
    (here / "truth.csv").write_text(truth)
    code, _, said = run_main("score", "folder", "run.csv", "--truth", "truth.csv")
    assert code == 1 and sentence in said


@pytest.mark.parametrize("lines", [3, 100])
def test_the_run_of_another_part_is_called_so_however_long_it_is(here, run_main, lines):
    (here / "run.csv").write_text("id,predicted\n" + "".join(f"{line}.png,Alba alba\n" for line in range(lines)))
    code, _, said = run_main("score", "folder", "run.csv", "--truth", "truth.csv")
    assert code == 1 and said.startswith("fieldmark: run.csv, line 2: found the id '0.png'")
    assert "run.csv: found not one of the 3 ids, expected ids such as 'a.jpg' (is it the run of another part" in said


def test_a_cmap_that_rests_on_ties_says_so(here, run_main):
    (here / "events.csv").write_text("A;jay;00:00:00-00:00:05\nA;kite;00:00:05-00:00:10\n")
    (here / "media.csv").write_text("MediaId,seconds\nA,10\n")
    lines = [f"A;00:00:{start:02}-00:00:{start + 5:02};{bird}" for start in (0, 5) for bird in ("jay", "kite")]
    score = ("score", "birdclef-2020", "run.csv", "--truth", "events.csv", "--media", "media.csv")
    (here / "run.csv").write_text("".join(f"{line};0.5\n" for line in lines))
    assert "cmap puts the right ones first among equals: compare cmap_expected" in run_main(*score)[1]
    (here / "run.csv").write_text(
        "".join(f"{line};{chance}\n" for line, chance in zip(lines, ["0.9", "0.1", "0.2", "0.8"], strict=True))
    )
    assert "equals" not in run_main(*score)[1]


def test_a_file_without_a_header_does_not_fill_the_screen(here, run_main):
    (here / "run.csv").write_text("x" * 50_000)
    code, _, said = run_main("score", "folder", "run.csv", "--truth", "truth.csv")
    assert code == 1 and "expected the header 'id,predicted'" in said and len(said) < 300


def test_a_file_name_that_is_not_utf8_is_named(here, run_main):
    photo = here / "photos" / "train" / "Alba alba" / os.fsdecode(b"caf\xe9.jpg")
    photo.write_bytes(b"")
    code, _, said = run_main(*FIT, "photos", "--method", "frequent")
    assert code == 1 and r"caf\xe9.jpg: found a name that is not UTF-8" in said and "Rename the file." in said
    code, _, said = run_main("identify", photo, "--model", "run")
    assert code == 1 and "found a name that is not UTF-8" in said


@pytest.mark.parametrize("verb", ["fit", "world", "truth", "episodes", "demo", "score"])
def test_a_seed_is_not_negative(run_main, verb):
    code, _, said = run_main(verb, "--seed", "-1")
    assert code == 2 and "--seed" in said and "Traceback" not in said


def test_without_a_kind_the_names_of_everything_are_listed(run_main):
    code, printed, _ = run_main("list")
    assert code == 0
    code, data, _ = run_main("list", "--json")
    for kind, entries in json.loads(data).items():
        assert f"{kind}:\n" in printed and all(name in printed for name in entries if " " not in name)


def test_an_interrupt_says_what_is_left(run_main, monkeypatch):
    def interrupted(registry, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(Registry, "about", interrupted)
    code, _, said = run_main("list", "methods")
    assert code == 130 and said.startswith("fieldmark: interrupted. No partial output is left")
