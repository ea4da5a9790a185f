"""docs/birdnet-at-my-site.md is followed as it is written, from detections to thresholds and clips."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer
import typer.testing

from fieldmark.cli.main import app
from fieldmark.identification.review.listening import OTHER
from fieldmark.identification.review.session import Review
from fieldmark_tests.audio.sounds import encoded, song
from fieldmark_tests.places import DOCS

PAGE = (DOCS / "birdnet-at-my-site.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^fieldmark (.+)$", PAGE, re.MULTILINE)
GROUP = typer.main.get_command(app)
SITE = {"Turdus merula": ("Eurasian Blackbird", 1.0), "Parus major": ("Great Tit", 0.5)}


def survey(folder: Path, seed: int = 0) -> None:
    """Forty recordings of 24 seconds, tables as BirdNET-Analyzer writes them, and annotations of all of them."""
    rng = np.random.default_rng(seed)
    (folder / "recordings").mkdir()
    (folder / "birdnet").mkdir()
    noted = [["file", "start_s", "end_s", "label"]]
    for number in range(40):
        name = f"GARDEN_20240501_05{number:02d}00"
        (folder / "recordings" / f"{name}.wav").write_bytes(encoded(song(24, 4000, hz=1000), 4000))
        heard = [["Start (s)", "End (s)", "Scientific name", "Common name", "Confidence", "File"]]
        for species, (common, sure) in SITE.items():
            for start in rng.choice(8, 3, replace=False) * 3:
                heard.append([start, start + 3, species, common, round(rng.uniform(0.1, 0.99), 4), f"{name}.wav"])
                if rng.random() < sure:
                    noted.append([f"{name}.wav", start, start + 2, common])
        write(folder / "birdnet" / f"{name}.BirdNET.results.csv", heard)
    write(folder / "annotations.csv", noted)
    write(folder / "species.csv", [["name"], ["Eurasian Blackbird"], ["Merula vulgaris"]])
    write(folder / "synonyms.csv", [["synonym", "name", "kind", "since"], ["Merula vulgaris", "Turdus merula", "", ""]])
    (folder / "dawn.wav").write_bytes(encoded(song(4, 32_000, hz=4000), 32_000))


def write(path: Path, rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command of the page prints, in its order, in one folder; the review is answered."""
    folder, said = tmp_path_factory.mktemp("site"), {}
    survey(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in COMMANDS:
            if line.startswith("review"):
                review = Review(Path("clips"))
                for number, clip in enumerate(review.answers.table["observation_id"]):
                    review.decide(clip, OTHER if number % 3 else "Turdus merula")
                continue
            done = typer.testing.CliRunner().invoke(app, shlex.split(line))
            assert done.exit_code == 0, f"{line}\n{done.output}{done.exception!r}"
            said[line] = done.stdout
    said["folder"] = folder
    return said


def test_species_are_scored_and_what_changes_under_other_rules_is_said(printed):
    text = next(text for line, text in printed.items() if "--plot" in line)
    assert "Turdus merula" in text and "Under other rules" in text and "40 recordings were annotated" in text
    assert (printed["folder"] / "right.png").read_bytes().startswith(b"\x89PNG")


def test_the_species_that_is_right_gets_a_threshold_and_the_other_a_reason(printed):
    text = next(text for line, text in printed.items() if line.endswith("--thresholds site"))
    assert re.search(r"Turdus merula +0\.\d+ +own", text) and re.search(r"Parus major +none", text)
    assert "Turdus merula" in (printed["folder"] / "site" / "thresholds.csv").read_text()


def test_identify_takes_thresholds_and_curves(printed):
    assert "Probabilities are calibrated on annotations of a site" in next(
        text for line, text in printed.items() if line.startswith("identify")
    )


def test_clips_that_were_listened_to_tell_about_all_windows(printed):
    assert "60 clips of Turdus merula drawn from 320 windows" in next(
        text for line, text in printed.items() if "--listen 60" in line
    )
    assert "of all windows of these recordings" in next(
        text for line, text in printed.items() if line.endswith("--against clips")
    )


def test_names_are_found_in_the_words_of_birdnet(printed):
    text = next(text for line, text in printed.items() if line.startswith("names"))
    assert text.count("Turdus merula_Eurasian Blackbird") == 2


def test_pictures_of_the_page_exist():
    for picture in re.findall(r"\]\((images/[^)]+)\)", PAGE):
        assert (DOCS / picture).is_file()
