"""PlantCLEF 2020: XML with ampersands, two domains in one folder, answers by observation."""

from __future__ import annotations

import shutil

import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.plantclef_xml import BrokenXmlError, read_facts
from fieldmark.storage.release import Release
from fieldmark.views.open_benchmark import open_benchmark

XML = "<Image><ObservationId>{}</ObservationId><PhotoType>{}</PhotoType><Species>Costus scaber Ruiz & Pav.</Species>{}"


@pytest.fixture
def release(tmp_path):
    """Two species by hand: 7 is pressed and photographed, 8 only pressed."""

    def picture(folder, name, observation, kind, more="", end="</Image>"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / f"{name}.jpg").write_bytes(name.encode())
        (tmp_path / folder / f"{name}.xml").write_text(XML.format(observation, kind, more) + end)

    picture("herbarium/7", "1", "o1", "Herbarium", "<Latitude>4.5</Latitude><Longitude>-52</Longitude>")
    picture("herbarium/8", "2", "o2", "Herbarium", "<Date>1987-03-02</Date>")
    picture("herbarium_photo_associations/7", "3", "o3", "Herbarium")
    picture("herbarium_photo_associations/7", "4", "o3", "Photo")
    picture("photo/7", "5", "o5", "Photo")
    picture("photo/7", "6", "o6", "Photo")
    picture("test", "7", "t1", "Photo")
    picture("test", "8", "t1", "Photo")
    picture("test", "9", "t2", "Photo")
    (tmp_path / "test/ground_truth.csv").write_text("ObservationId;ClassId\nt1;8\nt2;7\n")
    (tmp_path / "classes.csv").write_text("ClassId,rare\n7,no\n8,yes\n")
    return tmp_path


def problems(root):
    return {problem.what: problem for problem in CHECKS["plantclef-2020"](Release(root)).problems}


def test_each_picture_has_its_domain_and_both_of_a_pair_are_one_observation(release):
    dataset = open_dataset("plantclef-2020", release)
    domain = dict(dataset.media.select("media_id", "domain").iter_rows())
    assert domain["3.jpg"] == "herbarium" and domain["4.jpg"] == "photo" and domain["9.jpg"] == "photo"
    assert len(dataset.observations) == 7
    row = dataset.taxa.row(0, named=True)
    assert (row["family"], row["genus"], row["species"]) == ("Costaceae", "Costus", "Costus scaber")
    assert dataset.taxa["rare"].to_list() == [False, True]
    place = dataset.observations.filter(pl.col("observation_id") == "o1").row(0, named=True)
    assert (place["lat"], place["lon"]) == (4.5, -52.0)


def test_answers_are_about_observations_and_a_pair_is_two_items_that_are_never_parted(release):
    opened = open_benchmark(BENCHMARKS["plantclef-2020"], open_dataset("plantclef-2020", release))
    assert opened.items["test"]["item_id"].to_list() == ["t1", "t2"]
    assert opened.items["test"]["media_ids"].list.len().to_list() == [2, 1]
    train = opened.items["train"]
    assert train.filter(pl.col("observation_id") == "o3")["item_id"].sort().to_list() == ["o3-herbarium", "o3-photo"]
    # Val is drawn from field photos alone, and never from a plant that was pressed as well.
    assert opened.items["val"]["domain"].unique().to_list() == ["photo"]
    assert "o3" not in opened.items["val"]["observation_id"].to_list()


def test_the_folder_of_the_archive_may_lie_between(release, tmp_path_factory):
    root = tmp_path_factory.mktemp("unpacked")
    inner = root / "PlantCLEF2020TrainingData"
    shutil.copytree(release, inner, ignore=shutil.ignore_patterns("test"))
    shutil.copytree(release / "test", root / "PlantCLEF2020TestData")
    dataset = open_dataset("plantclef-2020", root)
    assert len(dataset.media) == 9 and dataset.observations["label"].null_count() == 0


def test_xml_that_is_malformed_missing_or_alone_is_counted_and_the_rest_is_read(release):
    (release / "herbarium/8/2.xml").write_text("<Image><Species>cut short")
    (release / "photo/7/5.xml").unlink()
    (release / "photo/7/99.xml").write_text("<Image/>")
    (release / "herbarium_photo_associations/7/4.xml").write_text("")
    noted = problems(release)
    broken = noted["an XML file cannot be read; its picture counts as an observation of its own"]
    assert broken.times == 2 and any("herbarium/8/2.jpg: no XML" in place for place in broken.places)
    assert noted["a picture has no XML beside it and counts as an observation of its own"].places == ("photo/7/5.jpg",)
    assert noted["an XML file has no picture beside it"].places == ("photo/7/99.xml",)
    what = "a picture of herbarium_photo_associations does not say whether it is a sheet (PhotoType) and is skipped"
    assert noted[what].places == ("herbarium_photo_associations/7/4.jpg",)
    dataset = open_dataset("plantclef-2020", release)
    assert len(dataset.media) == 8 and "photo-5.jpg" in dataset.observations["observation_id"].to_list()
    assert any("2 XML file(s) cannot be read" in remark for remark in dataset.remarks)


def test_a_release_is_counted_beside_the_published_numbers(release):
    report = CHECKS["plantclef-2020"](Release(release))
    counted = {part.part: part for part in report.counts}
    assert (counted["herbarium"].found.photos, counted["photo"].found.photos) == (3, 3)
    assert counted["pressed and photographed"].found.observations == 1
    published = {name: part.published["LifeCLEF 2020, section 2"] for name, part in counted.items()}
    assert (published["herbarium"].photos, published["herbarium"].classes) == (321_270, 997)
    assert (published["photo"].photos, published["pressed and photographed"].observations) == (6_316, 354)
    assert (published["test"].photos, published["test"].observations) == (3_186, 638)


def test_a_plant_of_train_in_test_is_an_error_and_refused(release):
    (release / "test/9.xml").write_text(XML.format("o1", "Photo", "") + "</Image>")
    assert problems(release)["an observation of test is in train as well"].severity == "error"
    with pytest.raises(InputError, match="the observation o1, which is in train as well"):
        open_dataset("plantclef-2020", release)


def test_entities_that_a_file_declares_are_never_expanded():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><Image><Species>&a;&a;</Species></Image>'
    assert read_facts(bomb).values == {"species": "&a;&a;"}
    with pytest.raises(BrokenXmlError, match="no XML"):
        read_facts(b"<Image><Species></Image>")


def test_old_files_in_windows_1252_are_read():
    facts = read_facts("<?xml version='1.0' encoding='utf-8'?><Image><Author>Goëau</Author></Image>".encode("cp1252"))
    assert facts.text("author") == "Goëau"
