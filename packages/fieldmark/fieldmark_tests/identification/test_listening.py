"""Clips to listen to: drawn by strata, opened in a review, and telling about all windows afterwards."""

import numpy as np
import polars as pl
import pytest
import soundfile

from fieldmark.cli.main import application
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.review.listening import OTHER, draw_clips, estimate_listening
from fieldmark.identification.review.session import Review

RATE, MINUTES = 8000, 6


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Six recordings of a minute; a beep is the bird, and a detector that finds most beeps and some silence."""
    folder = tmp_path_factory.mktemp("survey")
    (folder / "sounds").mkdir()
    rng, rows = np.random.default_rng(0), []
    beep = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
    for number in range(MINUTES):
        samples = rng.normal(0, 0.01, 60 * RATE)
        for window in range(20):
            sings = rng.random() < 0.3
            if sings:
                samples[(3 * window + 1) * RATE : (3 * window + 2) * RATE] += 0.5 * beep
            if rng.random() < (0.9 if sings else 0.2):
                score = rng.beta(5, 2) if sings else rng.beta(2, 3)
                rows.append((f"r{number}.wav", 3.0 * window, 3.0 * window + 3, "Beep", score))
        soundfile.write(folder / "sounds" / f"r{number}.wav", samples, RATE)
    columns = ("file", "start_s", "end_s", "label", "score")
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(folder / "detections.csv")
    return folder


def listen(folder):
    """Answers every clip by its sound."""
    review = Review(folder)
    for clip in review.answers.table["observation_id"]:
        samples, rate = soundfile.read(folder / "clips" / f"{clip}.wav")
        assert len(samples) == 3 * rate
        review.decide(clip, "Beep" if np.abs(samples).max() > 0.3 else OTHER)
        assert review.progress().audit is None  # nothing is drawn from clips that were drawn


def test_clips_are_drawn_cut_reviewed_and_tell_about_all_windows(survey, tmp_path, capsys):
    plan = draw_clips(survey / "detections.csv", survey / "sounds", tmp_path / "clips", clips=72, seed=3)
    assert (plan.clips, plan.species, plan.windows) == (72, ("Beep",), 20 * MINUTES)
    with pytest.raises(MisuseError, match="fieldmark review"):
        estimate_listening(tmp_path / "clips")
    listen(tmp_path / "clips")
    (made,) = estimate_listening(tmp_path / "clips")
    truth = _truth(survey)
    assert made.prevalence.low <= truth["beep"].mean() <= made.prevalence.high
    for edge in made.thresholds:
        called = truth.filter(pl.col("score") >= edge.at_least)
        assert edge.precision.low <= called["beep"].mean() <= edge.precision.high
        assert edge.recall.low <= called["beep"].sum() / truth["beep"].sum() <= edge.recall.high
    arguments = ["detections", str(survey / "detections.csv"), "--against", str(tmp_path / "clips")]
    application("detections")(arguments, standalone_mode=False)
    assert "of all windows of these recordings" in capsys.readouterr().out


def test_listening_to_every_window_leaves_no_doubt(survey, tmp_path):
    draw_clips(survey / "detections.csv", survey / "sounds", tmp_path / "clips", clips=1000)
    listen(tmp_path / "clips")
    (made,) = estimate_listening(tmp_path / "clips")
    truth = _truth(survey)
    assert made.prevalence.low == made.prevalence.value == made.prevalence.high == pytest.approx(truth["beep"].mean())
    lowest = made.thresholds[-1]
    assert lowest.precision.value == pytest.approx(truth.drop_nulls("score")["beep"].mean())


def _truth(survey):
    rows = []
    for file in sorted((survey / "sounds").iterdir()):
        samples, _ = soundfile.read(file)
        loud = np.abs(samples.reshape(20, -1)).max(axis=1) > 0.3
        rows += [(file.name, 3.0 * number, bool(one)) for number, one in enumerate(loud)]
    table = pl.DataFrame(rows, schema=("file", "start_s", "beep"), orient="row")
    return table.join(pl.read_csv(survey / "detections.csv"), on=("file", "start_s"), how="left")


def test_a_species_without_a_detection_cannot_be_drawn(survey, tmp_path):
    with pytest.raises(InputError, match="no detection of Owl"):
        draw_clips(survey / "detections.csv", survey / "sounds", tmp_path / "x", clips=20, species=["Owl"])
    assert not (tmp_path / "x").exists()
