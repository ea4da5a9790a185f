"""Fine-tuning Lite0 on real birds: the paper's recipe and the better one at equal epochs, beside the linear probe.

Training wants a GPU, which may sit in a machine without anything but torch. So the study has four parts:

    python -m evidence.finetuning list birds.json                the official test, and the val the linear probe had
    python -m evidence.finetuning choose birds.json PHOTOS DIR   on the GPU; tries settings on val, never sees test
    python -m evidence.finetuning train birds.json PHOTOS DIR    on the GPU; writes the logits of test
    python -m evidence.finetuning score DIR                      writes docs/results/finetuning.json

A fifth needs no GPU and a quarter of an hour on two cores: the better recipe at 96 px beside the probe.

    python -m evidence.finetuning small DIR                      writes docs/results/finetuning-small.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard
    from fieldmark.training.recipe import Recipe

COMMAND = "python -m evidence.finetuning"
EPOCHS, SIZE_PX = 20, 224
PAPER = "fungitastic-resnet50-224"
_BASE: dict[str, Any] = {"lr": 4e-3, "layer_decay": 0.75}
_SGD: dict[str, Any] = {"optimizer": "sgd", "weight_decay": 1e-4, "layer_decay": 1.0}
# What `choose` tries, with seeds of its own: rates (the authors of the paper tried 0.01 and 0.1), then, around the
# best of the better recipe, whatever may keep it from learning the photos by heart.
TRIED: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("better", {"lr": lr, "layer_decay": decay}) for decay in (0.75, 0.9) for lr in (1e-3, 2e-3, 4e-3, 8e-3)),
    *((PAPER, {"lr": lr}) for lr in (0.01, 0.1)),
    ("better", _BASE | {"crop_scale": 0.3}),
    ("better", _BASE | {"randaugment_magnitude": 20}),
    ("better", _BASE | {"mixup": 0.8}),
    ("better", _BASE | {"drop_path": 0.2}),
    ("better", _BASE | {"weight_decay": 0.3}),
    ("better", _BASE | {"loss": "cross-entropy", "label_smoothing": 0.1}),
    ("better", _SGD | {"lr": 0.02}),
    ("better", _SGD | {"lr": 0.05}),
)
TRIAL_SEEDS = (100, 101)
# The highest macro-F1 on val, mean of the trial seeds.
CHOSEN: dict[str, dict[str, Any]] = {"better": _BASE | {"crop_scale": 0.3}, PAPER: {"lr": 0.01}}
SEEDS = (0, 1, 2, 3, 4)
SMALL: dict[str, dict[str, Any]] = {
    "finetune": {"recipe": "better", **CHOSEN["better"], "size": 96, "epochs": 20, "best_by": "last"},
    "linear": {"size": 96},
}
AT_ONCE = 10


def list_photos(out: Path) -> None:
    """Writes which photo belongs to which part and class."""
    import fieldmark
    from evidence.results import real_data
    from fieldmark.opening import open_benchmark

    data = real_data("birds_cub_odd")
    if data is None:
        return
    opened = open_benchmark(fieldmark.benchmark("folder"), fieldmark.dataset("folder", data), seed=0)
    labels = opened.view.labels
    path_of = dict(zip(opened.dataset.media["media_id"], opened.dataset.media["path"], strict=True))
    listed = {
        part: {"photos": [path_of[item] for item in table["item_id"]], "labels": labels.encode(table["label"]).tolist()}
        for part, table in opened.items.items()
        if part in ("train", "val", "test")
    }
    out.write_text(json.dumps({"classes": list(labels.names), **listed}))


def train_once(
    listed: dict[str, Any], photos: Path, packs: Path, recipe: str, settings: dict[str, Any], seed: int, answer: bool
) -> dict[str, Any]:
    """One training; returns what came of it on val and, where asked to `answer`, the logits of test."""
    from fieldmark.training.boxes import Crops
    from fieldmark.training.loop import train
    from fieldmark.training.networks import make_network, normalization
    from fieldmark.training.objectives import SingleLabel
    from fieldmark.training.photos import PhotoSource, PhotoTransform

    how = _how(recipe, settings, seed)
    network = make_network(
        how.network, how.weights, classes=len(listed["classes"]), size=SIZE_PX, drop_path=how.drop_path, seed=seed
    )
    transform = PhotoTransform(SIZE_PX, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)

    def source(part: str) -> PhotoSource:
        labels = np.array(listed[part]["labels"], dtype=np.int32)
        crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
        return PhotoSource(_pack(listed, part, photos, packs, how), np.arange(len(labels)), labels, None, crops)

    with tempfile.TemporaryDirectory() as scratch:
        trained = train(
            network,
            source("train"),
            source("val"),
            transform,
            how,
            objective=SingleLabel(len(listed["classes"])),
            scratch=Path(scratch),
        )
    network.load_state_dict(trained.weights)
    facts = {
        "recipe": recipe,
        "settings": settings,
        "seed": seed,
        "best_epoch": trained.best_epoch,
        "val": trained.epochs[trained.best_epoch - 1]["val"],
    }
    return {"facts": facts, "logits": _answer(network, source("test"), transform) if answer else None}


def _how(recipe: str, settings: dict[str, Any], seed: int) -> Recipe:
    from fieldmark.training.recipe import Recipe, read_recipe

    fixed = {"network": "efficientnet_lite0", "size": SIZE_PX, "epochs": EPOCHS, "seed": seed, "workers": 2}
    return Recipe(**read_recipe(recipe) | fixed | settings)


def _pack(listed: dict[str, Any], part: str, photos: Path, packs: Path, how: Recipe) -> Any:
    from fieldmark.training.packing import open_pack
    from fieldmark.training.photos import pack_side

    side_px = pack_side(SIZE_PX, how.eval_crop, how.eval_share)
    return open_pack(listed[part]["photos"], lambda path: (photos / path).read_bytes(), side_px, "raw", packs)


def _answer(network: Any, source: Any, transform: Any) -> Any:
    import torch

    from fieldmark.training.sources import evaluation_batches, prepared

    network.eval()
    device = next(network.parameters()).device
    batches = evaluation_batches(source, np.arange(len(source)), batch=64, workers=2, device=torch.device("cpu"))
    with torch.inference_mode():
        found = [network(batch.inputs).float().cpu().numpy() for batch in prepared(batches, transform, device)]
    return np.concatenate(found).astype(np.float16)


def choose(listing: Path, photos: Path, out: Path) -> None:
    """Everything that is tried, on val; what is done is written at once."""
    runs = []
    for run in _trained(listing, photos, [(name, how, seed) for seed in TRIAL_SEEDS for name, how in TRIED], False):
        runs.append(run["facts"])
        _write(out / "trials.json", runs)


def train_all(listing: Path, photos: Path, out: Path) -> None:
    """Both recipes with all seeds; what is done is written at once."""
    runs, logits = [], []
    for run in _trained(listing, photos, [(name, how, seed) for seed in SEEDS for name, how in CHOSEN.items()], True):
        runs.append(run["facts"])
        logits.append(run["logits"])
        _write(out / "runs.json", runs)
        np.savez_compressed(out / "logits.npz", *logits)


def _trained(listing: Path, photos: Path, jobs: list[tuple[str, dict[str, Any], int]], answer: bool) -> Iterator[Any]:
    """The trainings, several at once, as they end."""
    listed = json.loads(listing.read_text())
    with (
        tempfile.TemporaryDirectory() as packs,
        ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool,
    ):
        for how in (_how(*job) for job in jobs):  # before the trainings look for them all at once
            for part in ("train", "val", "test") if answer else ("train", "val"):
                _pack(listed, part, photos, Path(packs), how)
        started = [pool.submit(train_once, listed, photos, Path(packs), *job, answer) for job in jobs]
        for job in as_completed(started):
            run = job.result()
            print(json.dumps(run["facts"]), flush=True)
            yield run


def _write(path: Path, facts: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1))


def score(folder: Path) -> None:
    """Scores the logits on test with intervals, both recipes against each other and against the linear probe."""
    import fieldmark
    from evidence.results import real_data, rounded, write_result
    from evidence.tables import write_tables
    from fieldmark.fitting import answer_test, with_features
    from fieldmark.fitting.configuring import configured_method
    from fieldmark.opening import open_benchmark
    from fieldmark.runs.label_scores import LabelScores
    from fieldmark.scoring import score_predictions

    data = real_data("birds_cub_odd")
    if data is None:
        return
    benchmark = fieldmark.benchmark("folder")
    opened = open_benchmark(benchmark, fieldmark.dataset("folder", data), seed=0)
    facts, logits = json.loads((folder / "runs.json").read_text()), np.load(folder / "logits.npz")
    items, labels = tuple(opened.items["test"]["item_id"]), opened.view.labels

    def card(predictions: LabelScores) -> Scorecard:
        truth, taxa = opened.truth["test"], opened.dataset.taxa
        return score_predictions(benchmark, predictions, truth, labels=labels, split="test", run=None, classes=taxa)

    by_recipe: dict[str, list[Scorecard]] = {name: [] for name in CHOSEN}
    for number, run in enumerate(facts):
        found = card(LabelScores(items, labels, logits[f"arr_{number}"].astype(np.float32), "logit"))
        by_recipe[run["recipe"]].append(found)
        run["metrics"] = rounded(found)
    with tempfile.TemporaryDirectory() as temporary:
        refitted = fieldmark.fit("folder", data, "linear", Path(temporary, "linear"), settings={"size": SIZE_PX})
    linear = configured_method("linear", {"size": SIZE_PX})
    view = with_features(opened, linear)
    probes = {
        "train": card(answer_test(opened, view, linear.method, ())),
        "train and val": refitted.scorecard,
    }
    result = {
        "simulated": False,
        "epochs": EPOCHS,
        "size_px": SIZE_PX,
        "chosen": CHOSEN,
        "trials": json.loads((folder / "trials.json").read_text()),
        "runs": facts,
        "linear_on": {photos: rounded(probe) for photos, probe in probes.items()},
        "top_1_ahead_of_linear_on": {
            photos: {name: ahead(these, [probe]) for name, these in by_recipe.items()}
            for photos, probe in probes.items()
        },
        "top_1_better_ahead_of_paper": ahead(by_recipe["better"], by_recipe[PAPER]),
    }
    print("written to", write_result("finetuning", result, f"{COMMAND} --help"), write_tables())


def small(folder: Path) -> None:
    """The better recipe at 96 px beside the linear probe; fits that `folder` has already are not repeated."""
    import fieldmark
    from evidence.results import real_data, rounded, write_result
    from evidence.tables import write_tables
    from fieldmark.scoring import Scorecard

    data = real_data("birds_cub_odd")
    if data is None:
        return
    cards = {}
    for method, settings in SMALL.items():
        if not (folder / method).exists():
            fieldmark.fit("folder", data, method, folder / method, settings=settings)
        cards[method] = Scorecard.read(folder / method / "scorecard.json")
    result = {
        "simulated": False,
        "settings": SMALL,
        "scores": {method: rounded(card) for method, card in cards.items()},
        "top_1_ahead_by": ahead([cards["finetune"]], [cards["linear"]]),
    }
    print("written to", write_result("finetuning-small", result, f"{COMMAND} small DIR"), write_tables())


def ahead(these: Sequence[Scorecard], others: Sequence[Scorecard]) -> list[float]:
    """By how much the mean top-1 of some trainings exceeds that of others, with a 95 % interval over photos and seeds.

    Photos and seeds are drawn apart from each other, so their variances add up; the degrees of freedom are those of
    Satterthwaite. What was fitted once, without a seed, has no variance over seeds.
    """
    assert len({card.unit_ids for card in (*these, *others)}) == 1  # the same photos in the same order
    ours, theirs = (np.stack([card.pseudo["top_1"] for card in cards]) for cards in (these, others))
    by_photo = ours.mean(axis=0) - theirs.mean(axis=0)
    parts = [(float(by_photo.var(ddof=1)) / len(by_photo), len(by_photo) - 1)]
    for values in (ours, theirs):
        if len(values) > 1:
            parts.append((float(values.mean(axis=1).var(ddof=1)) / len(values), len(values) - 1))
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / count for part, count in parts)
    reach = float(student.ppf(0.975, freedom)) * variance**0.5
    mean = float(by_photo.mean())
    return [round(value, 4) for value in (mean, mean - reach, mean + reach)]


def main() -> None:
    """Runs one part of the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[..., None]] = {
        "list": list_photos,
        "choose": choose,
        "train": train_all,
        "score": score,
        "small": small,
    }
    parser.add_argument("part", choices=list(parts))
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    parts[arguments.part](*arguments.paths)


if __name__ == "__main__":
    main()
