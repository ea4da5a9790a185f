"""Fine-tuning Lite0 on real birds: labels alone, with a head for genera, and with triplets, at equal epochs.

Training wants a GPU, which may sit in a machine without a table library. So the study has three parts:

    python -m studies.evidence.objectives list birds.json                the official test, val drawn from train, and
    genera python -m studies.evidence.objectives train birds.json PHOTOS DIR    on the GPU; writes the logits of test
    python -m studies.evidence.objectives score DIR                      writes studies/results/objectives.json

The settings are those that `studies.evidence.finetuning` chose on val for labels alone; nothing is chosen here.
Triplets do not go with mixup, so that labels are trained without it as well.
"""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.evidence.finetuning import (
    AT_ONCE,
    CHOSEN,
    SEEDS,
    SIZE_PX,
    ahead,
    answer_of,
    list_photos,
    pack_of,
    recipe_of,
)
from studies.evidence.study_parts import run_part

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard

COMMAND = "python -m studies.evidence.objectives"
VARIANTS: dict[str, dict[str, Any]] = {
    "labels": {},
    "auxiliary-rank": {"objective": "auxiliary-rank:ranks=genus"},
    "labels without mixup": {"mixup": 0.0},
    "triplet": {"objective": "triplet", "mixup": 0.0},
}
PAIRS = (("auxiliary-rank", "labels"), ("triplet", "labels without mixup"))


def list_with_genera(out: Path) -> None:
    """Which photo belongs to which part and class, and the genus of each class by its English name."""
    from studies.evidence.results import real_data

    names = real_data("bird_metadata")
    list_photos(out)
    if names is None or not out.exists():
        return
    listed = json.loads(out.read_text())
    lines = (names / "BirdNET_GLOBAL_6K_V2.4_Labels.txt").read_text(encoding="utf-8").splitlines()
    genus_of = {_plain(line.partition("_")[2]): line.split()[0] for line in lines}
    found = [genus_of.get(_plain(name.partition(".")[2])) for name in listed["classes"]]
    genera = sorted({genus for genus in found if genus})
    listed["genus"] = [genera.index(genus) if genus else -1 for genus in found]
    out.write_text(json.dumps(listed))
    print(f"{sum(genus is not None for genus in found)} of {len(found)} species have a genus, of {len(genera)}")


def _plain(name: str) -> str:
    return name.lower().replace("_", " ").replace("-", " ").replace("'", "")


def train_once(listed: dict[str, Any], photos: Path, packs: Path, variant: str, seed: int) -> dict[str, Any]:
    """One training; the logits of test."""
    from fieldmark.training.auxiliary_ranks import AuxiliaryRanks, rank_labels
    from fieldmark.training.boxes import Crops
    from fieldmark.training.loop import train
    from fieldmark.training.networks import answer_with_embedding, first_outputs, make_network, normalization
    from fieldmark.training.objective_names import make_objective
    from fieldmark.training.photos import PhotoSource, PhotoTransform

    how, classes = recipe_of("better", CHOSEN["better"] | VARIANTS[variant], seed), len(listed["classes"])
    objective, genus = make_objective(how.objective, classes=classes), np.array(listed["genus"], dtype=np.int32)
    if isinstance(objective, AuxiliaryRanks):
        objective = replace(objective, sizes=(int(genus.max()) + 1,))
    network = make_network(how.network, how.weights, classes=objective.outputs, size=SIZE_PX, seed=seed)
    plain = network.forward
    if objective.with_embedding:
        answer_with_embedding(network)
    transform = PhotoTransform(SIZE_PX, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)

    def source(part: str) -> PhotoSource:
        labels = np.array(listed[part]["labels"], dtype=np.int32)
        if isinstance(objective, AuxiliaryRanks):
            labels = rank_labels(labels, {"genus": genus})
        crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
        return PhotoSource(pack_of(listed, part, photos, packs, how), np.arange(len(labels)), labels, None, crops)

    with tempfile.TemporaryDirectory() as scratch:
        parts = source("train"), source("val")
        trained = train(network, *parts, transform, how, objective=objective, scratch=Path(scratch))
    network.reset_classifier(classes)
    network.load_state_dict(first_outputs(network, trained.weights, classes))
    network.forward = plain
    network.to(next(network.parameters()).device)
    facts = {"variant": variant, "seed": seed, "val": trained.epochs[trained.best_epoch - 1]["val"]}
    return {"facts": facts, "logits": answer_of(network, source("test"), transform)}


def train_all(listing: Path, photos: Path, out: Path) -> None:
    """All variants with all seeds; what is done is written at once."""
    out.mkdir(parents=True, exist_ok=True)
    listed, facts, logits = json.loads(listing.read_text()), [], []
    jobs = [(variant, seed) for seed in SEEDS for variant in VARIANTS]
    with (
        tempfile.TemporaryDirectory() as packs,
        ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool,
    ):
        how = recipe_of("better", CHOSEN["better"], 0)
        for part in ("train", "val", "test"):  # before the trainings look for them all at once
            pack_of(listed, part, photos, Path(packs), how)
        started = [pool.submit(train_once, listed, photos, Path(packs), *job) for job in jobs]
        for done in as_completed(started):
            run = done.result()
            print(json.dumps(run["facts"]), flush=True)
            facts.append(run["facts"])
            logits.append(run["logits"])
            (out / "runs.json").write_text(json.dumps(facts, indent=1))
            np.savez_compressed(out / "logits.npz", *logits)


def score(folder: Path) -> None:
    """Scores the logits on test, and each objective against labels alone."""
    import fieldmark
    from fieldmark.runs.label_scores import LabelScores
    from fieldmark.scoring import score_predictions
    from fieldmark.views.open_benchmark import open_benchmark
    from studies.evidence.results import real_data, rounded, write_result
    from studies.evidence.tables import write_tables

    data = real_data("birds_cub_odd")
    if data is None:
        return
    benchmark = fieldmark.benchmark("folder")
    opened = open_benchmark(benchmark, fieldmark.dataset("folder", data), seed=0)
    items, labels = tuple(opened.items["test"]["item_id"]), opened.view.labels
    facts, logits = json.loads((folder / "runs.json").read_text()), np.load(folder / "logits.npz")
    cards: dict[str, list[Scorecard]] = {variant: [] for variant in VARIANTS}
    for number, run in enumerate(facts):
        answers = LabelScores(items, labels, logits[f"arr_{number}"].astype(np.float32), "logit")
        truth, taxa = opened.truth["test"], opened.dataset.taxa
        card = score_predictions(benchmark, answers, truth, labels=labels, split="test", run=None, classes=taxa)
        cards[run["variant"]].append(card)
        run["metrics"] = rounded(card)
    result = {
        "simulated": False,
        "settings": {"recipe": "better", **CHOSEN["better"], "variants": VARIANTS, "seeds": list(SEEDS)},
        "runs": sorted(facts, key=lambda run: (list(VARIANTS).index(run["variant"]), run["seed"])),
        "top_1": {variant: [rounded(one)["top_1"] for one in these] for variant, these in cards.items()},
        "top_1_ahead": {f"{one} of {other}": ahead(cards[one], cards[other]) for one, other in PAIRS},
    }
    print(json.dumps(result["top_1_ahead"], indent=1))
    print("written to", write_result("objectives", result, f"{COMMAND} --help"), write_tables())


if __name__ == "__main__":
    run_part(__doc__, {"list": list_with_genera, "train": train_all, "score": score})
