"""A small release of every dataset, on the local disk; most are worlds that other tests have made already."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fieldmark_tests.fixtures import COLORS, save_photo
from fieldmark_tests.places import GOLDEN, declared_in_tests
from fieldmark_tests.releases.fgvcx_by_hand import write_fgvcx
from fieldmark_tests.releases.test_animalclef import write_release as write_animals
from fieldmark_tests.releases.test_birdclef_kaggle import sing, write_focal
from fieldmark_tests.releases.test_folder_masks import save
from fieldmark_tests.releases.test_geolifeclef import write_newer
from fieldmark_tests.releases.test_later_releases import LITTLE, PACKED
from fieldmark_tests.releases.test_snakeclef import CLASSES, PRESENCE, ROWS_2021, write
from fieldmark_worlds import WORLDS
from fieldmark_worlds.layouts import relaid, surveys

# Datasets whose world is a fixture of the session.
FIXTURES = {
    "fungitastic": "fungi_world",
    "plantclef-2020": "plant_world",
    "birdclef-2020": "bird_world",
    "snakeclef-2020": "snake_world",
    "geolifeclef-2020": "land_world",
}
SURVEYS = {"geolifeclef-2023", "geolifeclef-2024", "geolifeclef-2025"}
SOUNDSCAPES = "row_id,site,audio_id,seconds,birds\n7019_COR_5,COR,7019,5,amerob\n7019_COR_10,COR,7019,10,nocall\n"
TAXON = {"kingdom": "Plantae", "phylum": "P", "class": "C", "order": "O", "family": "F", "genus": "G"}


def write_colors(root: Path) -> Path:
    """Photos of three colors in train, val and test, and what the classes are."""
    for number, (label, color) in enumerate(COLORS.items()):
        for photo in range(8):
            part = ("train", "train", "val", "test")[photo % 4]
            save_photo(root / part / label / f"{number}-{photo}.jpg", color, 50 * number + photo)
    (root / "taxa.csv").write_text("label,genus\nAlba alba,Alba\nAlba nigra,Alba\nRubra vera,Rubra\n")
    return root


def write_masks(root: Path) -> Path:
    """Photos with masks, some of them of parts."""
    for part, name in (("train", "a"), ("train", "b"), ("val", "c"), ("test", "d")):
        save(root / f"images/{part}/{name}.jpg")
        save(root / f"masks/{name}.png", 255)
    save(root / "masks/cap/a.png", 200)
    return root


def write_birds(root: Path) -> Path:
    """Focal recordings of two birds and one annotated soundscape."""
    write_focal(root, folder="train_short_audio", table="train_metadata.csv", with_folder=False)
    sing(root / "train_soundscapes" / "7019_COR_20190904.ogg", [600, 0])
    (root / "train_soundscape_labels.csv").write_text(SOUNDSCAPES)
    return root


def write_later_birds(root: Path) -> Path:
    """Focal recordings as the editions from 2022 on pack them."""
    write_focal(root, folder="train_audio", table="train_metadata.csv", with_folder=True)
    return root


def write_snakes(root: Path) -> Path:
    """The tables of SnakeCLEF 2021, and their photos."""
    for number in (1, 2):
        save_photo(root / "train_images" / f"u{number}.jpg", (90, 90, 90), seed=number)
    return write(root, train_metadata=ROWS_2021, round4_classes=CLASSES, species_to_country=PRESENCE)


def write_places(root: Path) -> Path:
    """The tables of GeoLifeCLEF 2021 and 2022."""
    root.mkdir(parents=True)
    write_newer(root)
    return root


def write_inat(root: Path) -> Path:
    """Photos of two plants, labeled and not."""
    photos = ("l_train/0/0", "l_train/1/0", "val/0/0", "val/1/0", "test/ab", "u_train/x", "u_train/y")
    for number, photo in enumerate(photos):
        save_photo(root / f"{photo}.jpg", (90, 90, 90), seed=number)
    told = [{"class_id": number, **TAXON, "species": f"G {number}"} for number in range(2)]
    coarse = [{"image_name": f"{name}.jpg", "kingdom": "Plantae", "phylum": "P"} for name in "xy"]
    (root / "annotation_v2.json").write_text(json.dumps({"annotations": told, "unlabeled_taxa": coarse}))
    return root


def write_aves(root: Path) -> Path:
    """Photos of two birds, labeled and not."""
    files = {
        "l_train": {"trainval_images/0/0.jpg": 0, "trainval_images/1/0.jpg": 1},
        "val": {"trainval_images/0/1.jpg": 0, "trainval_images/1/1.jpg": 1},
        "u_train_in": {"u_train_in/0.jpg": -1},
        "u_train_out": {"u_train_out/0.jpg": -1},
        "test": {"test/0.jpg": None},
    }
    for part, classes in files.items():
        images = [{"file_name": file, "id": number} for number, file in enumerate(classes)]
        told = [
            {"image_id": number, "id": number, "category_id": one}
            for number, one in enumerate(classes.values())
            if one is not None
        ]
        for number, file in enumerate(classes):
            save_photo(root / file, (90, 90, 90), seed=number)
        (root / f"anno_{part}.json").write_text(json.dumps({"images": images, "annotations": told}))
    (root / "semi_aves_class_names.txt").write_text("0 Anas_acuta\n1 Buteo_buteo\n")
    return root


def write_known_animals(root: Path) -> Path:
    """Photos of individuals, as the edition of 2025 names its parts."""
    table = write_animals(root) / "metadata.csv"
    table.write_text(table.read_text().replace(",train,", ",database,").replace(",test,", ",query,"))
    return root


def write_archive(root: Path) -> Path:
    """A Darwin Core Archive, typed by hand."""
    return Path(shutil.copytree(GOLDEN / "occurrences" / "archive", root))


MAKERS: dict[str, Callable[[Path], Path]] = {
    "folder": write_colors,
    "folder-masks": write_masks,
    "fgvcx-fungi-2018": write_fgvcx,
    "birdclef-2021": write_birds,
    **{f"birdclef-{year}": write_later_birds for year in range(2022, 2027)},
    "snakeclef-2021": write_snakes,
    "geolifeclef-2021": write_places,
    "geolifeclef-2022": write_places,
    "animalclef-2025": write_known_animals,
    "animalclef-2026": write_animals,
    "semi-inat-2021": write_inat,
    "semi-aves-2020": write_aves,
    "occurrences": write_archive,
}


def write_snakes_2024(world: Path, root: Path) -> Path:
    """The data of SnakeCLEF 2023 with the test of 2024, which comes in folders of its own."""
    relaid.pack("snakeclef-2023", relaid.pack_snakes_2023, world, root)
    (root / "WORLD.json").unlink()
    (root / "SnakeCLEF2023-PubTestMetadata.csv").rename(root / "SnakeCLEF2024-TestMetadata.csv")
    for part in ("train", "val"):
        shutil.copytree(root / "SnakeCLEF2023-small_size", root / part / "SnakeCLEF2023-medium_size")
    (root / "SnakeCLEF2023-small_size").rename(root / "SnakeCLEF2024-large_size")
    return root


def sample(dataset: str, request: pytest.FixtureRequest, folder: Path) -> Path:
    """A small release of a dataset; a world is made of those that stand neither above nor among the fixtures."""
    root = folder / dataset
    if dataset in FIXTURES:
        return Path(request.getfixturevalue(FIXTURES[dataset]))
    if dataset in MAKERS:
        return MAKERS[dataset](root)
    if dataset in PACKED:
        packer, world = PACKED[dataset]
        relaid.pack(dataset, packer, request.getfixturevalue(world), root)
        return root
    if dataset in SURVEYS:
        surveys.write_extent(root, LITTLE, "little", year=int(dataset[-4:]), seed=4)
        return root
    if dataset == "snakeclef-2024":
        return write_snakes_2024(request.getfixturevalue("snake_world"), root)
    if dataset in (written := declared_in_tests("SAMPLES")):
        return Path(written[dataset](root))
    WORLDS[dataset](folder / dataset, size="tiny", seed=1)  # a dataset without any declares SAMPLES in its tests
    return folder / dataset
