from __future__ import annotations

import datetime
import lzma
import shutil
import zipfile
from pathlib import Path

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark_tests.fixtures import COLORS, save_photo
from fieldmark_tests.places import GOLDEN

HERE = GOLDEN / "occurrences"
NAMED = "id,species,lat,lon,date\n"


def table(tmp_path: Path, text: str, name: str = "finds.csv") -> Path:
    tmp_path.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def opened(path: Path, subset: str = "all"):
    return fieldmark.dataset("occurrences", path, subset)


def photos_and_places(root: Path, per_class: int = 8) -> Path:
    """A table with coordinates for all, and photos beside it for all but the last record of each class."""
    lines = ["id,scientificName,decimalLatitude,decimalLongitude,eventDate,taxonRank"]
    for number, (label, color) in enumerate(COLORS.items()):
        for record in range(per_class):
            one = f"{number}{record}"
            lines.append(
                f"{one},{label} Author,{50 + number + record / 10},{10 + record / 10},2021-05-0{record + 1},species"
            )
            if record < per_class - 1:
                save_photo(root / "photos" / f"{one}.jpg", color, 100 * number + record)
    lines.append("99,Alba,55,10,2021-05-01,genus")
    save_photo(root / "photos" / "99.jpg", (128, 128, 128), 999)
    table(root, "\n".join(lines) + "\n", "occurrences.csv")
    return root


def test_the_golden_archive_has_its_records_places_and_labels():
    dataset = opened(HERE / "archive")
    rows = dataset.observations.select("observation_id", "label", "lat", "lon", "country", "basis_of_record").rows()
    assert rows == [
        ("n-1", "Alba alba", 56.25, 10.5, "DK", "HumanObservation"),
        ("n-2", "Alba nigra", 57.5, 9.75, "DK", "HumanObservation"),
        ("n-3", None, 57.0, 9.5, "DK", "HumanObservation"),
        ("n-4", "Rubra vera", 55.0, 12.0, "DK", "HumanObservation"),
        ("s-1", "Alba alba", None, None, "DE", "HumanObservation"),
        ("s-2", "Rubra vera", None, None, "DE", "HumanObservation"),
        ("s-3", "Rubra vera", 52.5, 13.25, "DE", "HumanObservation"),
    ]
    assert set(dataset.observations["license"]) == {"http://creativecommons.org/licenses/by/4.0/legalcode"}
    assert dataset.taxa.select("label", "family", "genus").rows()[2] == ("Rubra vera", "Rubraceae", "Rubra")
    assert dataset.remarks[0].startswith("The table was read as a Darwin Core Archive")
    assert "3 photo(s) have an address and no file here; nothing was downloaded." in dataset.remarks


def test_the_golden_export_of_inaturalist_is_read_by_its_header():
    dataset = opened(HERE / "inaturalist.csv")
    assert dataset.remarks[0].startswith(
        "The table was read as an iNaturalist export: id, scientific_name, common_name"
    )
    rows = dataset.observations.select("observation_id", "label", "date", "coordinate_uncertainty_m", "observer").rows()
    assert rows == [
        ("9000001", "Alba alba", datetime.date(2023, 6, 1), 12.0, "anna_example"),
        # Obscured: the public accuracy counts, and without one there is none.
        ("9000002", "Alba nigra", datetime.date(2023, 6, 2), 28310.0, "bo_example"),
        ("9000003", None, datetime.date(2023, 6, 3), None, "bo_example"),
        ("9000004", "Rubra vera", datetime.date(2023, 6, 4), None, "cy_example"),
    ]
    assert dataset.observations["captive"].to_list() == [False, False, True, False]
    assert dataset.observations["license"].to_list() == ["CC-BY-NC", None, "CC0", "CC-BY"]
    assert dataset.taxa["common_name"].to_list() == ["White One", "Black One", "Red One"]
    told = " ".join(dataset.remarks)
    assert "3 photo(s) have an address" in told and "2 record(s) are not of research grade, and are kept" in told
    assert "1 record(s) are of captive" in told and "2 record(s) have obscured coordinates" in told


def test_the_accuracy_of_the_true_place_is_not_that_of_an_obscured_one(tmp_path):
    header = (
        "id,observed_on,quality_grade,scientific_name,latitude,longitude,positional_accuracy,coordinates_obscured\n"
    )
    rows = "1,2020-01-01,research,Alba alba,50,10,5,true\n2,2020-01-01,research,Alba alba,50,10,5,false\n"
    found = opened(table(tmp_path, header + rows)).observations["coordinate_uncertainty_m"]
    assert found.to_list() == [None, 5.0]


def test_the_golden_download_of_gbif_keeps_quotes_and_leaves_absences_out():
    dataset = opened(HERE / "gbif.csv")
    assert dataset.remarks[0].startswith("The table was read as a simple download of GBIF: id from gbifID")
    rows = dataset.observations.select("observation_id", "label", "event_date", "month", "date_precision").rows()
    assert rows == [
        ("4000000001", "Alba alba", "2020-05-01/2020-05-03", 5, "month"),
        ("4000000002", "Alba nigra", "2020-05-04", 5, "day"),
        ("4000000003", None, "2020", None, "year"),
    ]
    assert any("says that the taxon was absent, and is left out" in remark for remark in dataset.remarks)
    # The accepted species is the label, the name that was identified is kept beside it.
    assert dataset.observations["scientific_name"][1] == "Nigra alba Author"
    assert dataset.observations.filter(pl.col("label").is_null())["family"].to_list() == ["Albaceae"]


@pytest.mark.parametrize(
    "names",
    [
        ("Black throated Sparrow", "Black throated Blue Warbler"),
        ("Great spotted woodpecker", "Great spotted cuckoo", "Blue tit"),
        ("Kleine rote Waldameise", "Kleine rote Spinne", "Blaumeise", "Rotes Ordensband", "Großer Fuchs"),
    ],
)
def test_common_names_are_whole_names(tmp_path, names):
    dataset = opened(table(tmp_path, NAMED + "".join(f"{n},{name},1,2,\n" for n, name in enumerate(names))))
    assert dataset.observations["label"].to_list() == list(names)
    assert dataset.taxa.select("genus", "species").null_count().row(0) == (len(names), len(names))
    assert not any("join" in remark for remark in dataset.remarks)


def test_names_that_one_label_joins_are_listed(tmp_path):
    names = ("Solanum acaule", "Solanum acaule Bitter", "Solanum acaule subsp. punae", "Solanum demissum Lindl.")
    path = table(tmp_path, NAMED + "".join(f'{n},"{name}",1,2,\n' for n, name in enumerate(names)))
    dataset = opened(path)
    assert dataset.taxa["label"].to_list() == ["Solanum acaule", "Solanum demissum"]
    joined = "1 label(s) join several names: Solanum acaule (Solanum acaule, Solanum acaule Bitter, Solanum acaule sub"
    assert any(remark.startswith(joined) for remark in dataset.remarks)
    report = CHECKS["occurrences"](release_of("occurrences", path))
    listed = next(problem for problem in report.problems if "several names" in problem.what)
    assert "Solanum acaule Bitter as Solanum acaule" in " ".join(listed.places)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("species,lat,lon", "Alba alba,50.5,10.25"),
        ("Scientific Name;Latitude;Longitude", "Alba alba Author;50,5;10,25"),
        ("taxon_name\tdecimal_latitude\tdecimal_longitude", "Alba alba\t50.5\t10.25"),
        ("genus,specificEpithet,lng,LAT", "Alba,alba,10.25,50.5"),
        ("taxon|long|lat", "Alba_alba|10.25|50.5"),
    ],
)
def test_columns_are_found_by_common_names_and_any_separator(tmp_path, header, row):
    found = opened(table(tmp_path, f"{header}\n{row}\n")).observations.select("label", "lat", "lon")
    assert found.rows() == [("Alba alba", 50.5, 10.25)]


def test_a_column_of_names_counts_only_where_there_is_nothing_better(tmp_path):
    dataset = opened(table(tmp_path, "name,species\nAnna Example,Alba alba\n"))
    assert dataset.observations["label"].to_list() == ["Alba alba"]
    with pytest.raises(InputError, match="found the columns taxon and name, expected one for name"):
        opened(table(tmp_path, "name,taxon\nAlba alba,1\n"))
    # A column called label is what a person calls it by.
    dataset = opened(table(tmp_path, "label,species\nblue morph,Alba alba\n"))
    assert dataset.observations["label"].to_list() == ["blue morph"]


def test_names_that_are_no_binomials_are_labels_where_the_table_knows_no_ranks(tmp_path):
    rows = "1,Alba aff. nigra,1,1,\n2,Alba nigra Author,1,1,\n3,Alba,1,1,\n4,,1,1,\n"
    dataset = opened(table(tmp_path, NAMED + rows))
    assert dataset.observations["label"].to_list() == ["Alba aff. nigra", "Alba nigra", "Alba", None]
    assert any("has no name, and so no label (the first: finds.csv, line 5)" in remark for remark in dataset.remarks)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("place,when", r"line 1: found the columns place, when, expected one with the name of what was seen"),
        ("species,lat", r"found the columns species, lat, expected a column for lon beside 'lat'"),
        ("species,lat,latitude,lon", r"found the columns latitude and lat, expected one for lat\. State which one"),
        ("species,date,observation date", "the columns date and observation date, expected one for date"),
    ],
)
def test_columns_that_are_missing_or_ambiguous_are_refused_with_what_was_found(tmp_path, header, sentence):
    with pytest.raises(InputError, match=sentence):
        opened(table(tmp_path, f"{header}\n{','.join('1' for _ in header.split(','))}\n"))


def test_settings_beside_the_table_state_what_cannot_be_found(tmp_path):
    path = table(tmp_path, "nr;kind of animal;north;east;when\n1;Blue one L.;50,5;10,25;01/02/2020\n", "b.csv")
    table(tmp_path, "x\n", "a.csv")
    with pytest.raises(InputError, match=r"the tables a\.csv, b\.csv, expected one\. Name the file itself"):
        opened(tmp_path)
    (tmp_path / "occurrences.toml").write_text(
        'file = "b.csv"\ndate_format = "%d/%m/%Y"\n[columns]\nlabel = "kind of animal"\nlat = "north"\nlon = "east"\n'
        'date = "when"\nid = "nr"\n'
    )
    for root in (tmp_path, path):
        row = opened(root).observations.select("observation_id", "label", "date", "lat", "lon").row(0)
        assert row == ("1", "Blue one L.", datetime.date(2020, 2, 1), 50.5, 10.25)
    # What is stated about one table does not hold for another.
    with pytest.raises(InputError, match="found the columns x, expected one with the name"):
        opened(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("seperator = ';'", r"the setting 'seperator', expected one that there is\. Did you mean separator"),
        ("separator = 5", "separator = 5, expected text"),
        ("separator = '::'", "separator = '::', expected one ASCII character"),
        ("encoding = 'klingon'", "encoding = 'klingon', expected one that is known"),
        ("[columns]\nlatitude = 'lat'", "the role 'latitude', expected another"),
        (
            "[columns]\nlat = 'north'",
            r"the columns id, species, lat, lon, date, expected a column 'north'\. occurrences",
        ),
        ("separator =", "no TOML"),
    ],
)
def test_settings_that_are_not_known_are_refused(tmp_path, settings, sentence):
    table(tmp_path, NAMED + "1,Alba alba,1,1,\n")
    (tmp_path / "occurrences.toml").write_text(settings)
    with pytest.raises(InputError, match=sentence):
        opened(tmp_path)


def test_other_encodings_and_compressions_are_read(tmp_path):
    text = (NAMED + "1,Alba álba,1,1,2020-01-01\n").encode("cp1252")
    (tmp_path / "finds.csv").write_bytes(text)
    with pytest.raises(InputError, match=r'line 2: found bytes that are not UTF-8.*encoding = "cp1252"'):
        opened(tmp_path)
    (tmp_path / "occurrences.toml").write_text('encoding = "cp1252"')
    plain = opened(tmp_path).observations
    (tmp_path / "finds.csv").unlink()
    (tmp_path / "finds.csv.xz").write_bytes(lzma.compress(text))
    assert opened(tmp_path).observations.equals(plain) and plain["label"].to_list() == ["Alba álba"]
    (tmp_path / "finds.csv.xz").write_bytes(lzma.compress(text)[:-20])
    with pytest.raises(InputError, match=r"a damaged \.xz file"):
        opened(tmp_path)


def test_utf16_is_told_by_its_first_bytes(tmp_path):
    (tmp_path / "finds.csv").write_bytes((NAMED + "1,Alba álba,1,1,2020-01-01\n").encode("utf-16"))
    assert opened(tmp_path).observations["label"].to_list() == ["Alba álba"]


def test_places_that_cannot_be_are_emptied_and_listed_and_never_swapped(tmp_path):
    rows = "1,A b,95,10,\n2,A b,10,181,\n3,A b,0,0,\n4,A b,x,10,\n5,A b,,10,\n6,A b,120,50,\n7,A b,NA,NA,\n8,A b,1,2,\n"
    dataset = opened(table(tmp_path, NAMED + rows))
    assert dataset.observations.drop_nulls("lat").select("observation_id", "lat", "lon").rows() == [("8", 1.0, 2.0)]
    told = "\n".join(dataset.remarks)
    for sentence in (
        "2 row(s): latitude and longitude are swapped, by their size; both are left empty (the first: finds.csv, line",
        "1 row(s): coordinates are out of range and left empty (the first: finds.csv, line 3: 10, 181)",
        "1 row(s): coordinates are 0, 0, which stands for nothing; both are left empty (the first: finds.csv, line 4",
        "1 row(s): lat is no number and is left empty (the first: finds.csv, line 5: x)",
        "2 row(s): latitude or longitude is missing; both are left empty (the first: finds.csv, line 5: x, 10)",
    ):
        assert sentence in told


def test_a_country_is_not_taken_for_nothing(tmp_path):
    found = opened(table(tmp_path, "id,species,country\n1,Alba alba,NA\n2,NA,DK\n")).observations
    assert found.select("label", "country").rows() == [("Alba alba", "NA"), (None, "DK")]


def test_rows_that_share_an_id_are_one_record_only_where_they_agree(tmp_path):
    rows = "1,A b,1,1,2020\n1,A b,1,1,2020\n1,A c,1,1,2020\n,A b,1,1,2020\n"
    dataset = opened(table(tmp_path, NAMED + rows))
    assert dataset.observations.select("observation_id", "label").rows() == [("1", "A b"), ("finds.csv:5", "A b")]
    told = "\n".join(dataset.remarks)
    assert "1 row(s): repeats an earlier row and counts once (the first: finds.csv, line 3: 1)" in told
    assert "another name, place or date, and is left out (the first: finds.csv, line 4: 1)" in told


def test_photos_are_found_by_path_by_id_and_by_the_rows_of_an_archive(tmp_path):
    text = "observation_id,species,file,license\no1,Alba alba,sub/a.jpg,CC0\no1,Alba alba,b.PNG,CC-BY\n"
    text += "o2,Alba nigra,gone.jpg,CC0\nhttps://x.example/o3,Alba nigra,,\n../o4,Alba nigra,../../up.jpg,\n"
    table(tmp_path / "t", text)
    for name in (
        "sub/a.jpg",
        "photos/b.PNG",
        "photos/o2_2.jpg",
        "photos/o3-1.jpg",
        "photos/other.jpg",
        "photos/o2.txt",
    ):
        save_photo(tmp_path / "t" / name, (1, 2, 3), 1) if not name.endswith("txt") else (tmp_path / "t" / name).touch()
    save_photo(tmp_path / "up.jpg", (1, 2, 3), 1)
    dataset = opened(tmp_path / "t" / "finds.csv")
    assert dataset.media.select("observation_id", "path", "license").rows() == [
        ("o1", "sub/a.jpg", "CC0"),
        ("o1", "photos/b.PNG", "CC-BY"),
        ("o2", "photos/o2_2.jpg", None),
        ("https://x.example/o3", "photos/o3-1.jpg", None),
    ]
    assert dataset.read_medium("a.jpg") == (tmp_path / "t/sub/a.jpg").read_bytes()
    assert any(
        "2 row(s): names a photo that is not there (the first: finds.csv, line 4: gone.jpg)" in r
        for r in dataset.remarks
    )


def test_photos_of_an_archive_have_the_license_of_their_own_row_and_open_from_a_zip(tmp_path):
    root = tmp_path / "a"
    shutil.copytree(HERE / "archive", root)
    save_photo(root / "photos" / "log.jpg", (1, 2, 3), 1)
    save_photo(root / "photos" / "n-4.jpg", (3, 2, 1), 2)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in sorted(path for path in root.rglob("*") if path.is_file()):
            archive.write(file, file.relative_to(root))
    for dataset in (opened(root), opened(tmp_path / "a.zip")):
        assert dataset.media.select("media_id", "observation_id", "license", "rights_holder").rows() == [
            ("log.jpg", "n-1", "http://creativecommons.org/licenses/by-nc/4.0/", "Anna Example"),
            ("n-4.jpg", "n-4", "http://creativecommons.org/licenses/by/4.0/", "Bo Example"),
        ]
        assert dataset.read_medium("n-4.jpg") == (root / "photos/n-4.jpg").read_bytes()
        assert "1 photo(s) have an address and no file here; nothing was downloaded." in dataset.remarks


def test_subsets_hold_what_a_benchmark_needs(tmp_path):
    root = photos_and_places(tmp_path)
    assert [len(opened(root, subset).observations) for subset in ("all", "places", "photos")] == [25, 25, 22]
    table(tmp_path / "b", NAMED + "1,A b,1,1,\n2,A c,,,\n")
    assert opened(tmp_path / "b", "places").taxa["label"].to_list() == ["A b"]
    with pytest.raises(InputError, match="no record with a photo, expected at least one"):
        opened(tmp_path / "b", "photos")
    with pytest.raises(MisuseError, match=r"no subset called 'foto'"):
        opened(tmp_path / "b", "foto")
    with pytest.raises(InputError, match="3 photos have an address only: save them as photos/<id>"):
        opened(HERE / "inaturalist.csv", "photos")


@pytest.mark.parametrize("name", ["occurrences", "occurrences/places"])
def test_parts_are_drawn_by_record_and_records_without_a_label_are_unlabeled(tmp_path, name):
    benchmark = fieldmark.benchmark(name)
    cut = open_benchmark(benchmark, open_release(benchmark, photos_and_places(tmp_path)))
    parts = {part: set(table["observation_id"]) for part, table in cut.items.items()}
    assert parts["unlabeled"] == {"99"} and all(parts[one] for one in ("train", "val", "test"))
    assert sum(map(len, parts.values())) == len(set().union(*parts.values())) == (22 if name == "occurrences" else 25)
    shown = set(cut.view.train.items.columns)
    assert {"lat", "lon", "date"} <= shown and not shown & {"label", "scientific_name", "observer", "license", "genus"}


def test_other_things_than_tables_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"found no table, expected meta\.xml"):
        opened(tmp_path / "empty")
    (tmp_path / "a.zip").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="a file that is no zip"):
        opened(tmp_path / "a.zip")
    with pytest.raises(InputError, match="an empty file, expected a table"):
        opened(table(tmp_path, " \n", "blank.csv"))
    with pytest.raises(InputError, match="no record, expected at least one"):
        opened(table(tmp_path, NAMED, "header.csv"))
    with pytest.raises(InputError, match="no such directory, expected the folder of a release"):
        opened(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="a file, expected the folder of a release"):
        fieldmark.dataset("folder", tmp_path / "header.csv")


def test_what_a_table_says_of_a_photo_counts_more_than_what_the_photo_is_called(tmp_path):
    save_photo(tmp_path / "photos" / "1-2.jpg", (1, 2, 3), 1)
    dataset = opened(table(tmp_path, "id,species,file\n1,Alba alba,\n2,Alba nigra,1-2.jpg\n"))
    assert dataset.media["observation_id"].to_list() == ["2"] and len(dataset.remarks) == 1


def test_addresses_in_a_column_of_paths_are_counted_as_addresses(tmp_path):
    dataset = opened(table(tmp_path, "id,species,image\n1,Alba alba,https://x.example/a.jpg\n2,Alba alba,\n"))
    assert "1 photo(s) have an address and no file here; nothing was downloaded." in dataset.remarks


def test_a_photo_that_two_records_name_stays_with_the_first(tmp_path):
    save_photo(tmp_path / "a.jpg", (1, 2, 3), 1)
    dataset = opened(table(tmp_path, "id,species,file\n1,Alba alba,a.jpg\n2,Alba nigra,a.jpg\n"))
    assert dataset.media.select("media_id", "observation_id").rows() == [("a.jpg", "1")]
    assert any("named by two records, of which the first keeps it (the first: a.jpg)" in one for one in dataset.remarks)
