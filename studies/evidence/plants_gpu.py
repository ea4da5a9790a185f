"""Networks trained on real sheets and field photos: both at once, two-stage, fsada and triplet.

    python -m studies.evidence.plants_gpu list plants.json                which picture is what; needs the table library
    python -m studies.evidence.plants_gpu train plants.json PHOTOS DIR    on a GPU; writes scores and features after
    each fold python -m studies.evidence.plants_gpu score plants.json DIR           writes
    studies/results/plants_gpu.json

Unseen: nine folds of four of the 36 species with field photos, whose field photos are hidden; they are recognized among
all 60. Seen: trained on all of train, on the test folder. The settings of the networks were fixed beforehand.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.features.alignment import principal_axes
from fieldmark.features.embeddings import unit_rows
from fieldmark.features.photos import views_of
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply.sources import load_backbone
from fieldmark.training.adaptation import Adaptation, DomainPictures, nearest_sheets, outputs, train_adapted

FOLDS, SIDE_PX, DIMENSIONS = 9, 256, 512
SETTINGS: dict[str, dict[str, Any]] = {
    "both": {"way": "both"},
    "two-stage": {"way": "two-stage"},
    "fsada": {"way": "fsada"},
    "fsada, genus and family": {"way": "fsada", "auxiliary": 0.3},
    "triplet": {"way": "triplet"},
}


def list_pictures(out: Path) -> None:
    """Writes for each picture its file, label, plant, domain and part, and the taxa of the labels."""
    from fieldmark.releases import open_dataset
    from fieldmark.tables.labels import Labels
    from fieldmark.tables.taxonomy import Taxonomy
    from studies.evidence.plants import FOLDER
    from studies.evidence.results import real_data

    root = real_data(FOLDER)
    if root is None:
        return
    dataset = open_dataset("folder", root)
    labels = Labels(tuple(dataset.taxa["label"]))
    taxonomy = Taxonomy.of(labels, dataset.taxa)
    media = dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")
    listed = {
        "file": media["path"].to_list(),
        "label": labels.encode(media["label"]).tolist(),
        "plant": media["observation_id"].to_list(),
        "field": (media["domain"].fill_null("photo") == "photo").to_list(),
        "test": (media["parts"].list.first() == "test").to_list(),
        "classes": len(labels),
        "taxa": {rank: taxonomy.ranks[rank][1].tolist() for rank in ("genus", "family")},
    }
    out.write_text(json.dumps(listed))


def train(listing: Path, photos: Path, out: Path) -> None:
    """Features of the frozen network, then every network on every fold, all ways at once on one GPU."""
    _freeze(listing, photos, out)
    with ProcessPoolExecutor(len(SETTINGS), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(train_one, name, listing, photos, out) for name in SETTINGS]):
            print("done:", done.result(), flush=True)


def _freeze(listing: Path, photos: Path, out: Path) -> None:
    """Writes the features of all pictures as `fieldmark fit` makes them, for one view and for zooms."""
    if (out / "frozen.npz").exists():
        return
    data = [(photos / file).read_bytes() for file in json.loads(listing.read_text())["file"]]
    backbone = load_backbone(FeatureSettings())
    made: dict[str, NDArray[np.float32]] = {}
    for views in ("one", "zooms"):
        total = np.zeros((len(data), 1), dtype=np.float32)
        shown = views_of(backbone.preprocessing, views)
        for how in shown:
            seen = replace(backbone, preprocessing=how)
            rows = [
                seen([seen.decode(one) for one in data[start : start + 64]])["features"]
                for start in range(0, len(data), 64)
            ]
            total = total + np.concatenate(rows).astype(np.float32)
        made[views] = total / np.float32(len(shown))
    np.savez_compressed(out / "frozen.npz", **made)  # type: ignore[arg-type]
    print("frozen features written", flush=True)


def train_one(name: str, listing: Path, photos: Path, out: Path) -> str:
    """Trains one way on every fold; what is there already is not trained again."""
    torch.set_num_threads(3)
    listed = json.loads(listing.read_text())
    squares = np.stack([_square(photos / file) for file in listed["file"]])
    for fold in range(FOLDS + 1):
        path = out / f"{file_name(name)}-{fold}.npz"
        if path.exists():
            continue
        start = time.monotonic()
        asked, learned = asked_in(listed, fold)
        answers = _answers(Adaptation(**SETTINGS[name]), squares, listed, learned, asked)
        np.savez_compressed(path, **answers)  # type: ignore[arg-type]
        print(name, "fold", fold, round(time.monotonic() - start), "s", flush=True)
    return name


def asked_in(listed: dict[str, Any], fold: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The pictures that a fold asks about, and those it learns from; the last one hides nothing and asks about test."""
    labels, field, test = (np.array(listed[name]) for name in ("label", "field", "test"))
    species = np.unique(labels[field & ~test])
    hidden = field & ~test & np.isin(labels, species[fold::FOLDS] if fold < FOLDS else [])
    return (hidden if fold < FOLDS else test), ~test & ~hidden


def file_name(name: str) -> str:
    """What a file of one way begins with."""
    return name.replace(", ", "-").replace(" ", "-")


def _square(path: Path) -> NDArray[np.uint8]:
    return np.asarray(Image.open(path).convert("RGB").resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC))


def _answers(
    how: Adaptation,
    squares: NDArray[np.uint8],
    listed: dict[str, Any],
    learned: NDArray[np.bool_],
    asked: NDArray[np.bool_],
) -> dict[str, NDArray[Any]]:
    labels, field = np.array(listed["label"]), np.array(listed["field"])
    taxa = {rank: np.array(codes) for rank, codes in listed["taxa"].items()}
    pictures = DomainPictures(squares[learned], labels[learned], field[learned], listed["classes"], taxa)
    network = train_adapted(how, pictures)
    said = outputs(network, squares, how.size, field)
    answers: dict[str, NDArray[Any]] = {"classifier": said["logits"][asked]}
    if how.way == "triplet":
        sheets = learned & ~field
        embedding = said["embedding"]
        answers["nearest sheets"] = nearest_sheets(
            embedding[sheets], labels[sheets], listed["classes"], embedding[asked]
        )
    features = unit_rows(said["features"])
    basis = principal_axes(features[learned].astype(np.float64), DIMENSIONS)
    answers["features"] = (features @ basis).astype(np.float16)
    return answers


def main() -> None:
    """Runs one part of the study."""
    parser = argparse.ArgumentParser(prog="python -m studies.evidence.plants_gpu", description=__doc__)
    parser.add_argument("part", choices=["list", "train", "score"])
    parser.add_argument("listing", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    given = parser.parse_args()
    if given.part == "list":
        list_pictures(given.listing)
    elif given.part == "train":
        train(given.listing, *given.folders)
    else:
        from studies.evidence.plants_gpu_scores import score

        score(given.listing, *given.folders)


if __name__ == "__main__":
    main()
