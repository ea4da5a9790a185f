"""Naming a folder or a table: everything once, whatever happens in between."""

from __future__ import annotations

import csv
import datetime
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from dwca.read import DwCAReader
from PIL import ExifTags, Image

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification import identify
from fieldmark.identification.darwin_core_rows import darwin_core_row
from fieldmark.identification.review import batch
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, read_answers, table_of
from fieldmark.identification.review.answer_tables import as_list, write_form
from fieldmark.identification.review.batch import BatchSettings, identify_many
from fieldmark.identification.review.camera_traps import COLUMNS
from fieldmark.identification.review.observations import is_many, read_observations
from fieldmark.identification.review.search import search_like
from fieldmark.identification.review.session import Review
from fieldmark.identification.text import headline
from fieldmark.models import load_model
from fieldmark.models.guides.rollup import BANDS, RollUp
from fieldmark.tables.media import PHOTO, RECORDING
from fieldmark.tables.sound_tables import read_sounds
from fieldmark_tests.fixtures import COLORS, save_photo


@pytest.fixture
def finds(tmp_path: Path) -> Path:
    """Nine photos in the folders of two cameras, one of them broken."""
    root = tmp_path / "finds"
    for number, color in enumerate(list(COLORS.values()) * 3):
        save_photo(root / f"camera-{number % 2}" / f"{number}.jpg", color, 900 + number)
    (root / "camera-0" / "4.jpg").write_bytes(b"no photo at all")
    (root / "notes.txt").write_text("not asked about")
    return root


def test_a_folder_is_named_photo_by_photo_and_a_broken_one_says_so(finds, color_model, tmp_path):
    done = identify_many(finds, color_model, tmp_path / "answers")
    table = read_answers(tmp_path / "answers").table
    assert table["observation_id"].to_list() == sorted(
        path.relative_to(finds).as_posix() for path in finds.rglob("*.jpg")
    )
    assert done.asked == 9 and table["problem"].is_not_null().sum() == 1
    broken = table.filter(pl.col("observation_id") == "camera-0/4.jpg")
    assert "not a photo" in broken["problem"][0] and broken["name"][0] == ""
    first = {row["observation_id"]: row["names"] for row in table.iter_rows(named=True)}
    assert first["camera-0/0.jpg"][0] == "Alba alba" and first["camera-1/1.jpg"][0] == "Alba nigra"


def test_what_was_answered_is_not_asked_again(finds, color_model, tmp_path, monkeypatch):
    out = tmp_path / "answers"
    identify_many(finds, color_model, out)
    before = read_answers(out).table
    save_photo(finds / "camera-0" / "new.jpg", (200, 60, 50), 5)
    again = identify_many(finds, color_model, out)
    assert (again.asked, again.before) == (1, 9)
    after = read_answers(out).table
    assert after.filter(pl.col("observation_id") != "camera-0/new.jpg").equals(before)


def test_an_interrupted_batch_goes_on(finds, color_model, tmp_path, monkeypatch):
    out = tmp_path / "answers"
    monkeypatch.setitem(vars(PHOTO), "block", 4)
    answer, seen = batch.answer_photos, []

    def interrupted(specimen, question):
        seen.append(specimen)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return answer(specimen, question)

    monkeypatch.setattr(batch, "answer_photos", interrupted)
    with pytest.raises(KeyboardInterrupt):
        identify_many(finds, color_model, out)
    monkeypatch.setattr(batch, "answer_photos", answer)
    done = identify_many(finds, color_model, out)
    assert (done.asked, done.before) == (5, 4) and not (out / ".partial").exists()
    whole = identify_many(finds, color_model, tmp_path / "whole").answers.table
    assert read_answers(out).table.equals(whole.select(read_answers(out).table.columns))


def test_what_a_person_checked_survives_a_new_batch(finds, color_model, tmp_path):
    out = tmp_path / "answers"
    identify_many(finds, color_model, out)
    Review(out).decide("camera-0/0.jpg", "Rubra vera")
    identify_many(finds, color_model, out, BatchSettings(only=("Alba",)))
    table = read_answers(out).table
    pairs = table.explode("names", "probabilities").filter(pl.col("probabilities") > 0)
    assert "Rubra vera" not in pairs["names"].to_list()
    assert Review(out).looks["camera-0/0.jpg"].name == "Rubra vera"


def test_rows_of_a_table_with_one_observation_are_one_question(finds, color_model, tmp_path):
    (finds / "finds.csv").write_text(
        "File,Observation_ID,date,decimalLatitude,decimalLongitude\n"
        "camera-0/0.jpg,a,2021-09-30,47.5,8.5\ncamera-1/3.jpg,a,,,\ncamera-1/1.jpg,b,,,\n"
    )
    done = identify_many(finds / "finds.csv", color_model, tmp_path / "answers")
    rows = done.answers.table.select("observation_id", "files", "date", "lat").rows()
    assert [row[0] for row in rows] == ["a", "b"] and rows[0][1] == ["camera-0/0.jpg", "camera-1/3.jpg"]
    assert str(rows[0][2]) == "2021-09-30" and rows[0][3] == 47.5 and rows[1][2] is None


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("gone.jpg,,,", "line 2.*not there"),
        ("notes.txt,,,", "line 2.*a photo"),
        ("camera-0/0.jpg,2021-13-01,,", "line 2.*2021-13-01"),
        ("camera-0/0.jpg,,95,8", "line 2.*planet"),
        ("camera-0/0.jpg,,47,", "line 2.*alone"),
        (",,,", "line 2.*no file"),
    ],
)
def test_a_table_at_fault_is_refused_with_its_line(finds, row, words):
    (finds / "finds.csv").write_text(f"file,date,lat,lon\n{row}\n")
    with pytest.raises(InputError, match=words):
        read_observations(finds / "finds.csv", PHOTO)


def test_tables_and_folders_are_many(finds):
    assert is_many([finds]) and is_many([finds / "finds.csv"]) and not is_many([finds / "a.jpg"])
    with pytest.raises(InputError, match="no recordings"):
        read_observations(finds, RECORDING)


def test_a_folder_with_something_else_is_not_touched(finds, color_model):
    with pytest.raises(MisuseError, match="something other"):
        identify_many(finds, color_model, finds)


HEARD = ((0.7, 0.0, 3.0), (0.8, 3.0, 6.0))


def test_recordings_are_named_voice_by_voice(tmp_path, monkeypatch):
    """With a timeline put in place of the network's, which has tests of its own."""
    from fieldmark.identification.results import Detection, Timeline

    heard = {
        "a.wav": tuple(Detection("Parus major", "Parus major", "Great Tit", *one) for one in HEARD),
        "b.wav": (),
    }
    for name in heard:
        (tmp_path / "sounds").mkdir(exist_ok=True)
        (tmp_path / "sounds" / name).write_bytes(b"RIFF")
    monkeypatch.setattr(
        batch, "identify", lambda path, *_, **__: Timeline(path, 9.0, 3.0, heard[path.name], 0.25, False)
    )
    done = identify_many(tmp_path / "sounds", "birdnet", tmp_path / "answers")
    rows = done.answers.table.select("observation_id", "name", "start_s", "end_s", "verdict").rows()
    assert rows == [
        ("a.wav#0-6 Parus major", "Parus major", 0.0, 6.0, "known"),
        ("b.wav", "", None, None, "nothing heard"),
    ]
    with pytest.raises(MisuseError, match="recordings"):
        write_form(done.answers, "camtrap", tmp_path / "package")
    apart = identify_many(tmp_path / "sounds", "birdnet", tmp_path / "windows", BatchSettings(each_window=True))
    sounds = read_sounds(tmp_path / "windows")  # as `fieldmark detections` reads them
    assert apart.answers.table.height == 3 and sounds.files == ("a.wav", "b.wav")
    assert sounds.rows.select("score", "start_s", "end_s").rows() == list(HEARD)


def with_time(path: Path, moment: str) -> None:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = moment
    with Image.open(path) as photo:
        photo.save(path, exif=exif)


def check_package(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The rules of Camtrap DP 1.0 for what is written here: columns, keys, required fields, vocabularies."""
    package = json.loads((folder / "datapackage.json").read_text())
    required = {"profile", "created", "contributors", "project", "spatial", "temporal", "taxonomic"}
    assert required <= package.keys() and package["profile"].endswith("/camtrap-dp-profile.json")
    assert {"title", "samplingDesign", "captureMethod", "individualAnimals", "observationLevel"} <= package[
        "project"
    ].keys()
    tables = {}
    for resource in package["resources"]:
        with (folder / resource["path"]).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            tables[resource["name"]] = list(reader)
            assert tuple(reader.fieldnames) == COLUMNS[resource["name"]]
    needed = {
        "deployments": ("deploymentID", "latitude", "longitude", "deploymentStart", "deploymentEnd"),
        "media": ("mediaID", "deploymentID", "timestamp", "filePath", "filePublic", "fileMediatype"),
        "observations": (
            *("observationID", "deploymentID", "eventStart", "eventEnd", "observationLevel", "observationType"),
        ),
    }
    for name, columns in needed.items():
        assert all(row[column] for row in tables[name] for column in columns)
        assert len({row[columns[0]] for row in tables[name]}) == len(tables[name])
    deployments, media = (
        {row[key] for row in tables[name]} for name, key in (("deployments", "deploymentID"), ("media", "mediaID"))
    )
    for row in (*tables["media"], *tables["observations"]):
        assert row["deploymentID"] in deployments and row.get("mediaID", "") in {*media, ""}
    for row in tables["media"]:
        assert (folder / row["filePath"]).is_file() and not row["filePath"].startswith((".", "/", "~"))
    for row in tables["observations"]:
        assert row["observationLevel"] in ("media", "event") and row["classificationMethod"] in ("human", "machine")
        assert row["observationType"] in ("animal", "human", "vehicle", "blank", "unknown", "unclassified")
        assert (row["observationType"] == "animal") == bool(row["scientificName"])
    names = {row["scientificName"] for row in tables["observations"]} - {""}
    assert {taxon["scientificName"] for taxon in package["taxonomic"]} == names
    return tables


def test_camera_traps_become_a_package_that_keeps_the_rules(finds, color_model, tmp_path):
    (finds / "camera-0" / "4.jpg").unlink()
    for number, path in enumerate(sorted(finds.rglob("*.jpg"))):
        with_time(path, f"2021:09:30 0{number}:15:00")
    out = tmp_path / "answers"
    identify_many(finds, color_model, out, BatchSettings(known={"lat": 47.5, "lon": 8.5}, exif=True))
    review = Review(out)
    review.decide("camera-0/0.jpg", "Rubra vera")
    write_form(review.answers, "camtrap", out / "camtrap", review.looks)
    tables = check_package(out / "camtrap")
    assert [row["deploymentID"] for row in tables["deployments"]] == ["camera-0", "camera-1"]
    assert tables["deployments"][0]["timestampIssues"] == "true"
    checked = next(row for row in tables["observations"] if row["observationID"] == "camera-0/0.jpg")
    assert (checked["classificationMethod"], checked["scientificName"]) == ("human", "Rubra vera")
    assert tables["media"][0]["timestamp"] == "2021-09-30T00:15:00Z"


def test_a_package_without_time_or_place_is_refused(finds, color_model, tmp_path):
    out = tmp_path / "answers"
    answers = identify_many(finds, color_model, out).answers
    with pytest.raises(InputError, match="no date and time"):
        write_form(answers, "camtrap", out / "camtrap")
    (finds / "camera-0" / "4.jpg").unlink()
    for path in finds.rglob("*.jpg"):
        with_time(path, "2021:09:30 06:15:00")
    answers = identify_many(finds, color_model, out, BatchSettings(exif=True)).answers
    with pytest.raises(InputError, match="without a place"):
        write_form(answers, "camtrap", out / "camtrap")
    assert not (out / "camtrap").exists()


def test_the_archive_says_who_named_what(finds, color_model, tmp_path):
    out = tmp_path / "answers"
    identify_many(finds, color_model, out)
    review = Review(out)
    review.decide("camera-0/0.jpg", "Rubra vera")
    write_form(review.answers, "darwin-core", out / "darwin-core.zip", review.looks)
    with DwCAReader(out / "darwin-core.zip") as archive:
        rows = {row.id: row for row in archive}
        status = {
            row_id: [
                one.data["http://rs.tdwg.org/dwc/terms/identificationVerificationStatus"]
                for one in row.extensions
                if one.rowtype.endswith("Identification")
            ]
            for row_id, row in rows.items()
        }
        assert len(rows) == 9
        assert status["camera-0/0.jpg"] == ["verified by human"] and status["camera-0/4.jpg"] == []
        assert {"unverified"} == {one for key, own in status.items() if key != "camera-0/0.jpg" for one in own}
        assert rows["camera-0/0.jpg"].data["http://rs.tdwg.org/dwc/terms/scientificName"] == "Rubra vera"


@pytest.fixture(scope="module")
def genus_model(color_model, tmp_path_factory) -> Path:
    """The model of colors, which claims no species: of Rubra it knows one."""
    model = load_model(color_model)
    assert model.guide is not None
    rule = RollUp({"name": None, "genus": 0.0}, {"genus": (0.9,) * len(BANDS)}, {"name": (0, 0), "genus": (9, 9)})
    folder = tmp_path_factory.mktemp("genus") / "model"
    replace(model, guide=replace(model.guide, roll_up=rule)).save(folder)
    return folder


def archive_rows(path: Path) -> dict[str, dict[str, str]]:
    """The rows of an archive by their ids, the identification of each among its terms."""
    with DwCAReader(path) as archive:
        return {
            row.id: {
                term.rpartition("/")[2]: value
                for one in (row, *(own for own in row.extensions if own.rowtype.endswith("Identification")))
                for term, value in one.data.items()
            }
            for row in archive
        }


def test_a_batch_records_what_the_single_answer_claims(finds, genus_model, tmp_path):
    out = tmp_path / "answers"
    identify_many(finds, genus_model, out)
    write_form(read_answers(out), "darwin-core", out / "darwin-core.zip")
    rows = archive_rows(out / "darwin-core.zip")
    for file in ("camera-0/2.jpg", "camera-1/5.jpg", "camera-0/0.jpg"):
        answer = identify(finds / file, genus_model)
        single = darwin_core_row(answer)
        terms = ("scientificName", "taxonRank", "genus", "family", "vernacularName")
        assert {term: rows[file].get(term, "") for term in terms} == {term: single.get(term, "") for term in terms}
        assert answer.claim is not None and headline(answer).startswith(f"{rows[file]['scientificName']} (genus")
    assert {rows[file]["scientificName"] for file in ("camera-0/2.jpg", "camera-1/5.jpg")} == {"Rubra"}


def test_answers_of_an_earlier_version_get_the_name_of_the_genus_that_was_claimed(tmp_path):
    shared = {"date": datetime.date(2021, 9, 30), "time": "06:15:00", "lat": 47.0, "lon": 8.0}
    rows = [
        AnsweredEntry("a", ["a.jpg"], name="zea_mays", rank="genus", **shared),
        AnsweredEntry("b", ["b.jpg"], name="zea_mays", rank="species", **shared),
    ]
    for row in rows:
        save_photo(tmp_path / row.files[0], (0, 0, 0), 1)
    taxa = [{"label": "zea_mays", "species": "Zea mays", "genus": "Zea", "family": "Poaceae", "common_name": "corn"}]
    answers = AnswerFolder(table_of(rows).drop("dangerous"), tmp_path, {"kind": "photo"}, taxa)
    answers.write(tmp_path / "answers")
    read = read_answers(tmp_path / "answers")
    assert as_list(read).select("name", "scientific_name", "rank").rows() == [
        ("Zea", "Zea", "genus"),
        ("zea_mays", "Zea mays", "species"),
    ]
    write_form(read, "camtrap", tmp_path / "camtrap")
    package = check_package(tmp_path / "camtrap")
    assert [row["scientificName"] for row in package["observations"]] == ["Zea", "Zea mays"]
    described = json.loads((tmp_path / "camtrap" / "datapackage.json").read_text())["taxonomic"]
    assert described == [
        {"scientificName": "Zea", "family": "Poaceae", "taxonRank": "genus"},
        {
            **{"scientificName": "Zea mays", "family": "Poaceae", "genus": "Zea", "taxonRank": "species"},
            "vernacularNames": {"eng": "corn"},
        },
    ]


def test_thresholds_hold_for_a_batch_and_what_it_cannot_follow_is_refused(finds, color_model, tmp_path, run_main):
    lines = tmp_path / "lines.csv"
    lines.write_text("name,at_least\nRubra vera,1\n")
    asked = ("identify", finds, "--model", color_model, "--out", tmp_path / "answers")
    assert run_main(*asked, "--thresholds", lines)[0] == 0
    table = read_answers(tmp_path / "answers").table
    red = table.filter(pl.col("observation_id") == "camera-0/2.jpg")
    assert red["names"][0][0] == "Rubra vera" and red["name"][0] != "Rubra vera"
    code, _, told = run_main(*asked, "--html", tmp_path / "page.html")
    assert code == 2 and "--html: for one photo or recording" in told


def test_the_summary_of_a_batch_names_the_dangers(finds, color_model, tmp_path, run_main):
    code, printed, _ = run_main("identify", finds, "--model", color_model, "--out", tmp_path / "answers")
    warned = read_answers(tmp_path / "answers").table.filter(pl.col("dangerous").list.len() > 0)
    assert code == 0 and len(warned)
    assert f"BE CAREFUL with {len(warned)} observations" in printed and "could be Alba nigra" in printed
    _, printed, _ = run_main("identify", finds, "--model", color_model, "--out", tmp_path / "answers", "--json")
    assert json.loads(printed)["dangers"]["names"] == {"Alba nigra": len(warned)}


def test_places_of_threatened_species_are_told_coarsely(tmp_path):
    save_photo(tmp_path / "a.jpg", (0, 0, 0), 1)
    save_photo(tmp_path / "b.jpg", (0, 0, 0), 2)
    shared = {"date": datetime.date(2021, 9, 30), "time": "06:15:00", "lat": 47.4567, "lon": 8.5432}
    rows = [
        AnsweredEntry("a", ["a.jpg"], name="Lynx lynx", threatened=True, site="x", **shared),
        AnsweredEntry("b", ["b.jpg"], name="Meles meles", site="y", **shared),
    ]
    taxa = [{"label": "Lynx lynx", "red_list": "EN"}, {"label": "Meles meles", "red_list": "LC"}]
    AnswerFolder(table_of(rows), tmp_path, {"kind": "photo"}, taxa).write(tmp_path / "answers")
    review = Review(tmp_path / "answers")

    def written() -> tuple[list[str], list[str]]:
        write_form(review.answers, "camtrap", tmp_path / "camtrap", review.looks)
        write_form(review.answers, "darwin-core", tmp_path / "a.zip", review.looks)
        with DwCAReader(tmp_path / "a.zip") as archive:
            places = [row.data["http://rs.tdwg.org/dwc/terms/decimalLatitude"] for row in archive]
        return [row["latitude"] for row in check_package(tmp_path / "camtrap")["deployments"]], places

    assert written() == (["47.5", "47.4567"], ["47.5", "47.4567"])
    review.decide("b", "Lynx lynx")
    assert written() == (["47.5", "47.5"], ["47.5", "47.5"])


def test_tables_hold_the_list_with_what_was_corrected(finds, color_model, tmp_path):
    out = tmp_path / "answers"
    answers = identify_many(finds, color_model, out).answers
    review = Review(out)
    review.decide("camera-0/0.jpg", "Rubra vera")
    for form, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        write_form(answers, form, tmp_path / f"list.{form}", review.looks)
        table = read(tmp_path / f"list.{form}")
        assert len(table) == 9
        assert table.filter(pl.col("by") == "person")["name"].to_list() == ["Rubra vera"]
    assert as_list(answers)["by"].unique().to_list() == ["machine"]


def test_search_finds_the_photos_that_look_most_alike(finds, tmp_path):
    (finds / "camera-0" / "4.jpg").unlink()
    example = tmp_path / "example.jpg"
    save_photo(example, COLORS["Alba nigra"], 77)
    from fieldmark.features.settings import FeatureSettings

    found = search_like(example, [finds], top=3, settings=FeatureSettings(size=32))
    dark = {"1.jpg", "7.jpg"}  # the third of that color is gone
    assert {one.file.name for one in found[:2]} == dark and found[0].likeness >= found[1].likeness
    with pytest.raises(InputError, match="no other photos"):
        search_like(example, [example])
