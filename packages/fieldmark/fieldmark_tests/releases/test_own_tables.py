"""Tables beside people's photos, in the forms that people save them in."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.releases import Dataset, open_dataset

FILES = ("fox/1.jpg", "fox/2.jpg", "lynx/3.jpg")


@pytest.fixture
def root(tmp_path) -> Path:
    """Three files in the folders of two classes; nothing here opens them."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def rows(dataset: Dataset) -> dict[str, dict[str, object]]:
    return {row["path"]: row for row in dataset.to_frame().iter_rows(named=True)}


def remarks(dataset: Dataset) -> str:
    return " ".join(dataset.remarks)


CSV = "file,observation,date,latitude,longitude\nfox/1.jpg,a,2021-09-30,46.5,7.5\nfox/2.jpg,a,2021-09-30,46.5,7.5\n"
SEMICOLONS = CSV.replace(",", ";").replace(".5", ",5")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("observations.csv", CSV.encode("utf-8-sig")),
        ("Observations.CSV", CSV.replace("\n", "\r\n").encode()),
        ("observations.tsv", CSV.replace(",", "\t").encode()),
        ("observations.csv", SEMICOLONS.encode()),
        ("observations.txt", CSV.encode("utf-16")),
        ("observations.csv", CSV.encode("utf-16-le")),
        ("observations.csv.gz", gzip.compress(SEMICOLONS.encode(), mtime=0)),
        ("metadata.csv", CSV.encode()),
    ],
)
def test_a_table_is_read_in_any_form(root, name, data):
    (root / name).write_bytes(data)
    read = rows(open_dataset("folder", root))
    assert read["fox/1.jpg"]["observation_id"] == read["fox/2.jpg"]["observation_id"] == "a"
    assert (read["fox/2.jpg"]["date"], read["fox/2.jpg"]["lon"]) == (datetime.date(2021, 9, 30), 7.5)
    assert read["lynx/3.jpg"]["date"] is None


def test_a_parquet_table_is_read(root):
    table = {"file": list(FILES), "specimen": [7, 7, 8], "date": [datetime.date(2021, 9, 30), None, None]}
    pl.DataFrame({**table, "lat": [46.5, None, None], "lon": [7.5, None, None]}).write_parquet(
        root / "observations.parquet"
    )
    dataset = open_dataset("folder", root)
    assert rows(dataset)["fox/2.jpg"]["observation_id"] == "7" and rows(dataset)["fox/1.jpg"]["lat"] == 46.5
    assert "observation from `specimen`" in remarks(dataset)


def test_text_that_is_not_utf8_is_read_as_windows_wrote_it_and_shown(root):
    (root / "observations.csv").write_bytes("file;habitat\nfox/1.jpg;forêt\n".encode("cp1252"))
    dataset = open_dataset("folder", root)
    assert rows(dataset)["fox/1.jpg"]["habitat"] == "forêt"
    assert "as Windows-1252, since it is not UTF-8; line 2 is then: fox/1.jpg;forêt" in remarks(dataset)


def test_columns_go_by_the_names_of_darwin_core(root):
    (root / "observations.csv").write_text(
        "filename,occurrenceID,eventDate,decimalLatitude,decimalLongitude\nfox/1.jpg,a,2021-09-30T10:00Z,46.5,7.5\n"
    )
    dataset = open_dataset("folder", root)
    read = rows(dataset)["fox/1.jpg"]
    assert (read["observation_id"], read["lat"], str(read["date"])) == ("a", 46.5, "2021-09-30")
    assert "observation from `occurrenceID`" in remarks(dataset) and "latitude from `decimalLatitude`" in remarks(
        dataset
    )


@pytest.mark.parametrize(
    "written",
    ["30.9.2021", "30/09/2021", "9/30/21", "30 Sep 2021", "September 30, 2021", "20210930", "2021:09:30 08:01:59"],
)
def test_dates_are_read_as_people_and_cameras_write_them(root, written):
    (root / "observations.tsv").write_text(f"file\tdate\nfox/1.jpg\t{written}\n")
    assert rows(open_dataset("folder", root))["fox/1.jpg"]["date"] == datetime.date(2021, 9, 30)


def test_a_date_without_a_day_counts_as_unknown_and_is_said(root):
    (root / "observations.csv").write_text("file,date\nfox/1.jpg,2021\nfox/2.jpg,May 2021\nlynx/3.jpg,NA\n")
    dataset = open_dataset("folder", root)
    assert dataset.observations["date"].null_count() == 3
    assert "2 date(s) in `observations.csv` have no day and count as unknown: 2021, May 2021." in remarks(dataset)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("file,date\nfox/1.jpg,03/04/2021\n", "line 2: found '03/04/2021' as date, .* not tell days from months"),
        ("file,date\n\nfox/1.jpg,2999-01-01\n", r"line 3: found '2999-01-01' as date \(a date lies in the future\)"),
        (
            "file,lat,lon\nfox/1.jpg,146.5,7.5\n",
            r"line 2: found '146.5, 7.5' as place \(latitude and longitude are swapped",
        ),
        ("file,lat,lon\nfox/1.jpg,46.5,\n", "line 2: found '46.5, [?]' as place .latitude or longitude is missing"),
        ("file,lat,lon\nfox/1.jpg,46N,7.5\n", r"line 2: found '46N' as place \(lat is no number"),
        ("file,lat\nfox/1.jpg,46.5\n", "line 1: .* expected a column 'longitude'"),
        ("file,lat,latitude ,lon\nfox/1.jpg,1,1,1\n", None),
        (
            "file,Lat,decimalLatitude,lon\nfox/1.jpg,1,1,1\n",
            "found the columns Lat and decimalLatitude, expected one for",
        ),
        ("file,date\nfox/1.jpg\n", "line 2: found 1 field, expected 2"),
        ("file\nfox/1.jpg,2021\n", "line 2: found 'fox/1.jpg,2021', which is not there"),
        ("file,date\nfox/1.jpg,2021-01-01,x\n", "line 2: found 3 fields, expected 2"),
        ("file,file\nfox/1.jpg,a\n", "line 1: found two columns 'file'"),
        ("file,date\n,2021-01-01\n", "line 2: found no file"),
        ("file\n4.jpg\n5.jpg\n", r"line 2: found '4.jpg', which is not there, .*\(1 more such lines"),
        ("file\n1.jpg\nfox/1.jpg\n", "line 3: found 'fox/1.jpg' again"),
        (
            "file,label\nfox/1.jpg,fox\nfox/2.jpg,lynx\n",
            "line 3: found the label 'lynx' for a photo in the folder 'fox'",
        ),
        ("file,split\nfox/1.jpg,spare\n", "line 2: found the part 'spare', expected train, val or test"),
        ("file,split\nfox/1.jpg,train\n", r"found no line for 2 photo\(s\) \(fox/2.jpg, lynx/3.jpg\)"),
        ("", "found an empty file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(root, table, sentence):
    (root / "observations.csv").write_text(table)
    if sentence is None:
        open_dataset("folder", root)
        return
    with pytest.raises(InputError, match=sentence):
        open_dataset("folder", root)


def test_a_damaged_table_is_refused(root):
    (root / "observations.csv.gz").write_bytes(gzip.compress(CSV.encode() * 100, mtime=0)[:-20])
    with pytest.raises(InputError, match=r"found a damaged .gz file, expected a table. Was the download cut short"):
        open_dataset("folder", root)


def test_one_table_in_two_forms_is_refused(root):
    for name in ("observations.csv", "observations.tsv"):
        (root / name).write_text("file\nfox/1.jpg\n")
    with pytest.raises(InputError, match=r"found the tables observations.csv and observations.tsv, expected one"):
        open_dataset("folder", root)


@pytest.mark.parametrize(
    "written", ["fox/1.jpg", "1.jpg", "1", r"C:\photos\fox\1.JPG", "./fox/1.jpg", "photos/fox/1.jpg"]
)
def test_a_photo_is_named_by_its_path_or_the_end_of_it(root, written):
    (root / "observations.csv").write_text(f"file,habitat\n{written},bog\n")
    assert rows(open_dataset("folder", root))["fox/1.jpg"]["habitat"] == "bog"


def test_a_name_of_two_photos_is_refused(root):
    (root / "lynx/1.jpg").touch()
    (root / "observations.csv").write_text("file\n1.jpg\n")
    with pytest.raises(InputError, match=r"line 2: found '1.jpg', which 2 photos are called \(fox/1.jpg, lynx/1.jpg\)"):
        open_dataset("folder", root)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "specimens.xlsx",
            "`specimens.xlsx` is not read; save it as CSV, as observations.csv or taxa.csv or boxes.csv.",
        ),
        ("finds.csv", "`finds.csv` is not read; tables that are: observations.csv, taxa.csv, boxes.csv."),
        ("plants.csv", "`plants.csv` is not read;"),
        ("clips.json.gz", "`clips.json.gz` is not read;"),
    ],
)
def test_a_table_that_nobody_reads_is_named(root, name, sentence):
    (root / "observations.csv").write_text("file\nfox/1.jpg\n")
    (root / name).write_bytes(b"x")
    (root / "README.txt").write_bytes(b"x")
    assert [remark for remark in open_dataset("folder", root).remarks if remark.startswith(sentence)]
    assert "README" not in remarks(open_dataset("folder", root))


@pytest.mark.parametrize("inner", ["", "images/", "images/1/"])
def test_a_table_tells_the_classes_and_parts_of_photos_in_no_folder_of_a_class(tmp_path, inner):
    (tmp_path / inner).mkdir(exist_ok=True, parents=True)
    lines = ["id;species;split"]
    for number, (label, part) in enumerate([("fox", "Train"), ("lynx", "training"), ("fox", "valid"), ("", "test")]):
        (tmp_path / inner / f"{number}.JPG").touch()
        lines.append(f"{number};{label};{part}")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    dataset = open_dataset("folder", tmp_path)
    table = dataset.to_frame().sort("media_id")
    assert table["label"].to_list() == ["fox", "lynx", "fox", None]
    assert table["parts"].explode().to_list() == ["train", "train", "val", "test"]
    assert "The classes come from the column `species` of `labels.csv`." in remarks(dataset)


def test_a_photo_without_a_label_is_refused_where_a_table_tells_the_classes(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.jpg").touch()
    (tmp_path / "labels.csv").write_text("file,label\n0.jpg,fox\n1.jpg,lynx\n")
    with pytest.raises(InputError, match=r"labels.csv: found no label for 1 photo\(s\) \(2.jpg\)"):
        open_dataset("folder", tmp_path)


def test_other_names_for_the_classes_of_folders_are_said_not_to_be_read(root):
    (root / "labels.csv").write_text("file,label\nfox/1.jpg,Vulpes vulpes\nlynx/3.jpg,Lynx lynx\n")
    dataset = open_dataset("folder", root)
    assert dataset.taxa["label"].to_list() == ["fox", "lynx"]
    assert "the column `label` of `labels.csv`, which calls them otherwise, is not read" in remarks(dataset)


def test_a_finer_class_beside_the_folders_is_a_column_and_no_label(root):
    (root / "observations.csv").write_text("file,species\nfox/1.jpg,Vulpes vulpes\nfox/2.jpg,Vulpes lagopus\n")
    dataset = open_dataset("folder", root)
    assert dataset.taxa["label"].to_list() == ["fox", "lynx"] and "species" in dataset.observations.columns


def test_the_table_of_classes_goes_by_the_column_that_names_them(root):
    (root / "species.csv").write_text("Species;Family;POISONOUS;toxin\nFox;Canidae;no;none\nwolf;Canidae;no;\n")
    dataset = open_dataset("folder", root)
    assert dataset.taxa.to_dicts()[0] == {"label": "fox", "family": "Canidae", "species": "Fox", "poisonous": False}
    for said in ("label from `Species`", "nothing of 1 class(es): lynx", "Not read of `species.csv`: toxin"):
        assert said in remarks(dataset)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            "label,poisonous\nfox,no\n\nlynx,perhaps\n",
            "taxa.csv, line 4: found 'perhaps' as poisonous, expected true or",
        ),
        ("label,family\nfox,x\nFOX,y\n", "taxa.csv, line 3: found 'FOX' again, expected one line per class"),
        ("name,family\nowl,x\n", "taxa.csv, line 1: found the columns name, family, expected a column 'label'"),
    ],
)
def test_a_wrong_table_of_classes_is_refused_with_its_line(root, table, sentence):
    (root / "taxa.csv").write_text(table)
    with pytest.raises(InputError, match=sentence):
        open_dataset("folder", root)


def test_columns_called_as_those_of_a_dataset_do_not_take_their_place(root):
    (root / "observations.csv").write_text("file,path,line,media_id\nfox/1.jpg,x,y,z\n")
    read = rows(open_dataset("folder", root))["fox/1.jpg"]
    assert (read["media_id"], read["path as written"], read["line as written"]) == ("1.jpg", "x", "y")
