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

from fieldmark.datasets.photo_tables import FlagList, PhotoTable, TableLayout, open_photo_tables

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
OPEN_2022 = partial(open_photo_tables, layout=SNAKES_2022)
OPEN_2023 = partial(open_photo_tables, layout=SNAKES_2023)
OPEN_2024 = partial(open_photo_tables, layout=SNAKES_2024)
