"""SnakeCLEF: what the reader takes, what it refuses, and what a check says."""

from __future__ import annotations

from pathlib import Path

import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS, CheckReport
from fieldmark.storage.release import Release
from fieldmark_tests.fixtures import save_photo

CLASSES = "scientific_name\nnaja-pallida\nthamnophis-sirtalis\n"
TRAIN = (
    "scientific_name,country,hashed_id,continent\n"
    "thamnophis-sirtalis,Canada,aa01,North America\n"
    "thamnophis-sirtalis,UNKNOWN,aa02,UNKNOWN\n"
    "naja-pallida,Kenya,aa03,Africa\n"
)
VAL = "scientific_name,country,hashed_id\nnaja-pallida,Kenya,bb01\n"
TEST = "hashed_id,country,continent\ncc01,UNKNOWN,Africa\n"
PRESENCE = '"",canada,kenya,iceland\nNaja pallida,0,1,0\nThamnophis sirtalis,1,0,0\n'
ROWS_2021 = (
    "binomial,country,UUID,class_id,poisonous,X,Y,height,width\n"
    "Naja pallida,unknown,u1,7,1,0.5,0.5,0.4,0.2\nBoa constrictor,Mexico,u2,8,0,0.5,0.5,1.2,1.0\n"
)


def write(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / f"{name}.csv").write_text(content)
    return root


@pytest.fixture
def root(tmp_path):
    made = write(
        tmp_path / "release", round4_classes=CLASSES, train_labels=TRAIN, validate_labels=VAL, test_metadata=TEST,
        species_to_country=PRESENCE, venomous="scientific_name,venomous\nnaja-pallida,1\nthamnophis-sirtalis,0\n",
    )  # fmt: skip
    for photo in ("train_images/aa01", "train_images/aa02", "train_images/aa03", "validate_images/bb01"):
        save_photo(made / f"{photo}.jpg", (90, 90, 90), seed=len(photo))
    save_photo(made / "test_images" / "cc01.jpg", (10, 10, 10), seed=1)
    return made


def said(root: Path, name: str = "snakeclef-2020") -> tuple[CheckReport, dict[str, tuple[str, ...]]]:
    report = CHECKS[name](Release(root))
    return report, {f"{one.severity}: {one.what}": one.places for one in report.problems}


def test_unknown_places_are_missing_values_and_slugs_are_labels(root):
    data = open_dataset("snakeclef-2020", root)
    rows = data.observations.sort("observation_id").select("observation_id", "label", "country", "continent").rows()
    assert rows == [
        ("aa01", "thamnophis-sirtalis", "Canada", "North America"),
        ("aa02", "thamnophis-sirtalis", None, None),
        ("aa03", "naja-pallida", "Kenya", "Africa"),
        ("bb01", "naja-pallida", "Kenya", None),
        ("cc01", None, None, "Africa"),
    ]
    assert data.taxa.select("label", "poisonous", "genus", "species").rows() == [
        ("naja-pallida", True, "Naja", "Naja pallida"),
        ("thamnophis-sirtalis", False, "Thamnophis", "Thamnophis sirtalis"),
    ]
    assert dict(data.media.select("media_id", "path").iter_rows())["bb01"] == "validate_images/bb01.jpg"
    assert "Labels are not published for test" in " ".join(data.remarks)


def test_the_2021_tables_open_with_venom_and_boxes(tmp_path):
    data = open_dataset("snakeclef-2021", write(tmp_path, subset=ROWS_2021, microval="binomial,country,UUID,source\n"
                                                "Naja pallida,Kenya,u1,flickr\n"))  # fmt: skip
    assert data.taxa.select("label", "poisonous").sort("label").rows() == [
        ("boa-constrictor", False), ("naja-pallida", True),
    ]  # fmt: skip
    one, other = data.layers["boxes"].read(["u1", "u2"])
    assert tuple(one) == (0.4, 0.3, 0.6, 0.7)
    assert tuple(other) == (0.0, 0.0, 1.0, 1.0)  # what sticks out is cut off
    first = data.observations.filter(observation_id="u1")
    assert first["country"].to_list() == ["Kenya"]  # the same photo in two tables is one row, with what either knows


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train_labels", TRAIN.replace("aa02", "aa01"), "line 3: found the id 'aa01' again"),
        ("train_labels", TRAIN.replace("naja-pallida", "naja-palida"), "line 4: found the species 'naja-palida'"),
        ("train_labels", TRAIN.replace("aa03", "../aa"), "line 4: found '../aa' as an id"),
        ("train_labels", TRAIN.replace("naja-pallida", ""), "line 4: found no species"),
        ("round4_classes", CLASSES + "naja-pallida\n", "line 4: found 'naja-pallida' again"),
        ("validate_labels", VAL.replace("bb01", "aa01"), "found the photo aa01 as thamnophis-sirtalis, and as naja"),
        ("boxes", "photo,x,y,width,height\ntrain_images/zz.jpg,1,1,2,2\n", "line 2: found 'train_images/zz.jpg'"),
    ],
)
def test_bad_lines_are_named(root, name, content, message):
    (root / f"{name}.csv").write_text(content)
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(".", r"\.")):
        open_dataset("snakeclef-2020", root)


def test_what_is_no_release_says_what_would_be_one(tmp_path, root):
    with pytest.raises(InputError, match=r"found no table of photos.*train_labels\.csv"):
        open_dataset("snakeclef-2020", write(tmp_path / "empty"))
    with pytest.raises(InputError, match="found tables of 2020"):
        open_dataset("snakeclef-2021", root)
    with pytest.raises(MisuseError, match="no subset"):
        open_dataset("snakeclef-2020", root, "mini")


def test_check_counts_beside_the_overview_and_names_its_contradiction(root):
    report, problems = said(root)
    counts = {part.part: part for part in report.counts}
    assert report.sound
    assert (counts["train"].found.photos, *(one.photos for one in counts["train"].published.values())) == (3, 245_185)
    assert counts["classes"].found.countries == 2
    assert next(iter(counts["classes"].published.values())).countries == 145
    words = " ".join(problems)
    assert "783 species in the data and 973 in the test set" in words
    assert "12,201 photos of the most frequent species (thamnophis-sirtalis), 17 of the least (naja-pallida)" in words
    assert "here thamnophis-sirtalis has 2 and naja-pallida 1" in words
    assert "about 80% have a country; here 60.0% of 5 photos" in words
    assert problems["note: a country of the table of presence has no species"] == ("iceland",)


def test_check_finds_lost_photos_strays_and_leaks(root):
    (root / "train_images" / "aa01.jpg").rename(root / "train_images" / "zz01.jpg")
    (root / "validate_labels.csv").write_text(VAL + "naja-pallida,Kenya,aa03\n")
    report, problems = said(root)
    assert not report.sound
    assert problems["error: an id has no photo"] == ("train_images/aa01.jpg",)
    assert problems["warning: a photo has no line in any table"] == ("train_images/zz01.jpg",)
    assert problems["error: a photo is in two parts"] == ("aa03: train and val",)


def test_check_names_species_that_the_table_of_presence_lacks(root):
    (root / "species_to_country.csv").write_text(PRESENCE.replace("Naja pallida", "Naja mossambica"))
    _, problems = said(root)
    assert problems["warning: the table of presence lacks 1 species, maybe under another name"] == ("naja-pallida",)


def test_without_a_word_about_venom_no_venom_is_scored_and_with_one_it_is(root, tmp_path):
    (root / "test_labels.csv").write_text("hashed_id,scientific_name\ncc01,naja-pallida\n")
    with_venom = fieldmark.fit("snakeclef-2020", root, "frequent", tmp_path / "with")
    (root / "venomous.csv").unlink()
    without = fieldmark.fit("snakeclef-2020", root, "frequent", tmp_path / "without")
    assert with_venom.scorecard is not None and without.scorecard is not None
    assert set(with_venom.scorecard.metrics) - set(without.scorecard.metrics) == {"venom_score", "venom_cost"}
