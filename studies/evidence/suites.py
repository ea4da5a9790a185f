"""The project's own table: packaged backbones and heads on all real sets of photos, clips, masks and places (real).

The suites `photos`, `few-shot`, `sound`, `masks` and `places` on what is given, with their usual models: three
backbones with five heads on photos, two on clips, three methods for masks and for places. On photos also the mean of
the three backbones with the head `lda`, and where there is more than photos (Amanita: date, place, host tree) `fusion`
with each backbone. Nothing was tuned: heads have their defaults, and choose on val what they leave open. The results
lie in `studies/results/suites`, one file per model and cell, and cells that are there are not run again.

Some sets are not laid out as one folder per class; for those a folder of links is made: Amanita by specimen, with date,
place and host tree; butterflies by species; camera traps with the source's own parts, `valid` as test; clips by source
recording; of places the plants of Switzerland, trained on records and scored at surveyed sites.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fieldmark.storage.files import write_text
from fieldmark.suites.catalog import PACKAGED, SUITES, suite_named
from fieldmark.suites.ranking import SuiteTable, suite_table
from fieldmark.suites.results import read_results
from fieldmark.suites.suite_pages import suite_page
from fieldmark.suites.suite_runs import SuiteModel, SuiteRun, models_of, run_suite
from studies.evidence.chipnotes import list_clips
from studies.evidence.packaged_photos import BUTTERFLIES
from studies.evidence.results import RESULTS, ROOT, real_data

FOLDER = RESULTS / "suites"
PAGES = ROOT / "docs" / "suites"
# Where tables stand, whole or the first rows of them, between marks that say which.
PLACES = tuple(ROOT / name for name in ("README.md", "docs/index.md", "docs/results.md", "docs/suites.md"))
MARKED = re.compile(r"(<!-- suite (\S+?)(?:, first (\d+))? -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
RUN = ("photos", "few-shot", "sound", "masks", "places")
# Sets that are releases as they are, and one of them by the name that a suite has for it.
AS_GIVEN = ("birds_cub_odd", "fungi_genera", "snakes_philippines", "plants_sheets_and_field", "butterflies_leeds")
CALLED = {"butterflies_leeds": "butterflies_masks"}
REGION = "SWI*.parquet"
# Cells in the order of what they cost, so that an interrupted run has most of them.
LAST = ("birds",)
# Cells with more than photos to go by.
WITH_CONTEXT = ("amanita",)
ENSEMBLE = SuiteModel(
    "three backbones, mean of lda", "ensemble", {"members": ",".join(f"lda:backbone={name}" for name in PACKAGED)}
)


def run() -> dict[str, Any] | None:
    """Runs what is missing, and sums up what there is."""
    if any(real_data(name) is None for name in AS_GIVEN):
        return None
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root)
        for name in RUN:
            cells = [cell for cell in suite_named(name).cells if (root / cell.release).exists()]
            for own in (False, True):
                names = [cell.name for cell in cells if cell.name.startswith(LAST) == own]
                _report(name, run_suite(name, root, FOLDER / name, only=names))
        photos = suite_named("photos")
        everywhere = [cell.name for cell in photos.cells if (root / cell.release).exists()]
        for models, only in (([ENSEMBLE], everywhere), (models_of(photos, methods=["fusion"]), WITH_CONTEXT)):
            _report("photos", run_suite(photos, root, FOLDER / "photos", models=models, only=only))
    tables = committed_tables()
    for name, made in tables.items():
        write_text(PAGES / f"{name}.html", suite_page(made, SUITES[name]))
    for place in PLACES:
        write_text(place, with_tables(place.read_text(encoding="utf-8"), tables))
    return {name: made.to_json() for name, made in tables.items()}


def committed_tables() -> dict[str, SuiteTable]:
    """The tables of the results that are there."""
    there = [name for name in RUN if (FOLDER / name).exists()]
    return {name: suite_table(SUITES[name], read_results([FOLDER / name])) for name in there}


def _report(name: str, outcome: SuiteRun) -> None:
    print(name, outcome.made, "made;", len(outcome.results), "there;", dict(outcome.failed), flush=True)


def with_tables(text: str, tables: Mapping[str, SuiteTable]) -> str:
    """A page with the tables between the marks that name them."""

    def renewed(found: re.Match[str]) -> str:
        begin, name, first, end = found.groups()
        if name not in tables:
            return found[0]
        head = 2 + int(first) if first else None
        lines = tables[name].to_markdown().splitlines()[:head]
        return begin + "\n" + "\n".join(lines) + "\n\n" + end

    return MARKED.sub(renewed, text)


def lay_out(root: Path) -> None:
    """The sets under the names that the suites know them by."""
    root.mkdir(exist_ok=True)
    for name in AS_GIVEN:
        given = real_data(name)
        if given is not None:
            (root / CALLED.get(name, name)).symlink_to(given.resolve())
    regions = real_data("sdm_disdat")
    if regions is not None:
        (root / "occurrences").mkdir()
        for path in regions.resolve().glob(REGION):
            (root / "occurrences" / path.name).symlink_to(path)
    for name, (source, rows_of) in LINKED.items():
        given = real_data(source)
        if given is not None:
            _link(root / name, rows_of(given.resolve()))


def _link(root: Path, rows: Iterator[dict[str, str]]) -> None:
    """A folder of links, with a table of what is known about each."""
    table = []
    for row in rows:
        path = Path(row.pop("path"))
        place = root / row.pop("folder") / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path)
        table.append({"file": str(place.relative_to(root)), **row})
    with (root / "observations.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def _amanita(data: Path) -> Iterator[dict[str, str]]:
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (data / row["file"]).is_file():
                yield {
                    "path": str(data / row["file"]),
                    "folder": row["species"].replace(" ", "_"),
                    "observation": row["specimen_id"],
                    "date": _iso(row["datecollected"]),
                    "latitude": row["lat"].strip(),
                    "longitude": row["long"].strip(),
                    "habitat": row["hosttree1_scientific"].strip(),
                }


def _iso(month_day_year: str) -> str:
    """A date as 2024-09-01; empty where none can be read."""
    try:
        return datetime.strptime(month_day_year.strip(), "%m/%d/%y").date().isoformat()
    except ValueError:
        return ""


def _butterflies(data: Path) -> Iterator[dict[str, str]]:
    for path in sorted((data / "images").glob("*.*")):
        yield {"path": str(path), "folder": BUTTERFLIES[path.name[:3]].replace(" ", "_"), "observation": path.stem}


def _traps(data: Path) -> Iterator[dict[str, str]]:
    for given, part in (("train", "train"), ("valid", "test")):
        for path in sorted((data / given).glob("*/*.*")):
            observation = f"{given}-{path.parent.name}-{path.stem}"
            yield {"path": str(path), "folder": f"{part}/{path.parent.name}", "observation": observation}


def _clips(data: Path) -> Iterator[dict[str, str]]:
    for clip in list_clips(data):
        yield {"path": str(clip["path"]), "folder": clip["label"].replace("/", "-"), "observation": clip["source"]}


LINKED = {
    "amanita": ("fungi_amanita", _amanita),
    "butterflies": ("butterflies_leeds", _butterflies),
    "camera_traps": ("camera_traps_jura", _traps),
    "chipnotes": ("birds_chipnotes", _clips),
}
