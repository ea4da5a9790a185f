from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.work.blocks import LocalExecutor
from fieldmark_worlds import WORLDS
from fieldmark_worlds.fungi import photos
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.fungi.painter import paint
from fieldmark_worlds.layouts import folder
from fieldmark_worlds.layouts.release_files import photo_jobs
from fieldmark_worlds.scenery.camera import Camera

Tiny = tuple[Path, dict[str, object]]
SPLITS = ("train", "val", "test")


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.glob("*/*/*.jpg"))


def test_the_world_is_found_by_its_name() -> None:
    assert WORLDS["folder"] is folder.write


def test_tables_and_photos_on_disk_list_the_same_files(tiny: Tiny) -> None:
    root, _ = tiny
    on_disk = _files(root)
    observations = pl.read_csv(root / "observations.csv", schema_overrides={"observation": pl.String})
    assert sorted(observations["file"]) == on_disk
    assert sorted(pl.read_parquet(root / "traits.parquet")["file"]) == on_disk
    names = ["file", "observation", "date", "latitude", "longitude", "habitat", "substrate", "observer"]
    assert observations.columns == names
    assert observations.null_count().sum_horizontal().item() == 0
    for file, observation in observations.select("file", "observation").iter_rows():
        assert Path(file).name.rpartition("-")[0] == observation


def test_counts_in_the_world_file_are_those_on_disk(tiny: Tiny) -> None:
    root, world = tiny
    assert json.loads((root / "WORLD.json").read_text()) == world
    assert (world["fieldmark_world"], world["simulated"], world["dataset"]) == (1, True, "folder")
    counts = world["counts"]
    assert isinstance(counts, dict)
    for split in SPLITS:
        files = [Path(file) for file in _files(root) if file.startswith(split)]
        assert counts[split] == {
            "observations": len({file.name.rpartition("-")[0] for file in files}),
            "photos": len(files),
            "classes": len({file.parent.name for file in files}),
        }


def test_every_photo_opens_as_a_square_jpeg(tiny: Tiny) -> None:
    root, _ = tiny
    for file in _files(root):
        with Image.open(root / file) as photo:
            photo.load()
            assert (photo.format, photo.mode, photo.size) == ("JPEG", "RGB", (192, 192))


def test_splits_are_years_and_share_no_observation(tiny: Tiny) -> None:
    root, _ = tiny
    table = pl.read_csv(root / "observations.csv", try_parse_dates=True).with_columns(
        split=pl.col("file").str.split("/").list.first(), year=pl.col("date").dt.year()
    )
    for split, years in folder.SPLIT_YEARS.items():
        assert set(table.filter(pl.col("split") == split)["year"]) <= set(years)
    assert table.group_by("observation").n_unique()["split"].max() == 1


def test_every_class_is_taught_and_described(tiny: Tiny) -> None:
    root, world = tiny
    taxa = pl.read_csv(root / "taxa.csv")
    ranks = ["kingdom", "phylum", "class", "order", "family", "genus", "species"]
    assert taxa.columns == ["label", *ranks, "poisonous"]
    taught = Counter(Path(file).parent.name for file in _files(root) if file.startswith("train"))
    assert set(taught) == set(taxa["label"])
    assert min(taught.values()) >= folder.EXTENTS["tiny"].least_train_photos
    assert {Path(file).parent.name for file in _files(root)} == set(taught)
    dropped = world["dropped"]
    assert isinstance(dropped, dict)
    every_species = folder.EXTENTS["tiny"].nature.species
    assert dropped["species_too_rare"] + dropped["species_new_after_train"] + len(taught) == every_species


@pytest.mark.parametrize("seed", range(6))
def test_tiny_is_small_and_yet_has_something_of_everything(seed: int) -> None:
    nature = folder.nature_of("tiny", seed)
    splits, _ = folder.observe_splits(nature, folder.EXTENTS["tiny"], seed)
    photos_in = {split: int(seen.table["photos"].sum()) for split, seen in splits.items()}
    assert sum(photos_in.values()) <= 300
    assert 70 <= photos_in["test"] <= 90
    taught = np.unique(splits["train"].species)
    assert 18 <= len(taught) <= 28
    assert 5 <= len(np.unique(nature.genus_of[taught])) <= 8
    assert np.isin(splits["test"].species, taught).all()


def test_the_small_world_has_a_long_tail() -> None:
    nature = folder.nature_of("small", 0)
    splits, _ = folder.observe_splits(nature, folder.EXTENTS["small"], 0)
    seen = splits["train"]
    counts = np.sort(np.bincount(seen.species, weights=seen.table["photos"].to_numpy()))[::-1]
    counts = counts[counts > 0]
    assert 90 <= len(counts) <= 150
    assert counts[: len(counts) // 10].sum() > 0.35 * counts.sum()
    assert np.median(counts) < 0.1 * counts[0]


def test_photos_follow_from_the_stored_traits_alone(tiny: Tiny) -> None:
    """Repainting from traits, camera and the number of the photo gives the very bytes on disk."""
    root, _ = tiny
    nature = folder.nature_of("tiny", 3)
    people = nature.observers
    truth = pl.read_parquet(root / "traits.parquet").drop("label")
    observer_of = dict(pl.read_csv(root / "observations.csv").select("file", "observer").iter_rows())
    assert set(truth.columns) == {"file", *FUNGI.trait_names}
    for row in truth.sample(8, seed=0).iter_rows(named=True):
        file = row.pop("file")
        who = people.names.index(observer_of[file])
        camera = Camera(
            blur_px=float(people.blur_px[who]),
            noise=float(people.noise[who]),
            warmth=float(people.warmth[who]),
            exposure=float(people.exposure[who]),
        )
        observation, _, photo = Path(file).stem.partition("-")
        seed = np.random.SeedSequence([3, int(observation), int(photo)])
        stream = io.BytesIO()
        paint(row, np.random.default_rng(seed), 192, camera=camera).save(stream, "JPEG", quality=90)
        assert stream.getvalue() == (root / file).read_bytes()


def test_neither_workers_nor_blocks_change_a_byte(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world on disk was painted on all cores; here a few of its photos are painted by one, in other blocks."""
    root, _ = tiny
    nature = folder.nature_of("tiny", 3)
    splits, _ = folder.observe_splits(nature, folder.EXTENTS["tiny"], 3)
    tables = {split: folder.photo_table(split, seen) for split, seen in splits.items()}
    jobs = [job for split, seen in splits.items() for job in photo_jobs(nature, seen, tables[split], 3)]
    monkeypatch.setattr(photos, "PHOTOS_PER_BLOCK", 7)
    photos.paint_photos(tmp_path, jobs[::12], 192, LocalExecutor(1))
    folder.write_tables(tmp_path, nature, splits, tables)
    again = _files(tmp_path)
    assert len(again) == len(jobs[::12]) >= 20
    for file in [*again, "observations.csv", "taxa.csv", "traits.parquet"]:
        assert (tmp_path / file).read_bytes() == (root / file).read_bytes(), file


def test_the_best_possible_is_stated_and_is_neither_chance_nor_certainty(tiny: Tiny) -> None:
    best = tiny[1]["best_possible"]
    assert isinstance(best, dict)
    assert 0.7 < best["expected_top_1"] < 0.99
    assert abs(best["test_top_1"] - best["expected_top_1"]) < 0.2


def test_an_existing_folder_is_not_replaced_unasked(tiny: Tiny) -> None:
    root, _ = tiny
    with pytest.raises(MisuseError, match="already exists"):
        folder.write(root, size="tiny", seed=3, executor=_NoPainter())


def test_an_unknown_size_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match=r"Did you mean tiny\? Known: medium, small, tiny"):
        folder.write(tmp_path / "w", size="tinny")  # type: ignore[arg-type]
    assert not (tmp_path / "w").exists()


class _NoPainter:
    def map(self, fn: object, blocks: object) -> object:
        raise AssertionError("nothing may be painted")
