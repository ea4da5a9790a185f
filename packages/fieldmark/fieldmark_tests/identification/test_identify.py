"""One photo or one recording, as a naturalist asks."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.cli import identify as verb
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification import Circumstances, PhotoAnswer, Timeline
from fieldmark.identification.results import Detection, as_audacity, as_csv, joined, write_timeline
from fieldmark.tables.raven import read_selections
from fieldmark_tests.audio.sounds import encoded, song, tone
from fieldmark_tests.cli.test_main import fieldmark as command

PITCHES = {"Low whistler": 1500.0, "Middle piper": 3500.0, "High twitterer": 7000.0}
SETTINGS = {"backbone": "resnet10t", "weights": "random", "size": 32}


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory) -> Path:
    """A model of three voices, fitted to short recordings."""
    root = tmp_path_factory.mktemp("voices")
    for label, hz in PITCHES.items():
        for number in range(8):
            path = root / "recordings" / label / f"{label}-{number}.flac"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(song(5, 32_000, hz=hz * (1 + 0.02 * number), seed=number), 32_000, "FLAC"))
    return fieldmark.fit("folder", root / "recordings", "linear", root / "run").folder


@pytest.fixture(scope="module")
def concert(tmp_path_factory) -> Path:
    """Twenty-two seconds: ten of the first voice, ten of the third, and two of hiss."""
    path = tmp_path_factory.mktemp("concert") / "concert.wav"
    parts = [song(10, 32_000, hz=1550, seed=30), song(10, 32_000, hz=7100, seed=31)]
    hiss = np.random.default_rng(0).normal(0, 0.003, 64_000).astype(np.float32)
    path.write_bytes(encoded(np.concatenate([*parts, hiss]), 32_000))
    return path


def test_a_recording_is_answered_with_a_timeline(sound_run, concert):
    answer = fieldmark.identify(concert, sound_run)
    assert isinstance(answer, Timeline) and answer.seconds == pytest.approx(22)
    heard = [(found.label, found.start_s, found.end_s) for found in answer.detections if found.score > 0.5]
    assert heard[0] == ("Low whistler", 0.0, 10.0)
    assert ("High twitterer", 10.0) in [(label, start) for label, start, _ in heard]
    assert all(found.end_s <= answer.seconds for found in answer.windows)
    assert json.loads(json.dumps(answer.to_json()))["detections"][0]["start_s"] == 0


def test_a_higher_threshold_never_adds_a_voice(sound_run, concert):
    low, high = (fieldmark.identify(concert, sound_run, at_least=value).windows for value in (0.1, 0.6))
    assert set(high) <= set(low) and all(found.score >= 0.6 for found in high)


def test_a_photo_is_answered_with_names_and_probabilities(make_release, tmp_path, capsys):
    root = make_release()
    run = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=SETTINGS).folder
    photo = next((root / "test" / "Rubra vera").iterdir())
    answer = fieldmark.identify(photo, run, top=2)
    assert isinstance(answer, PhotoAnswer) and len(answer.names) == 2 and answer.unknown is None
    assert answer.names[0].probability >= answer.names[1].probability
    everything = fieldmark.identify(photo, run, top=10).names
    # Each name carries the number of its claim, which six photos of val hold down.
    assert answer.claim is not None and answer.claim.label == everything[0].label
    assert everything[0].probability == pytest.approx(answer.claim.probability, abs=1e-6)
    assert 0.5 < sum(name.probability for name in everything) < 1
    assert answer.verdict.known is True and answer.knows == 3 and answer.danger is None
    assert answer.short_list is not None and answer.short_list.coverage is None  # six photos of val promise nothing
    assert {one.label for one in answer.nearest} <= {name.label for name in everything}
    assert json.loads(json.dumps(answer.to_json()))["verdict"]["known"] is True
    for shown in (answer, fieldmark.load_model(run), fieldmark.dataset("folder", root)):
        assert repr(shown).startswith(f"<{type(shown).__name__} ") and len(repr(shown)) < 300
    verb.identify([photo], str(run), top=2)
    printed = capsys.readouterr().out
    assert f"{answer.names[0].shown} " in printed and "species" not in printed.splitlines()[0]
    with pytest.raises(MisuseError, match="was fitted to photos"):
        wav = tmp_path / "a.wav"
        wav.write_bytes(encoded(tone(1, 8000), 8000))
        fieldmark.identify(wav, run)
    with pytest.raises(MisuseError, match="BirdNET is for recordings"):
        fieldmark.identify(photo, "birdnet")


def test_a_poisonous_name_is_marked_and_the_model_is_not_to_be_eaten_by(make_release, tmp_path, capsys):
    root = make_release()
    (root / "taxa.csv").write_text("label,poisonous\nAlba alba,true\nAlba nigra,true\nRubra vera,true\n")
    run = fieldmark.fit("folder", root, "frequent", tmp_path / "run").folder
    photo = next((root / "test" / "Rubra vera").iterdir())
    answer = fieldmark.identify(photo, run)
    assert answer.danger is not None and answer.danger.probability == pytest.approx(1)
    assert [one.name.poisonous for one in answer.danger.look_alikes] == [True] * 3
    verb.identify([photo], str(run))
    printed = capsys.readouterr().out
    assert "BE CAREFUL" in printed and "poison center" in printed and "edible" not in printed


def test_json_and_a_file_may_be_wanted_at_once(sound_run, concert, tmp_path, capsys):
    out = tmp_path / "heard.csv"
    verb.identify([concert], str(sound_run), form=verb.Form.CSV, out=out, as_json=True)
    assert json.loads(capsys.readouterr().out)["kind"] == "recording" and out.read_text().startswith("start_s,")


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        (
            "diary.wav",
            b"Dear diary",
            "found 10 bytes that are not a recording, expected a WAV, FLAC, OGG, MP3 or M4A file",
        ),
        ("empty.flac", b"", "found an empty file"),
        ("notes.txt", b"x", "found a file ending in .txt, expected one of .jpg"),
        (None, b"", "no such file, expected a photo or a recording"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_sentence(name, data, sentence, tmp_path):
    path = tmp_path / (name or "missing.wav")
    if name:
        path.write_bytes(data)
    with pytest.raises(InputError, match=sentence):
        fieldmark.identify(path, "birdnet")


@pytest.mark.parametrize(
    ("samples", "rate_hz"),
    [
        (np.zeros((48_000, 1)), 48_000),
        (tone(0.2, 44_100), 44_100),
        (tone(4, 8_000), 8_000),
        (tone(4, 96_000, channels=2), 96_000),
    ],
    ids=["silence", "a fifth of a second", "8 kHz mono", "96 kHz stereo"],
)
def test_unusual_recordings_are_heard_to_their_end(samples, rate_hz, tmp_path):
    path = tmp_path / "odd.wav"
    path.write_bytes(encoded(samples, rate_hz))
    answer = fieldmark.identify(path, "birdnet", at_least=0.001)
    assert answer.seconds == pytest.approx(len(samples) / rate_hz)
    assert all(0 <= found.start_s < found.end_s <= answer.seconds for found in answer.windows)


def test_a_recording_cut_in_mid_frame_is_heard_as_far_as_it_goes_and_that_is_said(tmp_path, concert):
    path = tmp_path / "cut.wav"
    path.write_bytes(concert.read_bytes()[:500_001])
    answer = fieldmark.identify(path, "birdnet")
    assert answer.seconds == pytest.approx(250_000 / 32_000, abs=0.01)
    assert "The recording was cut: 7.8 s of the 22.0 s" in answer.remarks[1] and "CC BY-NC-SA" in answer.remarks[0]


def test_where_a_bird_cannot_be_it_is_not_heard(tmp_path, concert):
    everywhere = fieldmark.identify(concert, "birdnet", at_least=0.0005)
    there = fieldmark.identify(concert, "birdnet", at_least=0.0005, context=Circumstances(lat=-75.0, lon=0.0))
    assert {found.label for found in there.windows} < {found.label for found in everywhere.windows}


def test_what_the_place_rules_out_is_not_listed_however_low_the_line(tmp_path):
    path = tmp_path / "short.wav"
    path.write_bytes(encoded(tone(1, 48_000), 48_000))
    there = fieldmark.identify(path, "birdnet", at_least=0.0, context=Circumstances(lat=-75.0, lon=0.0))
    assert len(there.windows) < 1000 and there.windows


def test_birdnet_names_no_more_than_it_is_asked_for(tmp_path):
    path = tmp_path / "short.wav"
    path.write_bytes(encoded(tone(1, 48_000), 48_000))
    only = fieldmark.identify(path, "birdnet", at_least=0.0, only=["Turdus", "Common Cuckoo"])
    names = {found.label for found in only.windows}
    assert "Cuculus canorus" in names and {name.split()[0] for name in names} == {"Turdus", "Cuculus"}


def detection(label: str, start: float, score: float = 0.5) -> Detection:
    return Detection(label, f"{label} {label}", None, score, start, start + 5)


def test_windows_that_touch_become_one_detection_with_the_highest_score():
    windows = [detection("a", 0, 0.4), detection("b", 0), detection("a", 5, 0.9), detection("a", 15, 0.6)]
    assert [(found.label, found.start_s, found.end_s, found.score) for found in joined(windows)] == [
        ("a", 0, 10, 0.9),
        ("b", 0, 5, 0.5),
        ("a", 15, 20, 0.6),
    ]
    assert joined([]) == ()


def test_every_format_says_the_same(tmp_path):
    found = [detection("wren", 0, 0.4), detection("owl", 2.5, 0.987654)]
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert [(row["label"], float(row["start_s"]), float(row["score"])) for row in rows] == [
        ("wren", 0, 0.4),
        ("owl", 2.5, 0.9877),
    ]
    assert as_audacity(found) == "0.000000\t5.000000\twren wren 0.40\n2.500000\t7.500000\towl owl 0.99\n"
    write_timeline(tmp_path / "a.selections.txt", Path("dawn.wav"), found, "raven")
    table = read_selections(tmp_path / "a.selections.txt")
    assert table["label"].to_list() == ["wren", "owl"] and table["end_s"].to_list() == [5, 7.5]
    write_timeline(tmp_path / "none.selections.txt", Path("dawn.wav"), [], "raven")
    assert len(read_selections(tmp_path / "none.selections.txt")) == 0


def test_the_command_line_prints_csv_for_programs_and_the_license_for_people(concert):
    done = command("identify", concert, "--model", "birdnet", "--at-least", "0.01", "--format", "csv")
    assert done.returncode == 0 and done.stdout.startswith("start_s,end_s,label"), done.stderr
    assert "CC BY-NC-SA 4.0" in done.stderr


def test_the_verb_writes_tables_for_people_and_files_for_other_programs(concert, tmp_path, capsys):
    ask = {"top": 3, "at_least": 0.01, "lat": None, "lon": None, "date": None, "site": None, "each_window": False}
    verb.identify([concert], "birdnet", form=verb.Form.RAVEN, out=tmp_path / "c.txt", as_json=False, **ask)
    number = len(read_selections(tmp_path / "c.txt"))
    assert number > 0 and f"{number} detections in {tmp_path / 'c.txt'}" in capsys.readouterr().out
    verb.identify([concert], "birdnet", form=verb.Form.TABLE, out=None, as_json=False, **ask)
    assert "00:00:03" in capsys.readouterr().out
    verb.identify([concert], "birdnet", form=verb.Form.TABLE, out=None, as_json=False, **{**ask, "at_least": 1.0})
    assert "No species scores 1 or more in 22.0 s." in capsys.readouterr().out
    with pytest.raises(MisuseError, match="add --out"):
        verb.identify([concert], "birdnet", form=verb.Form.RAVEN, out=None, as_json=False, **ask)
    with pytest.raises(MisuseError, match="given together"):
        verb.identify([concert], "birdnet", form=verb.Form.TABLE, out=None, as_json=False, **{**ask, "lat": 1.0})


def test_a_timeline_without_a_voice_says_so_in_a_notebook():
    silent = Timeline(Path("dawn.wav"), 9.0, 3.0, (), 0.25, simulated=False)
    assert "<table" not in silent._repr_html_() and "Nothing heard with a score of 0.25" in silent._repr_html_()
    assert repr(silent) == "<Timeline of dawn.wav, 9.0 s: nothing heard>"
