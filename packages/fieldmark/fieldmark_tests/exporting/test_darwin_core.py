from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from dwca.read import DwCAReader
from polars.testing import assert_frame_equal

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.exporting.darwin_core import About, export_darwin_core
from fieldmark.exporting.identifications import identifications_of
from fieldmark_tests.fixtures import save_photo
from fieldmark_tests.releases.occurrences.test_records import HERE, photos_and_places

DWC = "http://rs.tdwg.org/dwc/terms/"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The golden archive with two photos."""
    shutil.copytree(HERE / "archive", tmp_path / "golden")
    save_photo(tmp_path / "golden" / "photos" / "log.jpg", (1, 2, 3), 1)
    save_photo(tmp_path / "golden" / "photos" / "n-4.jpg", (3, 2, 1), 2)
    return tmp_path / "golden"


def exported(root: Path, out: Path, **options):
    before = fieldmark.dataset("occurrences", root)
    return before, export_darwin_core(before, out, **options)


@pytest.mark.parametrize("name", ["archive", "inaturalist.csv", "gbif.csv"])
def test_what_was_exported_opens_to_the_same_tables(name, archive, tmp_path):
    root = archive if name == "archive" else HERE / name
    before, written = exported(root, tmp_path / "out.zip", photos=True)
    after = fieldmark.dataset("occurrences", tmp_path / "out.zip")
    assert (written.observations, written.files) == (len(before.observations), len(before.media))
    assert_frame_equal(after.taxa, before.taxa)
    # What tells how a record came about is exported in Darwin Core's words; what was emptied on reading is gone.
    passed_over = {"captive", "quality_grade", "coordinates_obscured", "event_date"}
    columns = [column for column in before.observations.columns if column not in passed_over]
    assert_frame_equal(after.observations.select(columns), before.observations.select(columns))
    emptied = before.observations["date_precision"].is_null() & before.observations["event_date"].is_not_null()
    assert_frame_equal(
        after.observations["event_date"].filter(~emptied).to_frame(),
        before.observations["event_date"].filter(~emptied).to_frame(),
    )
    assert_frame_equal(after.media.drop("path"), before.media.drop("path"))
    for media_id in before.media["media_id"]:
        assert after.read_medium(media_id) == before.read_medium(media_id)


def test_labels_that_are_no_species_come_back_as_they_were(tmp_path):
    text = "id,label,lat,lon,note\n1,Alba aff. nigra,50.5,10.5,\n2,241,51.5,10.5,\n3,Alba nigra,52.5,10.5,\n"
    (tmp_path / "a.csv").write_text(text)
    before, _ = exported(tmp_path / "a.csv", tmp_path / "out.zip")
    after = fieldmark.dataset("occurrences", tmp_path / "out.zip")
    assert after.observations["label"].to_list() == ["Alba aff. nigra", "241", "Alba nigra"]
    assert_frame_equal(after.taxa, before.taxa)
    assert after.observations["basis_of_record"].unique().to_list() == ["Occurrence"]


def test_the_other_reader_opens_what_we_wrote(archive, tmp_path):
    before, _ = exported(archive, tmp_path / "out.zip", photos=True, about=About("Finds & more", "A <Museum>"))
    with DwCAReader(str(tmp_path / "out.zip")) as opened:
        rows = list(opened)
        assert [row.id for row in rows] == before.observations["observation_id"].to_list()
        assert opened.descriptor.core.type == f"{DWC}Occurrence"
        first = rows[0].data
        assert (first[f"{DWC}scientificName"], first[f"{DWC}decimalLatitude"]) == ("Alba alba (L.) Author", "56.25")
        (photo,) = rows[0].extensions
        assert photo.data["http://purl.org/dc/terms/identifier"] == "photos/log.jpg"
        assert photo.data["http://purl.org/dc/terms/license"].endswith("by-nc/4.0/")
        assert opened.metadata.find("dataset/title").text == "Finds & more"


def test_tabs_quotes_and_line_ends_survive(tmp_path):
    name = 'a "b"\tc\nd'
    (tmp_path / "a.csv").write_text('id,species,observer\n1,Alba alba,"a ""b""\tc\nd"\n2,Alba alba,\n')
    exported(tmp_path / "a.csv", tmp_path / "out.zip")
    assert fieldmark.dataset("occurrences", tmp_path / "out.zip").observations["observer"].to_list() == [name, None]
    with DwCAReader(str(tmp_path / "out.zip")) as opened:
        assert [row.data[f"{DWC}recordedBy"] for row in opened] == [name, ""]


def test_dates_are_written_in_iso_as_exactly_as_they_are_known(tmp_path):
    (tmp_path / "a.csv").write_text("id,species,date\n1,A b,9/1/24\n2,A b,8/25/25\n3,A b,2020-05\n4,A b,2020-02-30\n")
    exported(tmp_path / "a.csv", tmp_path / "out.zip")
    with DwCAReader(str(tmp_path / "out.zip")) as opened:
        assert [row.data[f"{DWC}eventDate"] for row in opened] == ["2024-09-01", "2025-08-25", "2020-05", ""]


def test_a_folder_of_photos_is_exported_as_well(make_release, tmp_path):
    dataset = fieldmark.dataset("folder", make_release())
    written = export_darwin_core(dataset, tmp_path / "out.zip")
    assert (written.observations, written.media, written.files) == (24, 24, 0)
    after = fieldmark.dataset("occurrences", tmp_path / "out.zip")
    assert after.observations["label"].to_list() == dataset.observations["label"].to_list()
    # The photos stayed behind, and nothing pretends otherwise.
    assert after.media.is_empty() and any(remark.startswith("24 photo(s) have an address") for remark in after.remarks)


def test_a_world_stays_a_world_and_unknown_species_have_no_label(make_release, tmp_path):
    root = make_release()
    (root / "WORLD.json").write_text('{"dataset": "folder", "seed": 1}')
    dataset = fieldmark.dataset("folder", root)
    labels = pl.Series("label", ["-1", *dataset.observations["label"][1:]])
    export_darwin_core(replace(dataset, observations=dataset.observations.with_columns(labels)), tmp_path / "out.zip")
    after = fieldmark.dataset("occurrences", tmp_path / "out.zip")
    assert after.simulated and after.observations["label"].to_list() == [None, *labels[1:]]
    with zipfile.ZipFile(tmp_path / "out.zip") as opened:
        assert b"These data are simulated." in opened.read("eml.xml")


def test_the_same_dataset_gives_the_same_bytes_and_metadata_has_what_eml_asks_for(archive, tmp_path):
    for name in ("a.zip", "b.zip"):
        exported(archive, tmp_path / name, photos=True)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as opened:
        root = ElementTree.fromstring(opened.read("eml.xml"))
    assert root.tag == "{https://eml.ecoinformatics.org/eml-2.2.0}eml" and {"packageId", "system"} <= set(root.attrib)
    (dataset,) = root
    # In the order of the schema.
    expected = ["title", "creator", "metadataProvider", "language", "abstract", "intellectualRights", "contact"]
    assert [element.tag for element in dataset] == expected


def test_nothing_is_written_where_the_name_is_no_zip(archive, tmp_path):
    with pytest.raises(MisuseError, match=r"call it out\.txt\.zip"):
        exported(archive, tmp_path / "out.txt")
    assert not (tmp_path / "out.txt").exists()


def test_answers_of_a_run_become_unverified_identifications_by_a_machine(run_main, tmp_path):
    root = photos_and_places(tmp_path / "finds")
    fieldmark.fit("occurrences", root, "frequent", tmp_path / "run")
    options = ("--data", root, "--run", tmp_path / "run", "--answers", 2, "--out", tmp_path / "out.zip", "--json")
    code, out, _ = run_main("export", "darwin-core", "occurrences", *options)
    written = json.loads(out)
    test = pl.read_parquet(tmp_path / "run" / "predictions" / "test.parquet")
    assert code == 0 and written["identifications"] == 2 * len(test) > 0
    with DwCAReader(str(tmp_path / "out.zip")) as opened:
        rows = [one.data for row in opened for one in row.extensions if one.rowtype == f"{DWC}Identification"]
        bases = {row.data[f"{DWC}basisOfRecord"] for row in opened}
    assert len(rows) == 2 * len(test) and bases == {"Occurrence"}
    assert {row[f"{DWC}identificationVerificationStatus"] for row in rows} == {"unverified"}
    assert {row[f"{DWC}identifiedBy"] for row in rows} == {f"Fieldmark {fieldmark.__version__}, method frequent"}
    remark = rows[0][f"{DWC}identificationRemarks"]
    assert remark.startswith("Machine identification, not verified by a person. Probability 0.3")
    assert "Answer 1 on test of occurrences (version 2), item " in remark
    # They add to what the records say, and change nothing about it.
    after = fieldmark.dataset("occurrences", tmp_path / "out.zip")
    assert (
        after.observations["label"].to_list()
        == fieldmark.dataset("occurrences", root, "photos").observations["label"].to_list()
    )


def test_answers_about_other_data_are_refused(tmp_path):
    root = photos_and_places(tmp_path / "finds")
    fieldmark.fit("occurrences/places", root, "frequent", tmp_path / "run")
    dataset = fieldmark.dataset("occurrences", root, "places")
    answers = identifications_of(tmp_path / "run", dataset)
    with pytest.raises(InputError, match="a run on data with the digest"):
        identifications_of(tmp_path / "run", fieldmark.dataset("occurrences", root, "photos"))
    fewer = replace(dataset, observations=dataset.observations.head(1))
    with pytest.raises(MisuseError, match=r"answers '\d+', which .* does not have"):
        export_darwin_core(fewer, tmp_path / "out.zip", answers=answers)
    assert not (tmp_path / "out.zip").exists()


def test_a_run_on_another_dataset_is_misuse(run_main, make_release, tmp_path):
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    code, _, err = run_main(
        *("export", "darwin-core", "occurrences", "--data", HERE / "archive", "--run", tmp_path / "run"),
        *("--out", tmp_path / "x.zip"),
    )
    assert code == 2 and "answers folder, which is about folder, not occurrences" in err
