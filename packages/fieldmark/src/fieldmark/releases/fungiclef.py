"""FungiCLEF 2022 to 2024 as their tables describe them. 2025 is the few-shot set of FungiTastic.

```
ROOT/  (2022)
  DF20-train_metadata.csv, DF20-val_metadata.csv     image_path,class_id and what is known of the find
  FungiCLEF2022_test_metadata.csv                    ObservationId,filename,countryCode,Location_lvl0,...,Habitat
  DF20/ | DF20_300/ | DF20-300px/DF20_300/           photos of train and val
  DF21/ | DF21_300/ | DF21-images-300/DF21_300/      photos of test
ROOT/  (2023, 2024)                                  tables also in metadata/
  FungiCLEF2023_{train,val,public_test}_metadata_PRODUCTION.csv
                                                     observationID,image_path,class_id,Habitat,Substrate,...
  DF20/, DF21/ (or DF20_300/, DF21_300/)             photos of train; photos of val and test
  poison_status_list.csv                             class_id,poisonous
```

Quirks:

- The names of files and columns come from the code of participants: the pages are behind a registration.
- Unknown species have the class -1, in val of 2023 and in test. Val of 2022 has known species alone.
- Tables of 2022 to learn from name no observation: there the number in front of the file name does.
- `Location_lvl2` of test is `level1Name` of train, `Location_lvl1` is `level2Name`, `Location_lvl0` is `locality`.
"""

from __future__ import annotations

from functools import partial

from fieldmark.releases.checks import CHALLENGE_PAGE, Count, ReleaseCheck
from fieldmark.releases.citations import working_note
from fieldmark.releases.photo_tables import FlagList, PhotoTable, TableLayout, open_photo_tables
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World

COLUMNS = {
    "observation_id": ("observationID", "ObservationId", "observation_id", "gbifID"),
    "photo": ("image_path", "filename"),
    "label": ("class_id",),
    "date": ("eventDate",),
    "lat": ("Latitude", "latitude"),
    "lon": ("Longitude", "longitude"),
    "habitat": ("Habitat", "habitat"),
    "substrate": ("Substrate", "substrate"),
    "meta_substrate": ("MetaSubstrate", "metaSubstrate"),
    "country": ("countryCode",),
    "region": ("level1Name", "Location_lvl2"),
    "district": ("level2Name", "Location_lvl1"),
    "locality": ("locality", "Location_lvl0"),
    "scientific_name": ("scientificName",),
    **{rank: (rank,) for rank in ("kingdom", "phylum", "class", "order", "family", "genus", "species")},
}
OLDER = ("DF20", "DF20_300", "DF20-300px/DF20_300")
NEWER = ("DF21", "DF21_300", "DF21-images-300/DF21_300")
POISONOUS = FlagList("poison_status_list.csv", "class_id", "poisonous")


def _paths(name: str) -> tuple[str, ...]:
    return name, f"metadata/{name}"


FUNGI_2022 = TableLayout(
    "fungiclef-2022",
    (
        PhotoTable("train", _paths("DF20-train_metadata.csv"), OLDER),
        PhotoTable("val", _paths("DF20-val_metadata.csv"), OLDER),
        PhotoTable("test", _paths("FungiCLEF2022_test_metadata.csv"), NEWER),
    ),
    COLUMNS,
    observation_in=r"^(\d{6,})-\d+\.",
    flags=POISONOUS,
)
FUNGI_2023 = TableLayout(
    "fungiclef-2023",
    (
        PhotoTable("train", _paths("FungiCLEF2023_train_metadata_PRODUCTION.csv"), OLDER),
        PhotoTable("val", _paths("FungiCLEF2023_val_metadata_PRODUCTION.csv"), NEWER),
        PhotoTable("test", _paths("FungiCLEF2023_public_test_metadata_PRODUCTION.csv"), NEWER),
    ),
    COLUMNS,
    flags=POISONOUS,
)

RECORDS = (
    ReleaseRecord(
        name="fungiclef-2022",
        about="FungiCLEF 2022: fungi of Denmark, open set",
        open=partial(open_photo_tables, layout=FUNGI_2022),
        check=ReleaseCheck(
            published={
                "train and val": {CHALLENGE_PAGE: Count(photos=295_938, classes=1_604)},
                "test": {CHALLENGE_PAGE: Count(observations=59_420, photos=118_676)},
            },
            note="published of test: 1,165 known and 1,969 unknown species, which only the organizers can count",
        ),
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_FUNGI_2022",
            "the fungi of the world of FungiTastic as FungiCLEF 2022 is released",
        ),
        homepage="https://www.imageclef.org/LifeCLEF2022",
        size=PublishedSize(photos=295_938 + 118_676),
        citation=working_note(
            "picek2022fungiclef",
            "Overview of FungiCLEF 2022: Fungi Recognition as an Open Set Classification Problem",
            "Picek, Lukáš and others",
            2022,
            pages="1970--1981",
        ),
    ),
    ReleaseRecord(
        name="fungiclef-2023",
        about="FungiCLEF 2023 and 2024: the same, val open too",
        open=partial(open_photo_tables, layout=FUNGI_2023),
        check=ReleaseCheck(note="how many photos each part has is not known from any page that could be read"),
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_FUNGI_2023",
            "the fungi of the world of FungiTastic as FungiCLEF 2023 is released",
        ),
        citation=working_note(
            "picek2023fungiclef",
            "Overview of FungiCLEF 2023: Fungi Recognition Beyond 1/0 Cost",
            "Picek, Lukáš and others",
            2023,
        )
        + "\n"
        + working_note(
            "picek2024fungiclef",
            "Overview of FungiCLEF 2024: Revisiting Fungi Species Recognition Beyond 0-1 Cost",
            "Picek, Lukas and Šulc, Milan and Matas, Jiří",
            2024,
            paper="paper-185",
        ),
    ),
)
