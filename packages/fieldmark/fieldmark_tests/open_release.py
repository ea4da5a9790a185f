"""A release in the layout of FungiTastic with an open set, small enough to fit in seconds: photos of one color each."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from fieldmark_tests.fixtures import save_photo

KNOWN = {
    "Alba alba": (220, 210, 200),
    "Alba nigra": (40, 40, 60),
    "Rubra vera": (200, 60, 50),
    "Viridis una": (60, 160, 70),
}
POISONOUS = ("Rubra vera", "Viridis una")
UNKNOWN = {"Flava prima": (230, 210, 40), "Cyanea sera": (40, 190, 210)}
# Of unknown species the first occurs in val and in test, the second in test alone.
COUNTS = {
    "Train": ("Train", "train", dict.fromkeys(KNOWN, 8)),
    "Val": ("OpenSet-Val", "val", {**dict.fromkeys(KNOWN, 5), "Flava prima": 6}),
    "Test": ("OpenSet-Test", "test", {**dict.fromkeys(KNOWN, 5), "Flava prima": 4, "Cyanea sera": 5}),
}


def write_open_release(root: Path) -> Path:
    """Writes train, open-set val and open-set test."""
    colors, number = KNOWN | UNKNOWN, 0
    for part, folder, counts in COUNTS.values():
        rows = []
        for name, count in counts.items():
            for _ in range(count):
                number += 1
                file = f"0-{1000 + number}.JPG"
                save_photo(root / "FungiTastic" / folder / "300p" / file, colors[name], seed=number, size=(40, 40))
                rows.append(
                    {
                        "eventDate": f"2021-{5 + number % 5:02d}-03",
                        "habitat": ("forest", "meadow")[number % 2],
                        "observationID": str(1000 + number),
                        "filename": file,
                        "scientificName": name,
                        "genus": name.split()[0],
                        "species": name,
                        "category_id": list(KNOWN).index(name) if name in KNOWN else -1,
                        "poisonous": int(name in POISONOUS),
                    }
                )
        path = root / "metadata" / "FungiTastic" / f"FungiTastic-{part}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows).write_csv(path)
    return root


def shuffle_test_labels(root: Path) -> None:
    """Gives the test photos each other's labels, unknown ones included."""
    path = root / "metadata" / "FungiTastic" / "FungiTastic-OpenSet-Test.csv"
    table = pl.read_csv(path)
    told = ("scientificName", "genus", "species", "category_id", "poisonous")
    order = list(reversed(range(len(table))))
    table.with_columns(table[name][order] for name in told).write_csv(path)
