"""Real tables of later editions, without their photos and recordings."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from dataclasses import astuple
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.releases import open_dataset, release_of
from fieldmark.releases.checks import CHECKS, Count
from fieldmark.releases.fungitastic import RENAMED, read_part
from fieldmark.releases.fungitastic_check import TABLE_9
from fieldmark.storage.release import Release
from fieldmark.views.open_benchmark import open_benchmark, open_release

FEW_SHOT = {"Train": Count(4_293, 7_819, 2_427), "ClosedSet-Val": Count(1_099, 2_285, 570)}


def unpacked(source: Path, target: Path) -> Path:
    """A gzipped table of the real data, where a release has it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.decompress(source.read_bytes()))
    return target


@pytest.fixture(scope="module")
def few_shot(real_data, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("fungitastic")
    for part in ("Train", "Val", "Test"):
        name = f"FungiTastic-FewShot-{part}.csv"
        unpacked(real_data / "fungitastic_fewshot" / f"{name}.gz", root / "metadata" / "FungiTastic-FewShot" / name)
    return root


def test_the_tables_of_few_shot_hold_what_table_9_counts(few_shot):
    dataset = open_dataset("fungitastic", few_shot, "FewShot")
    assert len(dataset.media) == 7_819 + 2_285 + 1_911 and len(dataset.taxa) == 2_427
    report = CHECKS["fungitastic"](release_of("fungitastic", few_shot))
    counts = {part.part: part for part in report.counts}
    for part, count in FEW_SHOT.items():
        counted = counts[f"FungiTastic-FewShot-{part}"]
        assert counted.published[TABLE_9] == count
        assert (counted.found.observations, counted.found.photos, counted.found.classes) == astuple(count)[:3]
    test = counts["FungiTastic-FewShot-ClosedSet-Test"].found  # Table 2 is off by one here
    assert (test.observations, test.photos) == (999, 1_911)


@pytest.mark.parametrize(("name", "items"), [("fungitastic-fewshot", 7_819), ("fungiclef-2025", 4_293)])
def test_few_shot_is_laid_out_as_photos_and_as_observations(few_shot, name, items):
    benchmark = fieldmark.benchmark(name)
    opened = open_benchmark(benchmark, open_release(benchmark, few_shot))
    assert len(opened.items["train"]) == items and list(opened.truth) == ["val"]  # labels of test are not published
    assert len(opened.view.labels) == 2_427


def test_every_value_of_few_shot_is_read_as_it_stands(few_shot):
    name = "metadata/FungiTastic-FewShot/FungiTastic-FewShot-Val.csv"
    rows = read_part(Release(few_shot), name)
    with (few_shot / name).open(encoding="utf-8", newline="") as file:
        real = pl.DataFrame(list(csv.DictReader(file)))
    assert len(rows) == len(real) == 2_285
    for column in real.columns:
        ours, theirs = rows[RENAMED.get(column, column)], real[column]
        assert (ours.is_null() == (theirs == "")).all(), column
        if ours.dtype.is_numeric():
            assert np.allclose(ours.drop_nulls(), theirs.filter(theirs != "").cast(pl.Float64), rtol=0, atol=0), column
        elif ours.dtype == pl.String and column != "metaSubstrate":
            assert (ours.drop_nulls() == theirs.filter(theirs != "")).all(), column


def test_animalclef_2026_is_read_and_a_participants_run_answers_it(real_data, tmp_path):
    unpacked(real_data / "animalclef_2026" / "metadata.csv.gz", tmp_path / "metadata.csv")
    dataset = open_dataset("animalclef-2026", tmp_path)
    assert len(dataset.media) == 15_483 and len(dataset.taxa) == 1_102
    benchmark = fieldmark.benchmark("animalclef-2026")
    opened = open_benchmark(benchmark, open_release(benchmark, tmp_path))
    asked = opened.items["test"]
    assert len(asked) == 2_409 and len(opened.items["train"]) + len(opened.items["val"]) == 13_074
    lizards = set(asked.filter(pl.col("dataset") == "TexasHornedLizards")["item_id"])
    assert len(lizards) == 274
    assert not (dataset.taxa["dataset"] == "TexasHornedLizards").any()  # a dataset without any photo to learn from
    run = unpacked(real_data / "animalclef_2026" / "submission.csv.gz", tmp_path / "submission.csv")
    answers = benchmark.task.run.read(run, tuple(asked["item_id"]), opened.view.labels)
    assert set(answers.items) == set(asked["item_id"])
    names = answers.labels.names
    assert len(names) == pl.read_csv(run, infer_schema=False)["cluster"].n_unique()


@pytest.fixture
def fathomnet(real_data, tmp_path) -> Path:
    """The real taxonomy beside annotations that name each of its names once."""
    shutil.copy(real_data / "fathomnet_2025" / "taxonomy.csv", tmp_path)
    names = pl.read_csv(tmp_path / "taxonomy.csv")["label"].to_list()
    coco = {
        "images": [{"id": number, "file_name": f"{number}.png"} for number, _ in enumerate(names, 1)],
        "annotations": [{"id": n, "image_id": n, "category_id": n} for n, _ in enumerate(names, 1)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
    }
    (tmp_path / "dataset_train.json").write_text(json.dumps(coco))
    return tmp_path


def test_the_taxonomy_of_fathomnet_is_read_with_its_blank_ranks(fathomnet):
    dataset = open_dataset("fathomnet-2025", fathomnet)
    taxa = {row["label"]: row for row in dataset.taxa.iter_rows(named=True)}
    assert len(taxa) == 79
    fish = taxa["Sebastes diploproa"]
    assert fish["class"] is None and (fish["phylum"], fish["order"]) == ("Chordata", "Scorpaeniformes")
    assert fish["rank"] == "species" and taxa["Caridea"]["rank"] is None
    assert all(taxa["Caridea"][rank] is None for rank in ("kingdom", "order", "species"))
    told = " ".join(dataset.remarks)
    assert "6 names have blank ranks above their own" in told and "Tunicata (class, order)" in told
    assert "7 names have no rank at all" in told and "Pandalus amplus (species Pandalus ampla)" in told
    assert "does not tell apart: Terebellidae = Elpidia." in told


def test_every_block_of_birdclef_2026_is_listed_twice_and_counts_once(real_data, tmp_path, run_main):
    soundfile = pytest.importorskip("soundfile")
    shutil.copy(
        real_data / "birdclef_2026" / "train_soundscapes_labels_head.csv", tmp_path / "train_soundscapes_labels.csv"
    )
    table = pl.read_csv(tmp_path / "train_soundscapes_labels.csv", infer_schema=False)
    quiet = np.zeros(60 * 8_000, dtype=np.float32)
    for name in table["filename"].unique():
        (tmp_path / "train_soundscapes").mkdir(exist_ok=True)
        soundfile.write(tmp_path / "train_soundscapes" / name, quiet, 8_000)
    (tmp_path / "train_audio" / "22973").mkdir(parents=True)
    soundfile.write(tmp_path / "train_audio" / "22973" / "XC1.ogg", quiet[:8_000], 8_000)
    (tmp_path / "train.csv").write_text("primary_label,filename\n22973,22973/XC1.ogg\n")
    dataset = open_dataset("birdclef-2026", tmp_path)
    labels = table.unique()["primary_label"].str.split(";").list.len().sum()
    assert len(table) == 48 and len(dataset.events) == labels
    assert dataset.events.is_unique().all()
    code, printed, _ = run_main("check", "birdclef-2026", tmp_path)
    assert code == 0
    assert "24 of 48 rows of train_soundscapes_labels.csv repeat an earlier row" in " ".join(printed.split())
