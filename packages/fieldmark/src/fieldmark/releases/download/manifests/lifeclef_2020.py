"""The four challenges of LifeCLEF 2020: PlantCLEF, BirdCLEF, GeoLifeCLEF and SnakeCLEF.

All of them were held on AIcrowd, which gives the files to those who have an account and have agreed to the rules; no
address works without a login, so that nothing can be fetched here.

* No checksum and no size is published for any file.
* The names of most archives are not documented. Parts go by what they hold, and count as in place as soon as the
  folder or table that they unpack to is there.
* Ids of GeoLifeCLEF were given anew on 28 April 2020: tables that were saved before do not fit the patches.
"""

from __future__ import annotations

from fieldmark.releases.download.manifest import Manifest, ReleaseFile


def _page(challenge: str) -> str:
    return f"https://www.aicrowd.com/challenges/{challenge}"


def _by_hand(challenge: str, further: str = "") -> str:
    steps = "make a free account, press Participate and agree to the rules, then download from its tab Resources."
    return f"Open {_page(challenge)}, {steps}{further}"


def _part(name: str, *tags: str, creates: tuple[str, ...]) -> ReleaseFile:
    return ReleaseFile(name=name, tags=tags, creates=creates)


def _table(name: str, *tags: str) -> ReleaseFile:
    return ReleaseFile(name=name, tags=tags)


TRAINING = "PlantCLEF2020TrainingData"
PLANTCLEF_2020 = Manifest(
    name="plantclef-2020",
    by_hand=_by_hand("lifeclef-2020-plant"),
    layout="""
ROOT/                                          or ROOT/PlantCLEF2020TrainingData/, as the archive unpacks
  herbarium/<ClassId>/<id>.jpg, <id>.xml       321,270 sheets
  herbarium_photo_associations/<ClassId>/      sheets and field photos of the same plants, mixed
  photo/<ClassId>/<id>.jpg, <id>.xml           field photos
  test/<id>.jpg, <id>.xml                      3,186 field photos to name
""",
    files=(
        _part("herbarium", "train", creates=("herbarium", f"{TRAINING}/herbarium")),
        _part(
            "herbarium_photo_associations",
            "train",
            creates=("herbarium_photo_associations", f"{TRAINING}/herbarium_photo_associations"),
        ),
        _part("photo", "train", creates=("photo", f"{TRAINING}/photo")),
        _part("test-photos", "test", creates=("test", f"{TRAINING}/test")),
    ),
)

ADDITIONAL = "BirdCLEF2020_Train_Additional_Data"
CODES = "species_names_to_codes.txt"
BIRDCLEF_2020 = Manifest(
    name="birdclef-2020",
    by_hand=_by_hand(
        "lifeclef-2020-bird-monophone",
        " Later annotations of three of its four sites are public at https://zenodo.org (records 7018484, 7525805 and "
        "7079124); they may differ from the test of 2020.",
    ),
    layout="""
ROOT/
  train/audio/<species>/XC1234.mp3             focal recordings; `audio` may be left out
  train/species_names_to_codes.txt             name,code; also at the root or in BirdCLEF2020_Train_Additional_Data
  val/PER54_20190116.wav                       soundscapes with labels, which may not be trained on
  val/ground_truth.csv                         MediaId;ClassId;hh:mm:ss-hh:mm:ss, or scripts/perfect_run.csv
  test/...                                     as val, without labels
""",
    files=(
        _part("focal-recordings", "train", creates=("train", "BirdCLEF2020_Train")),
        _part(CODES, "train", creates=(f"train/{CODES}", CODES, f"{ADDITIONAL}/{CODES}")),
        _part("validation-soundscapes", "val", creates=("val", "validation", "BirdCLEF2020_Validation")),
        _part("test-soundscapes", "test", creates=("test", "BirdCLEF2020_Test")),
    ),
)

GEOLIFECLEF_2020 = Manifest(
    name="geolifeclef-2020",
    by_hand=_by_hand(
        "lifeclef-2020-geo", " The README of https://github.com/maximiliense/GLC describes the tables and the rasters."
    ),
    usual=("tables", "rasters", "patches"),
    layout="""
ROOT/
  occurrences_{fr,us}_{train,test}.csv         id;lat;lon;species_id, as they are since 28 April 2020
  species_metadata.csv                         species_id;GBIF_species_id;GBIF_species_name
  rasters/<name>/<name>_{FR,USA}.tif           27 layers of climate and soil
  patches/<CD>/<AB>/<XXXXABCD>.npy             256 x 256 x 5, and <XXXXABCD>_alti.npy
""",
    files=(
        _table("occurrences_fr_train.csv", "tables", "train", "france"),
        _table("occurrences_us_train.csv", "tables", "train", "usa"),
        _table("occurrences_fr_test.csv", "tables", "test", "france"),
        _table("occurrences_us_test.csv", "tables", "test", "usa"),
        _table("species_metadata.csv", "tables"),
        _part("environmental-rasters", "rasters", creates=("rasters",)),
        _part("remote-sensing-patches", "patches", creates=("patches",)),
    ),
)

SNAKECLEF_2020 = Manifest(
    name="snakeclef-2020",
    by_hand=_by_hand("snake-species-identification-challenge", " The files are those of round 4."),
    usual=("tables", "train"),
    layout="""
ROOT/
  round4_classes.csv                           783 species as slugs, in the order of a run's columns
  train_labels.csv, train_images/<hashed_id>.jpg
  validate_labels.csv, validate_images/        where they are given
  test_metadata.csv, test_images/              hashed_id,country,continent; programs alone were shown them
""",
    files=(
        _table("round4_classes.csv", "tables"),
        _table("train_labels.csv", "tables", "train"),
        _part("train_images", "photos", "train", creates=("train_images",)),
        _part("validate_images", "photos", "val", creates=("validate_images", "validate_images_small")),
        _part("test_images", "photos", "test", creates=("test_images",)),
    ),
)
