"""The suites that Fieldmark declares, and the one that is made from a folder of folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.suites.declarations import Suite, SuiteCell

HEADS = ("linear", "lda", "prototypes", "knn", "ridge")
PACKAGED = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")
BIRDS = SuiteCell(
    "birds",
    "folder",
    "birds_cub_odd",
    "Animalia",
    source="CUB-200-2011: the 100 species with odd numbers, with the official train and test photos",
    also_in=("ImageNet",),  # its makers warn of photos in both
)
FUNGI = SuiteCell("fungi-genera", "folder", "fungi_genera", "Fungi", source="field photos of nine genera of fungi")
SNAKES = SuiteCell(
    "snakes",
    "folder",
    "snakes_philippines",
    "Animalia",
    source="photos of 14 snakes of the Philippines in train, val and test",
)
PLANTS = SuiteCell(
    "sheets-to-field",
    "folder",
    "plants_sheets_and_field",
    "Plantae",
    source="60 species of PlantCLEF 2020: sheets and field photos in train, field photos in test",
)
AMANITA = SuiteCell(
    "amanita", "folder", "amanita", "Fungi", source="vouchered specimens of Amanita, a table beside them"
)
BUTTERFLIES = SuiteCell(
    "butterflies", "folder", "butterflies", "Animalia", source="Leeds Butterfly, one folder per species"
)
TRAPS = SuiteCell(
    "camera-traps", "folder", "camera_traps", "Animalia", source="camera traps of the Jura, one folder per species"
)
SMALL_PHOTOS = (BIRDS, FUNGI, SNAKES, PLANTS, AMANITA, BUTTERFLIES, TRAPS)
CHIPNOTES = SuiteCell(
    "chip-notes",
    "folder",
    "chipnotes",
    "Animalia",
    source="clips of 20 birds from xeno-canto, with a table that says which come from one recording",
    also_in=("xeno-canto",),
)


def _release(benchmark: str, release: str, kingdom: str = "", metric: str = "", name: str = "") -> SuiteCell:
    return SuiteCell(name or benchmark.replace("/", "-"), benchmark, release, kingdom, metric)


FUNGITASTIC = tuple(
    _release(name, "fungitastic", "Fungi")
    for name in (
        "fungitastic/closed",
        "fungitastic/dna",
        "fungitastic/open",
        "fungitastic-mini/closed",
        "fungitastic-mini/dna",
        "fungitastic-mini/open",
        "fungitastic-fewshot",
    )
)
SEMI = (
    _release("semi-inat-2021", "semi-inat-2021"),
    _release("semi-aves-2020", "semi-aves-2020", "Animalia"),
)
WORLDS = (
    *(
        SuiteCell(f"world-folder-{seed}", "folder", f"folder-{seed}", world="folder", world_seed=seed)
        for seed in range(3)
    ),
    SuiteCell("world-fungi", "fungitastic-mini/closed", "fungitastic-0", "Fungi", world="fungitastic"),
    SuiteCell("world-plants", "plantclef-2020", "plantclef-2020-0", "Plantae", world="plantclef-2020"),
    SuiteCell("world-snakes", "snakeclef-2022", "snakeclef-2022-0", "Animalia", world="snakeclef-2022"),
)

_SUITES = (
    Suite(
        "worlds", "1", "simulated releases in the real layouts: runs anywhere in minutes, says nothing of nature",
        WORLDS, HEADS, PACKAGED[:1], {"size": 96},
    ),
    Suite(
        "photos", "1", "one species, or genus, for each photo",
        (
            *SMALL_PHOTOS,
            _release("fungitastic-mini/closed", "fungitastic", "Fungi"),
            _release("plantclef-2022", "plantclef-2022", "Plantae"),
            _release("snakeclef-2022", "snakeclef-2022", "Animalia"),
            *SEMI,
        ),
        HEADS, PACKAGED,
    ),
    Suite(
        "few-shot", "1", "one, four and eight training photos per class",
        (
            *(
                replace(cell, name=f"{cell.name}-{shots}-shot", shots=shots)
                for cell in (BIRDS, FUNGI, SNAKES, BUTTERFLIES)
                for shots in (1, 4, 8)
            ),
            _release("fungitastic-fewshot", "fungitastic", "Fungi"),
            _release("fungiclef-2025", "fungitastic", "Fungi"),
        ),
        HEADS, PACKAGED,
    ),
    Suite(
        "open-set", "1", "known species, and the unknown told from them",
        (
            _release("fungitastic/open", "fungitastic", "Fungi"),
            _release("fungitastic-mini/open", "fungitastic", "Fungi"),
            _release("fungiclef-2022", "fungiclef-2022", "Fungi"),
            _release("fungiclef-2023", "fungiclef-2023", "Fungi"),
            _release("animalclef-2025", "animalclef-2025", "Animalia"),
        ),
        ("openset", "linear", "prototypes"), PACKAGED,
    ),
    Suite(
        "sound", "1", "species by ear, in clips and soundscapes",
        (CHIPNOTES, *(_release(f"birdclef-{year}", f"birdclef-{year}", "Animalia") for year in range(2020, 2027))),
        HEADS, ("logmel", "birdnet"),
    ),
    Suite(
        "places", "1", "species from the place: what grows or lives here",
        (
            _release("geolifeclef-2020", "geolifeclef-2020"),
            *(_release(f"geolifeclef-{year}", f"geolifeclef-{year}", "Plantae") for year in (2023, 2024, 2025)),
            _release("occurrences/places", "occurrences"),
            _release("occurrences/presence", "occurrences"),
        ),
        ("frequent", "neighbors", "random-forest"),
    ),
    Suite(
        "masks", "1", "which pixels show the organism",
        (
            _release("folder/segmentation", "butterflies_masks", "Animalia", name="butterfly-masks"),
            _release("fungitastic-mini/segmentation", "fungitastic", "Fungi"),
        ),
        ("ellipse", "grabcut", "saliency"),
    ),
    Suite(
        "lifeclef-2020", "1", "the four challenges of LifeCLEF 2020",
        (
            _release("birdclef-2020", "birdclef-2020", "Animalia"),
            _release("geolifeclef-2020", "geolifeclef-2020"),
            _release("plantclef-2020", "plantclef-2020", "Plantae"),
            _release("snakeclef-2020", "snakeclef-2020", "Animalia"),
        ),
        ("frequent", "centroid", "linear"),
    ),
    Suite("fungitastic", "1", "the classification benchmarks of FungiTastic", FUNGITASTIC, HEADS, PACKAGED),
    Suite(
        "semi", "1", "few labels and many photos without",
        SEMI, ("supervised", "pseudo-label", "self-training", "label-propagation"), PACKAGED,
    ),
    Suite(
        "editions", "1", "one challenge over the years: PlantCLEF, SnakeCLEF and FungiCLEF",
        (
            *(_release(f"plantclef-{year}", f"plantclef-{year}", "Plantae") for year in (2020, 2021, 2022)),
            *(_release(f"snakeclef-{year}", f"snakeclef-{year}", "Animalia") for year in (2020, 2021, 2022)),
            *(_release(f"fungiclef-{year}", f"fungiclef-{year}", "Fungi") for year in (2022, 2023)),
        ),
        HEADS, PACKAGED,
    ),
    Suite("own", "1", "your own photos or recordings: every folder of classes under the root", (), HEADS, PACKAGED),
)  # fmt: skip
SUITES = {suite.name: suite for suite in _SUITES}


def suite_named(name: str, data: str | Path | None = None) -> Suite:
    """A suite; `own` with one cell for every folder under the root.

    Raises:
        MisuseError: When there is no such suite.
        InputError: When `own` finds no folders.
    """
    if name not in SUITES:
        raise MisuseError(f"There is no suite called {name!r}. {did_you_mean(name, SUITES)}")
    suite = SUITES[name]
    if name != "own" or data is None:
        return suite
    root = Path(data)
    entries = sorted(root.iterdir()) if root.is_dir() else []
    folders = [one for one in entries if one.is_dir() and not one.name.startswith(".")]
    if not folders:
        raise InputError(root, found="no folders", expected="one folder per data set, each with a folder per class")
    return replace(suite, cells=tuple(SuiteCell(one.name, "folder", one.name) for one in folders))
