"""Real data written in the layout of a later edition, so that its baseline starts from a release on disk."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

PLOT_SIDE, TILE_PX, SPECIES_PER_PLOT = 3, 224, 4
TRANSECTS, PLOTS_PER_TRANSECT = 10, 3


@dataclass(frozen=True)
class Surveys:
    """Places where every species was looked for.

    Args:
        lat, lon: Where.
        numbers: One row of the environment for each.
        holds: One row per place, one column per species.
        block: The independent unit of each.
    """

    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    numbers: NDArray[np.float64]
    holds: NDArray[np.bool_]
    block: NDArray[np.int64]


def write_surveys(root: Path, surveys: Surveys, held: NDArray[np.bool_]) -> None:
    """GeoLifeCLEF 2025: the held-out places are test, and a survey is called by its row."""
    folder = root / "EnvironmentalValues"
    folder.mkdir(parents=True)
    names = [f"env_{number}" for number in range(surveys.numbers.shape[1])]
    for part, member in (("train", ~held), ("test", held)):
        rows = np.flatnonzero(member)
        table = pl.DataFrame({"surveyId": rows, "lat": surveys.lat[rows], "lon": surveys.lon[rows]})
        row, species = np.nonzero(surveys.holds[rows])
        pairs = pl.DataFrame({"surveyId": rows[row], "speciesId": species})
        if part == "train":
            table = table.join(pairs, on="surveyId", how="inner", maintain_order="left")
        else:
            pairs.write_csv(root / "test_labels.csv")
        table.write_csv(root / f"GLC25_PA_metadata_{part}.csv")
        numbers = pl.DataFrame(surveys.numbers[rows], schema=names, orient="row")
        numbers.insert_column(0, pl.Series("surveyId", rows)).write_csv(folder / f"GLC25-PA-{part}-environment.csv")


def write_plants(root: Path, data: Path) -> dict[str, Any]:
    """PlantCLEF 2024: field photos of species that have some to learn from, and pictures put together of others.

    A quarter of the plants of each species, at least one where there are three, is val. Pictures of val are put
    together in the same way for the choice of the threshold: they lie in `val_plots`, their species in `val_plots.csv`.
    """
    plant_of = dict(pl.read_csv(data / "plants.csv", infer_schema=False).iter_rows())
    files = sorted((data / "train" / "photo").glob("*/*.jpg"))
    plants: dict[str, list[str]] = {}
    for file in files:
        plants.setdefault(file.parent.name, []).append(_plant(plant_of, data, file))
    val = {
        plant for own in plants.values() for plant in sorted(set(own))[: len(set(own)) // 4 or int(len(set(own)) >= 3)]
    }
    lines = ["image_name;organ;species_id;obs_id;latitude;longitude;species;genus;family;learn_tag"]
    shown: dict[str, list[Path]] = {}
    for file in files:
        label, plant = file.parent.name, _plant(plant_of, data, file)
        tag = "val" if plant in val else "train"
        if tag == "val":
            shown.setdefault(label, []).append(file)
        target = root / "images_max_side_800" / label / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
        lines.append(f"{file.name};habit;{label};{plant};;;{label};;;{tag}")
    (root / "PlantCLEF2024_single_plant_training_metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked: dict[str, list[Path]] = {}
    for file in sorted((data / "test").glob("*/*.jpg")):
        if file.parent.name in plants:
            asked.setdefault(file.parent.name, []).append(file)
    rng = np.random.default_rng(0)
    truth = _write_plots(root / "PlantCLEF2025_test_images", asked, rng)
    with (root / "test_labels.csv").open("w", encoding="utf-8", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["quadrat_id", "species_ids", "transect"])
        writer.writerows([name, f"[{', '.join(inside)}]", name.split("-")[0]] for name, inside in truth.items())
    chosen_on = _write_plots(root / "val_plots", shown, rng)
    rows = [(name, label, name.split("-")[0]) for name, inside in chosen_on.items() for label in inside]
    pl.DataFrame(rows, schema=["id", "label", "unit"], orient="row").write_csv(root / "val_plots.csv")
    photos = {"train": len(files) - sum(map(len, shown.values())), "val": sum(map(len, shown.values()))}
    return {"photos": photos, "test_photos": sum(map(len, asked.values())), "species": len(plants), "plots": len(truth)}


def _plant(plant_of: dict[str, str], data: Path, file: Path) -> str:
    path = str(file.relative_to(data))
    return plant_of.get(path, path)


def _write_plots(folder: Path, photos: dict[str, list[Path]], rng: np.random.Generator) -> dict[str, list[str]]:
    """Pictures of three by three photos, four species in each; those of a transect share two."""
    folder.mkdir(parents=True)
    labels, truth = sorted(photos), {}
    for transect in range(TRANSECTS):
        shared = rng.choice(labels, size=2, replace=False)
        for plot in range(PLOTS_PER_TRANSECT):
            others = [label for label in labels if label not in set(shared)]
            inside = sorted({*map(str, shared), *map(str, rng.choice(others, size=2, replace=False))})
            tiles = [*inside, *(str(rng.choice(inside)) for _ in range(PLOT_SIDE**2 - SPECIES_PER_PLOT))]
            whole = Image.new("RGB", (PLOT_SIDE * TILE_PX, PLOT_SIDE * TILE_PX))
            for place, label in enumerate(rng.permutation(tiles)):
                row, column = divmod(place, PLOT_SIDE)
                with Image.open(photos[str(label)][int(rng.integers(len(photos[str(label)])))]) as photo:
                    square = photo.convert("RGB").resize((TILE_PX, TILE_PX))
                whole.paste(square, (column * TILE_PX, row * TILE_PX))
            name = f"T{transect + 1}-{folder.name}-{plot + 1}"
            whole.save(folder / f"{name}.jpg", quality=95)
            truth[name] = inside
    return truth


def write_animals(root: Path, data: Path, rng: np.random.Generator) -> dict[str, Any]:
    """AnimalCLEF 2026: specimens with at least two photos are individuals, half of them to learn from."""
    rows = pl.read_csv(data / "images_with_metadata.csv", infer_schema=False)
    rows = rows.filter(pl.col("specimen_id").count().over("specimen_id") >= 2)
    specimens = rows["specimen_id"].unique().sort().to_list()
    learned = set(rng.permutation(specimens)[: len(specimens) // 2].tolist())
    lines = ["image_id,identity,path,date,orientation,species,split,dataset"]
    for number, (file, specimen) in enumerate(rows.select("file", "specimen_id").iter_rows()):
        target = root / "images" / f"{number}{Path(file).suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((data / file).read_bytes())
        part = "train" if specimen in learned else "test"
        lines.append(f"{number},{specimen},images/{target.name},,,Amanita,{part},Amanita")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = rows.filter(~pl.col("specimen_id").is_in(list(learned)))
    counts = {"specimens": len(specimens), "photos": len(rows), "asked_photos": len(asked)}
    return {**counts, "asked_specimens": asked["specimen_id"].n_unique()}
