"""SnakeCLEF 2022 to 2024 as their tables describe them.

```
ROOT/  (2022)                                      tables also in metadata/, train/ and test/
  SnakeCLEF2022-TrainMetadata.csv                  observation_id,endemic,binomial_name,country,code,class_id,file_path
  SnakeCLEF2022-TestMetadata.csv                   the same without binomial_name and class_id
  SnakeCLEF2022-ISOxSpeciesMapping.csv             species by country, for the priors
  SnakeCLEF2022-{small,medium,large}_size/         photos as `file_path` says, also in train/ and test/
ROOT/  (2023, 2024)
  SnakeCLEF2023-TrainMetadata-iNat.csv             observation_id,endemic,binomial_name,code,class_id,image_path
  SnakeCLEF2023-TrainMetadata-HM.csv               the same, from HerpMapper
  SnakeCLEF2023-ValMetadata.csv                    the same
  SnakeCLEF2023-PubTestMetadata.csv | SnakeCLEF2024-TestMetadata.csv      without classes
  SnakeCLEF2023-{small,medium,large}_size/         photos as `image_path` says, also in train/, val/ and test/
  venomous_status_list.csv                         class_id,MIVS: 1 for venomous
```

Quirks:

- The names of files and columns come from the code of participants and of the organizers' evaluator.
- 2022 has no val: it is drawn from train by observation.
- `code` is the country with its region (ISO 3166-2), `unknown` where nobody knows; it stands in for the country where
  there is none.
- The paths of photos from HerpMapper begin at the root.
- 2024 learns from the data of 2023 and has a test of its own.
"""

from __future__ import annotations

from functools import partial

from fieldmark.releases.checks import CHALLENGE_PAGE, Count, ReleaseCheck
from fieldmark.releases.citations import LIFECLEF_2022, working_note
from fieldmark.releases.photo_tables import FlagList, PhotoTable, TableLayout, open_photo_tables
from fieldmark.releases.record import ReleaseRecord, World

COLUMNS = {
    "observation_id": ("observation_id", "ObservationId"),
    "photo": ("image_path", "file_path"),
    "label": ("class_id",),
    "country": ("country", "code"),
    "region": ("code",),
    "endemic": ("endemic",),
    "scientific_name": ("binomial_name",),
}
SIZES = ("small", "medium", "large")
VENOMOUS = FlagList("venomous_status_list.csv", "class_id", "MIVS")


def _table(part: str, year: int, *names: str) -> PhotoTable:
    paths = tuple(f"{folder}{name}" for name in names for folder in ("", "metadata/", f"{part}/"))
    roots = ("", f"{part}/", f"SnakeCLEF{year}-{part}/", f"SnakeCLEF{year}-{part}_images/")
    folders = tuple(f"{root}SnakeCLEF{year}-{size}_size" for root in roots for size in SIZES)
    return PhotoTable(part, paths, (*folders, "", part))


SNAKES_2022 = TableLayout(
    "snakeclef-2022",
    (
        _table("train", 2022, "SnakeCLEF2022-TrainMetadata.csv"),
        _table("test", 2022, "SnakeCLEF2022-TestMetadata.csv"),
    ),
    COLUMNS,
    flags=VENOMOUS,
)


def _with_test(year: int, *test: str) -> TableLayout:
    return TableLayout(
        f"snakeclef-{year}",
        (
            _table("train", 2023, "SnakeCLEF2023-TrainMetadata-iNat.csv"),
            _table("train", 2023, "SnakeCLEF2023-TrainMetadata-HM.csv"),
            _table("val", 2023, "SnakeCLEF2023-ValMetadata.csv"),
            _table("test", year, *test),
        ),
        COLUMNS,
        flags=VENOMOUS,
    )


SNAKES_2023 = _with_test(2023, "SnakeCLEF2023-PubTestMetadata.csv")
SNAKES_2024 = _with_test(2024, "SnakeCLEF2024-TestMetadata.csv")

RECORDS = (
    ReleaseRecord(
        name="snakeclef-2022",
        about="SnakeCLEF 2022: 1,572 species, by region",
        open=partial(open_photo_tables, layout=SNAKES_2022),
        check=ReleaseCheck(
            published={"train": {CHALLENGE_PAGE: Count(classes=1_572)}},
            note="published: 1,572 species; how many photos there are is not known from any page",
        ),
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_SNAKES_2022",
            "the snakes of the world of SnakeCLEF 2020 as SnakeCLEF 2022 is released",
        ),
        homepage="https://www.imageclef.org/LifeCLEF2022",
        citation=LIFECLEF_2022,
    ),
    ReleaseRecord(
        name="snakeclef-2023",
        about="SnakeCLEF 2023: with venomous species",
        open=partial(open_photo_tables, layout=SNAKES_2023),
        check=ReleaseCheck(note="how many photos each part has is not known from any page that could be read"),
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_SNAKES_2023",
            "the snakes of the world of SnakeCLEF 2020 as SnakeCLEF 2023 is released",
        ),
        homepage="https://www.imageclef.org/SnakeCLEF2023",
        citation=working_note(
            "picek2023snakeclef",
            "Overview of SnakeCLEF 2023: Snake Identification in Medically Important Scenarios",
            "Picek, Lukáš and Chamidullin, Rail and Hrúz, Marek and Durso, Andrew M.",
            2023,
            pages="1982--1995",
        ),
    ),
    ReleaseRecord(
        name="snakeclef-2024",
        about="SnakeCLEF 2024: another test",
        open=partial(open_photo_tables, layout=SNAKES_2024),
        check=ReleaseCheck(note="how many photos each part has is not known from any page that could be read"),
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_SNAKES_2024",
            "the snakes of the world of SnakeCLEF 2020 as SnakeCLEF 2024 is released",
        ),
        citation=working_note(
            "snakeclef2024",
            "Overview of SnakeCLEF 2024: Revisiting Snake Species Identification in Medically Important Scenarios",
            "",
            2024,
        ),
    ),
)
