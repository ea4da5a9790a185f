"""Releases opened at their full number of records, in time and memory, beside the raw files read by the same library.

GeoLifeCLEF 2020 with 1.9 million generated observations of 31,435 species in its own tables, beside polars reading them
as text; a list of 300,000 images in COCO's format (FGVCx Fungi 2018), beside `json.loads`. Each is also opened at a
quarter of that, in a process of its own on one thread; growth is the exponent of what goes beyond the imports.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from studies.perf.growth import status_mib

SHARES = (1 / 64, 1 / 4, 1)
COUNTRIES = {"fr": ("1", 42.0, 51.0, -4.0, 8.0), "us": ("2", 25.0, 49.0, -124.0, -67.0)}
SPECIES, CATEGORIES, ROUNDS = 31_435, 1_394, 2


@dataclass(frozen=True)
class Release:
    """A release that is opened.

    Args:
        dataset: Its name.
        records: How many records it has.
        write: Writes so many of them into a folder.
        read: Reads the raw files alone.
    """

    dataset: str
    records: int
    write: Callable[[Path, int], None]
    read: Callable[[Path], object]


def write_geolifeclef(root: Path, records: int) -> None:
    """The tables of train, half of the records in each country."""
    rng = np.random.default_rng(0)
    for country, (digit, south, north, west, east) in COUNTRIES.items():
        number = records // 2
        ids = pl.Series([f"{digit}{row:07}" for row in range(number)])
        places = {"lat": rng.uniform(south, north, number), "lon": rng.uniform(west, east, number)}
        species = rng.zipf(1.3, number) % SPECIES
        table = pl.DataFrame({"id": ids, **places, "species_id": species})
        table.write_csv(root / f"occurrences_{country}_train.csv", separator=";")


def write_coco(root: Path, records: int) -> None:
    """A list of images with one annotation each."""
    rng = np.random.default_rng(0)
    names = [f"Genus{number // 4} species{number}" for number in range(CATEGORIES)]
    categories = [{"id": number, "name": name, "supercategory": name.split()[0]} for number, name in enumerate(names)]
    classes = rng.integers(0, CATEGORIES, records).tolist()
    images = [
        {
            "id": 7 * row,
            "file_name": f"images/{one}_{names[one].replace(' ', '_')}/{row}.JPG",
            "license": 1,
            "rights_holder": f"person {row % 3000}",
            "width": 1200,
            "height": 900,
        }
        for row, one in enumerate(classes)
    ]
    annotations = [{"id": row, "image_id": 7 * row, "category_id": one} for row, one in enumerate(classes)]
    licenses = [{"id": 1, "name": "CC BY-NC 4.0", "url": "https://creativecommons.org/licenses/by-nc/4.0/"}]
    content = {"info": {}, "images": images, "categories": categories, "annotations": annotations}
    (root / "train.json").write_text(json.dumps({**content, "licenses": licenses}))


RELEASES = {
    "observations of GeoLifeCLEF 2020": Release(
        "geolifeclef-2020",
        1_900_000,
        write_geolifeclef,
        lambda root: [pl.read_csv(path, separator=";", infer_schema=False) for path in root.glob("*.csv")],
    ),
    "images in COCO's format": Release(
        "fgvcx-fungi-2018", 300_000, write_coco, lambda root: json.loads((root / "train.json").read_bytes())
    ),
}


def run() -> dict[str, Any]:
    """Seconds, memory and growth of opening each release."""
    found = {}
    for name, release in RELEASES.items():
        with tempfile.TemporaryDirectory() as folder:
            rows = [_measured(name, round(share * release.records), Path(folder)) for share in SHARES]
        least, quarter, full = (row["open_cpu_s"] for row in rows)
        sizes = [row["records"] for row in rows]
        grown = math.log((full - least) / (quarter - least)) / math.log((sizes[2] - sizes[0]) / (sizes[1] - sizes[0]))
        found[name] = {**rows[-1], "smaller": rows[:-1], "time_exponent": round(grown, 2)}
        print(name, json.dumps(found[name]), flush=True)
    return {"releases": found}


def _measured(name: str, records: int, folder: Path) -> dict[str, Any]:
    root = folder / str(records)
    root.mkdir()
    RELEASES[name].write(root, records)
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def child(what: str) -> dict[str, float]:
        command = [sys.executable, "-m", "studies.perf.large_tables", what, name, str(root)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return told

    turns = [{**child("open"), **child("read")} for _ in range(ROUNDS)]
    return {"records": records, **{what: min(turn[what] for turn in turns) for what in turns[0]}}


def main() -> None:
    """One of them in this process: `python -m studies.perf.large_tables open|read NAME ROOT`."""
    what, name, root = sys.argv[1:]
    release = RELEASES[name]
    if what == "open":
        import fieldmark

        dataset = fieldmark.dataset(release.dataset, root)
        assert len(dataset.observations)
    else:
        release.read(Path(root))
    print(json.dumps({f"{what}_cpu_s": round(time.process_time(), 2), f"{what}_peak_mib": round(status_mib("VmHWM"))}))


if __name__ == "__main__":
    main()
