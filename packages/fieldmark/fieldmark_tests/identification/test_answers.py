"""One specimen, one honest answer: what is said, what is left out, and what never is."""

from __future__ import annotations

import csv
import datetime
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, ImageFile

import fieldmark
from fieldmark.cli import calibrate as calibrate_verb
from fieldmark.cli import identify as verb
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification import Circumstances
from fieldmark.identification.calibration import calibrate_model
from fieldmark.identification.darwin_core_rows import darwin_core_row
from fieldmark.identification.name_lists import NameFinder, read_common_names
from fieldmark.identification.pages import answer_page
from fieldmark.identification.results import Detection, Timeline
from fieldmark.identification.text import confidence_word, danger_lines, headline, removed_line, sentences
from fieldmark.models import load_model
from fieldmark.models.guides.conformal import ConformalSets
from fieldmark.models.guides.guide import load_guide
from fieldmark_tests.audio.sounds import encoded, song
from fieldmark_tests.fixtures import COLORS, save_photo

SETTINGS = {"backbone": "resnet10t", "weights": "random", "size": 32}
TAXA = """label,kingdom,genus,species,poisonous,red_list,common_name
Alba alba,Fungi,Alba,Alba alba,false,LC,White one
Alba nigra,Fungi,Alba,Alba nigra,true,VU,Black one
Rubra vera,Fungi,Rubra,Rubra vera,false,LC,
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """Three species of fungi with habitats, one of them poisonous, enough photos on val for a promise."""
    root = tmp_path_factory.mktemp("fungi") / "photos"
    lines = ["file,date,habitat"]
    for label_number, (label, color) in enumerate(COLORS.items()):
        for number in range(32):
            part = "train" if number < 16 else "val" if number < 30 else "test"
            path = Path(part, label, f"{label_number}-{number}.jpg")
            save_photo(root / path, color, 100 * label_number + number)
            wood = "oak" if (label_number == 2) != (number % 8 == 0) else "pine"
            lines.append(f"{path.as_posix()},2024-09-{1 + number % 28:02d},{wood}")
    (root / "taxa.csv").write_text(TAXA)
    (root / "observations.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def run(release, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    steps = ["temperature", "prior:column=habitat,exponent=1", "temperature"]
    return fieldmark.fit("folder", release, "centroid", out, settings=SETTINGS, steps=steps).folder


@pytest.fixture(scope="module")
def black(release) -> Path:
    return sorted((release / "test" / "Alba nigra").iterdir())[0]


def test_context_is_used_where_the_model_can_and_what_is_ignored_or_missing_is_said(run, black):
    known = Circumstances(lat=50.0, lon=10.0, date=datetime.date(2024, 9, 1), habitat="pine")
    answer = fieldmark.identify(black, run, context=known)
    assert [source.name for source in answer.sources] == ["photo", "habitat"]
    habitat = answer.sources[1]
    assert habitat.value == "pine" and habitat.with_it == pytest.approx(answer.names[0].probability, abs=1e-5)
    assert habitat.with_it != habitat.without
    assert [sentence.split(" was ")[0] for sentence in answer.ignored] == ["The place", "The date"]
    bare = fieldmark.identify(black, run)
    assert bare.missing == ("habitat",) and bare.ignored == ()
    assert "The model could also use: habitat." in list(sentences(bare))
    assert bare.names[0].probability == pytest.approx(habitat.without, abs=1e-5)


def test_one_name_has_one_number_and_a_claim_about_every_name_is_none(run, black):
    for options in ({}, {"context": Circumstances(habitat="pine")}, {"only": ["Alba"]}):
        answer = fieldmark.identify(black, run, top=10, **options)
        number = {name.label: name.probability for name in answer.names}
        assert answer.claim is not None and set(answer.claim.labels) < set(load_model(run).labels.names)
        assert all(number[label] <= answer.claim.probability + 1e-6 for label in answer.claim.labels)
        if answer.claim.label is not None:
            assert number[answer.claim.label] == pytest.approx(answer.claim.probability, abs=1e-6)
        alike = [one.name for one in answer.danger.look_alikes] if answer.danger and not options.get("only") else []
        assert all(name.probability == number[name.label] for name in alike)
        assert confidence_word(answer.claim.probability) in headline(answer)


@pytest.mark.parametrize("stored", [False, True])
def test_a_photo_is_read_once_and_decoded_once_for_each_network_whatever_is_asked_of_it(
    run, black, tmp_path, monkeypatch, stored
):
    photo, decoded, read = tmp_path / "photo.jpg", [], []
    Image.open(black).resize((700, 600)).save(photo)
    if stored:
        fieldmark.identify(photo, run)
    load, read_bytes = ImageFile.ImageFile.load, Path.read_bytes
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: (self.tile and decoded.append(self)) or load(self))
    monkeypatch.setattr(Path, "read_bytes", lambda self: (self == photo and read.append(self)) or read_bytes(self))
    verb.identify([photo], str(run), overlay=None if stored else tmp_path / "overlay.png")
    assert len(read) == 1 and len(decoded) <= 3  # once more at the size of the packaged network, and for the overlay
    assert (tmp_path / "overlay.png").is_file() != stored


def test_lists_are_calibrated_for_what_is_known_and_after_only_recalibrated_or_withdrawn(run, black):
    guide = load_model(run).guide
    assert set(guide.conformal) == {"", "habitat"} and guide.conformal[""].checked is None  # 42 are too few for halves
    promised = fieldmark.identify(black, run, context=Circumstances(habitat="pine"))
    assert promised.short_list.coverage == 0.9 and promised.short_list.calibrated_on == 42
    only = fieldmark.identify(black, run, only=["Alba"], context=Circumstances(habitat="pine"))
    assert {name.label for name in only.names} == {"Alba alba", "Alba nigra"}
    assert 0.5 < sum(name.probability for name in only.names) < 1  # never surer than validation bears out
    assert only.short_list.coverage is None and "28 observations left: too few" in only.short_list.withdrawn
    without = fieldmark.identify(black, run, exclude=["Rubra vera"])
    assert without.short_list.coverage is None and "does not hold after --exclude" in without.short_list.withdrawn
    with pytest.raises(MisuseError, match="--only Rubrra: the model knows no such name"):
        fieldmark.identify(black, run, only=["Rubrra"])
    with pytest.raises(MisuseError, match="leave no name"):
        fieldmark.identify(black, run, only=["Alba"], exclude=["Fungi"])


def test_what_is_left_out_by_a_person_does_not_silence_the_notice_of_danger(run, black):
    for options in ({}, {"exclude": ["Alba nigra"]}, {"only": ["Rubra vera"]}):
        answer = fieldmark.identify(black, run, **options)
        assert answer.danger is not None and answer.danger.probability > 0.5, options
        assert answer.danger.look_alikes[0].name.label == "Alba nigra"
        assert all(photo.is_file() for photo in answer.danger.look_alikes[0].photos)
        said = "\n".join([headline(answer), *sentences(answer), *danger_lines(answer.danger)])
        assert "poison center" in said and "edible" not in said.lower() and "safe" not in said.lower()


def test_a_gray_picture_and_noise_are_possibly_unknown_and_among_fungi_that_is_dangerous(run, tmp_path):
    gray, noise = tmp_path / "gray.png", tmp_path / "noise.png"
    Image.new("RGB", (80, 60), (128, 128, 128)).save(gray)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(noise)
    for picture in (gray, noise):
        answer = fieldmark.identify(picture, run)
        assert answer.verdict.known is False and answer.claim is None and answer.danger is not None, picture
        assert headline(answer).startswith("Possibly unknown") and answer.verdict.because in list(sentences(answer))
        assert answer.danger.brief and "Never eat a mushroom" in answer.danger.because[0]


def test_several_photos_are_one_observation_in_any_order(run, release):
    photos = sorted((release / "test" / "Rubra vera").iterdir())
    first, second = (fieldmark.identify(list(order), run) for order in (photos, photos[::-1]))
    assert first.photos == tuple(photos) and first.names == second.names
    assert first.verdict.strangeness == second.verdict.strangeness


def test_date_and_place_are_read_from_the_photo_only_where_that_is_asked(run, black, tmp_path):
    noted = tmp_path / "noted.jpg"
    with Image.open(black) as photo:
        exif = photo.getexif()
        exif[306] = "2024:09:05 10:00:00"
        photo.save(noted, exif=exif)
    assert fieldmark.identify(noted, run).circumstances.date is None
    read = fieldmark.identify(noted, run, exif=True)
    assert read.circumstances.date == datetime.date(2024, 9, 5) and "The date was read" in read.remarks[0]


def test_a_record_of_darwin_core_is_marked_as_a_machines_and_hides_where_threatened_species_live(run, black):
    where = Circumstances(lat=50.12345, lon=10.98765, date=datetime.date(2024, 9, 1), habitat="pine")
    row = darwin_core_row(fieldmark.identify(black, run, context=where), today=datetime.date(2026, 1, 1))
    assert (row["decimalLatitude"], row["decimalLongitude"]) == ("50.1", "11.0")
    assert "threatened" in row["informationWithheld"] and row["coordinateUncertaintyInMeters"] == "11000"
    assert row["identificationVerificationStatus"] == "unverified" and row["eventDate"] == "2024-09-01"
    assert "Machine identification" in row["identificationRemarks"] and row["kingdom"] == "Fungi"
    other = darwin_core_row(replace(fieldmark.identify(black, run, context=where), threatened=False))
    assert other["decimalLatitude"] == "50.12345" and "informationWithheld" not in other


def test_names_are_found_by_any_spelling_synonym_and_language(run, tmp_path):
    finder = NameFinder(load_model(run), {"Nigrella atra": "Alba nigra"})
    for name in ("alba_nigra", "Alba nigra (L.) Fr.", "BLACK ONE", "nigrella atra"):
        assert finder.label(name) == "Alba nigra", name
    assert finder.codes("Alba") == {0, 1} and finder.label("Alba") is None and not finder.codes("Boletus")
    table = tmp_path / "names.csv"
    table.write_text("name,language,common_name\nAlba nigra,de,Schwarze\nAlba nigra,fr,Noire\n")
    assert read_common_names(table) == {"alba nigra": {"de": "Schwarze", "fr": "Noire"}}
    table.write_text("name,common_name\nAlba nigra,Noire\n")
    with pytest.raises(InputError, match="expected a header with name and language"):
        read_common_names(table)


def test_a_species_below_its_own_threshold_is_not_claimed(run, black, tmp_path):
    table = tmp_path / "thresholds.csv"
    table.write_text("name,at_least\nAlba nigra,1.0\n")
    claim = fieldmark.identify(black, run, thresholds=table).claim
    assert claim is None or claim.rank != "species"
    table.write_text("name,at_least\nAlba nigra,2\n")
    with pytest.raises(InputError, match="line 2: found at_least '2', expected a number from 0 to 1"):
        fieldmark.identify(black, run, thresholds=table)


def test_the_page_shows_photos_overlay_and_danger_and_tells_nothing_the_file_knew(run, black, tmp_path, run_main):
    page, overlay = tmp_path / "a.html", tmp_path / "look.png"
    code, out, _ = run_main("identify", black, "--model", run, "--html", page, "--overlay", overlay, "--json")
    assert code == 0 and json.loads(out)["danger"]["group"] == "fungi" and "overlay" not in json.loads(out)
    with Image.open(overlay) as drawn:
        assert drawn.mode == "RGBA" and np.asarray(drawn)[..., 3].max() > 0
    text = page.read_text()
    assert "Be careful" in text and text.count("data:image/") >= 6 and "http" not in text.replace("http-equiv", "")
    code, out, _ = run_main("identify", black, "--model", run, "--format", "darwin-core")
    assert code == 0 and next(csv.DictReader(io.StringIO(out)))["basisOfRecord"] == "Occurrence"


def test_the_page_of_a_recording_plays_it_and_says_what_was_left_out(tmp_path):
    sound = tmp_path / "dawn.wav"
    sound.write_bytes(encoded(song(6, 32_000, hz=3000, seed=0), 32_000))
    heard, gone = Detection("a", "A a", "Wren", 0.9, 0, 3), Detection("b", "B b", "Kiwi", 0.8, 3, 6)
    answer = Timeline(sound, 6.0, 3, (heard,), 0.25, False, removed=(gone,))
    page = answer_page(answer)
    assert "<audio" in page and "Wren" in page and removed_line(answer).endswith("Kiwi (0.80).") and "Kiwi" in page
    assert answer.to_json()["removed"][0]["label"] == "b"


def test_a_guide_is_saved_with_the_model_and_an_old_model_answers_without_one(run, black, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(run / "model", folder)
    guide = load_guide(folder)
    assert guide.photos.file(0).is_file() and guide.conformal[""] == load_model(run).guide.conformal[""]
    assert "Never eat a mushroom" in (folder / "README.md").read_text()
    (folder / "guide.json").unlink()
    answer = fieldmark.identify(black, folder)
    assert answer.claim is None and answer.verdict.known is None and answer.danger is not None
    assert "answers every photo with one of them" in answer.remarks[-1]


def test_a_card_warns_of_eating_only_where_there_are_fungi(run):
    model = load_model(run)
    birds = pl.DataFrame({"label": model.labels.names, "class": ["Aves"] * 3, "poisonous": [None] * 3})
    assert "mushroom" in model.card() and "mushroom" not in replace(model, taxa=birds).card()


def test_a_card_says_what_the_rules_of_answers_were_drawn_on(run):
    model = load_model(run)
    assert model.guide is not None and "rules that were drawn on validation" in model.card()
    checked = replace(model.guide, checked={"observations": 21}, conformal={})
    card = replace(model, guide=checked).card()
    assert "rules that were drawn on 21 observations that a person checked" in card
    assert "- No short list with a promise: 21 observations that a person checked are too few." in card


def test_checked_answers_calibrate_a_model_and_only_those_drawn_at_random_count(run, release, tmp_path, capsys):
    rows = ["file,label,observation,drawn"]
    for label in COLORS:
        for photo in sorted((release / "val" / label).iterdir()):
            drawn = "random" if photo.stem[-1] in "02468" else "uncertain"
            rows.append(f"{photo},{label},{photo.stem},{drawn}")
    table = tmp_path / "checked.csv"
    table.write_text("\n".join([*rows, f"{photo},Boletus,z,random"]) + "\n")
    done = calibrate_model(run, table, tmp_path / "calibrated")
    assert (done.observations, done.species, done.left_out) == (21, 3, 1)
    if done.model is not None:
        assert load_model(tmp_path / "calibrated").steps[-1].name == "bias-temperature" and not done.promise
        with pytest.raises(MisuseError, match="calibrated before"):
            calibrate_model(tmp_path / "calibrated", table, tmp_path / "again")
    else:
        assert done.after >= done.before and not (tmp_path / "calibrated").exists()
    calibrate_verb.calibrate(str(run), table, tmp_path / "other")
    assert "21 checked observations of 3 species count." in capsys.readouterr().out
    table.write_text("\n".join(rows[:10]) + "\n")
    with pytest.raises(MisuseError, match="a calibration needs 20"):
        calibrate_model(run, table, tmp_path / "few")


def test_a_place_that_is_half_given_is_refused(black, run):
    with pytest.raises(MisuseError, match="given together"):
        verb.identify([black], str(run), lat=1.0)


def test_lines_of_lists_are_kept_as_they_were():
    sets = ConformalSets((5, 20), (0.1, 0.2, 0.3), (140, 150, 160))
    assert ConformalSets.from_data(json.loads(json.dumps(sets.to_data()))) == sets


def test_training_photos_are_found_from_whatever_folder_somebody_asks(make_release, tmp_path, monkeypatch):
    root = make_release(per_class=8)
    monkeypatch.chdir(root.parent)
    folder = fieldmark.fit(
        "folder", Path(root.name), "linear", tmp_path / "run", settings={"size": 32}
    ).folder.absolute()
    photo = next((root / "test").rglob("*.jpg")).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    nearest = fieldmark.identify(photo, folder).nearest
    assert nearest and all(one.photo is not None and one.photo.is_file() for one in nearest)
