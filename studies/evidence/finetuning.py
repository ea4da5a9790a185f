"""Fine-tuning Lite0 on real birds: the paper's recipe and the better one at equal epochs, beside the linear probe.

Training wants a GPU, which may sit in a machine without anything but torch. So the study has four parts:

    python -m studies.evidence.finetuning list birds.json                the official test, and the val the linear probe
    had python -m studies.evidence.finetuning choose birds.json PHOTOS DIR   on the GPU; tries settings in folds, never
    sees test python -m studies.evidence.finetuning train birds.json PHOTOS DIR    on the GPU; writes the logits of test
    python -m studies.evidence.finetuning score DIR                      writes studies/results/finetuning.json

`choose` and `train` write every training that ends, and go on where an earlier run was ended. A fifth
part needs no GPU and a quarter of an hour on two cores: the better recipe at 96 px beside the probe.

    python -m studies.evidence.finetuning small DIR                      writes studies/results/finetuning-small.json
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from studies.evidence.gpu_sharing import gpu_shared_by_children
from studies.evidence.study_parts import run_part

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard
    from fieldmark.training.recipe import Recipe

COMMAND = "python -m studies.evidence.finetuning"
EPOCHS, SIZE_PX = 20, 224
PAPER = "fungitastic-resnet50-224"
_BASE: dict[str, Any] = {"lr": 4e-3, "layer_decay": 0.75}
_CLOSE = _BASE | {"crop_scale": 0.3}
# What `choose` tries: around what had been best in an earlier study on val whatever may keep the better recipe from
# learning the photos by heart; for the paper's, two rates (its authors tried 0.01 and 0.1; 0.1 was far behind on val).
TRIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("better", _BASE),
    ("better", {"lr": 2e-3, "layer_decay": 0.9}),
    ("better", _CLOSE),
    ("better", _CLOSE | {"lr": 2e-3}),
    ("better", _CLOSE | {"weight_decay": 0.3}),
    ("better", _CLOSE | {"randaugment_magnitude": 20}),
    ("better", _CLOSE | {"loss": "cross-entropy", "label_smoothing": 0.1}),
    *((PAPER, {"lr": lr}) for lr in (0.01, 0.03)),
)
FOLDS = 3
# What other studies on these birds and on snakes have used: the highest macro-F1 on val in that earlier study.
CHOSEN: dict[str, dict[str, Any]] = {"better": _CLOSE, PAPER: {"lr": 0.01}}
# Both recipes learn from train while val chooses the epoch; the better one also from both, as the probe does.
REFITTED = "better, last epoch, train and val"
SEEDS = (0, 1, 2, 3, 4)
SMALL: dict[str, dict[str, Any]] = {
    "finetune": {"recipe": "better", **CHOSEN["better"], "size": 96, "epochs": 20, "best_by": "last"},
    "linear": {"size": 96},
}
# Eight share a GPU well (`studies.perf.sharing`); fifteen ran out of its memory.
AT_ONCE = 8


def list_photos(out: Path) -> None:
    """Writes which photo belongs to which part and class."""
    import fieldmark
    from fieldmark.views.open_benchmark import open_benchmark
    from studies.evidence.results import real_data

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


def in_folds(listed: dict[str, Any]) -> list[dict[str, Any]]:
    """Train and val of the release together, once for each fold with another third of every class as val."""
    both = {what: listed["train"][what] + listed["val"][what] for what in ("photos", "labels")}
    labels = np.array(both["labels"])
    rng, fold_of = np.random.default_rng(0), np.zeros(len(labels), dtype=int)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        fold_of[members] = np.arange(len(members)) % FOLDS

    def part(rows: Any) -> dict[str, Any]:
        return {what: [values[row] for row in np.flatnonzero(rows)] for what, values in both.items()}

    return [
        {"classes": listed["classes"], "train": part(fold_of != fold), "val": part(fold_of == fold)}
        for fold in range(FOLDS)
    ]


class Job(NamedTuple):
    """One training: which photos it learns from, how, and what is written down about it."""

    listed: dict[str, Any]
    recipe: str
    settings: dict[str, Any]
    seed: int
    facts: dict[str, Any]

    def among(self, runs: Sequence[dict[str, Any]]) -> bool:
        """Whether it has been done."""
        told = {"recipe": self.recipe, "settings": self.settings, "seed": self.seed, **self.facts}
        return any(all(run.get(what) == value for what, value in told.items()) for run in runs)


def train_once(job: Job, photos: Path, packs: Path) -> dict[str, Any]:
    """One training; returns what came of it on val and, where there is a test part, its logits."""
    from fieldmark.training.boxes import Crops
    from fieldmark.training.loop import train
    from fieldmark.training.networks import make_network, normalization
    from fieldmark.training.objectives import SingleLabel
    from fieldmark.training.photos import PhotoSource, PhotoTransform

    listed, recipe, settings, seed, facts = job
    how = recipe_of(recipe, settings, seed)
    network = make_network(
        how.network, how.weights, classes=len(listed["classes"]), size=SIZE_PX, drop_path=how.drop_path, seed=seed
    )
    transform = PhotoTransform(SIZE_PX, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)

    def source(part: str) -> PhotoSource:
        labels = np.array(listed[part]["labels"], dtype=np.int32)
        crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
        return PhotoSource(pack_of(listed, part, photos, packs, how), np.arange(len(labels)), labels, None, crops)

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
    found = {
        "recipe": recipe,
        "settings": settings,
        "seed": seed,
        "best_epoch": trained.best_epoch,
        "val": trained.epochs[trained.best_epoch - 1]["val"],
    }
    logits = answer_of(network, source("test"), transform) if "test" in listed else None
    return {"facts": found | facts, "logits": logits}


def recipe_of(recipe: str, settings: dict[str, Any], seed: int) -> Recipe:
    """A recipe with other settings, for the network, the size and the epochs of this study."""
    from fieldmark.training.recipe import Recipe, read_recipe

    fixed = {"network": "efficientnet_lite0", "size": SIZE_PX, "epochs": EPOCHS, "seed": seed, "workers": 2}
    return Recipe(**read_recipe(recipe) | fixed | settings)


def pack_of(listed: dict[str, Any], part: str, photos: Path, packs: Path, how: Recipe) -> Any:
    """The squares of a part."""
    from fieldmark.training.packs import open_pack
    from fieldmark.training.photos import pack_side

    side_px = pack_side(SIZE_PX, how.eval_crop, how.eval_share)
    return open_pack(listed[part]["photos"], lambda path: (photos / path).read_bytes(), side_px, "raw", packs)


def answer_of(network: Any, source: Any, transform: Any) -> Any:
    """The logits of all photos of a source."""
    import torch

    from fieldmark.training.sources import evaluation_batches, prepared

    network.eval()
    device = next(network.parameters()).device
    batches = evaluation_batches(source, np.arange(len(source)), batch=64, workers=2, device=torch.device("cpu"))
    with torch.inference_mode():
        found = [network(batch.inputs).float().cpu().numpy() for batch in prepared(batches, transform, device)]
    return np.concatenate(found).astype(np.float16)


def choose(listing: Path, photos: Path, out: Path) -> None:
    """Everything that is tried, in each fold, with the fold as its seed; what is done is written at once."""
    listed = json.loads(listing.read_text())
    jobs = [
        Job(parts, recipe, settings, fold, {"fold": fold})
        for fold, parts in enumerate(in_folds(listed))
        for recipe, settings in TRIED
    ]
    runs = _read(out / "trials.json")
    for run in _trained([job for job in jobs if not job.among(runs)], photos):
        runs.append(run["facts"])
        _write(out / "trials.json", runs)


def chosen(trials: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each recipe the settings with the highest macro-F1, mean of the folds."""
    found = {}
    for recipe in CHOSEN:
        values: dict[str, list[float]] = {}
        for run in trials:
            if run["recipe"] == recipe:
                values.setdefault(json.dumps(run["settings"]), []).append(run["val"]["macro_f1_all"])
        whole = {settings: np.mean(folds) for settings, folds in values.items() if len(folds) == FOLDS}
        if not whole:
            raise SystemExit(f"{recipe}: no settings were tried in all {FOLDS} folds; run `choose` to its end")
        found[recipe] = json.loads(max(whole, key=lambda settings: whole[settings]))
    return found


def train_all(listing: Path, photos: Path, out: Path) -> None:
    """Both recipes as they were chosen, with all seeds; what is done is written at once."""
    listed = json.loads(listing.read_text())
    settings = chosen(json.loads((out / "trials.json").read_text()))
    both = {what: listed["train"][what] + listed["val"][what] for what in ("photos", "labels")}
    last = settings["better"] | {"best_by": "last"}
    jobs = [
        *(Job(listed, name, how, seed, {"arm": name}) for seed in SEEDS for name, how in settings.items()),
        *(Job(listed | {"train": both}, "better", last, seed, {"arm": REFITTED}) for seed in SEEDS),
    ]
    runs, logits = _read(out / "runs.json"), list[Any]()
    if runs:
        with np.load(out / "logits.npz") as kept:
            logits += [kept[f"arr_{number}"] for number in range(len(runs))]
    for run in _trained([job for job in jobs if not job.among(runs)], photos):
        runs.append(run["facts"])
        logits.append(run["logits"])
        np.savez_compressed(out / "logits.npz", *logits)
        _write(out / "runs.json", runs)  # last: what it names has its logits


def _trained(jobs: Sequence[Job], photos: Path) -> Iterator[dict[str, Any]]:
    """The trainings, several at once, as they end."""
    with (
        tempfile.TemporaryDirectory() as packs,
        tempfile.TemporaryDirectory() as service,
        gpu_shared_by_children(Path(service)),
        ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool,
    ):
        for job in jobs:  # before the trainings look for them all at once
            for part in job.listed.keys() - {"classes"}:
                pack_of(job.listed, part, photos, Path(packs), recipe_of(job.recipe, job.settings, job.seed))
        started = [pool.submit(train_once, job, photos, Path(packs)) for job in jobs]
        for training in as_completed(started):
            run = training.result()
            print(json.dumps(run["facts"]), flush=True)
            yield run


def _read(path: Path) -> list[dict[str, Any]]:
    """What an earlier run has written; nothing where there was none."""
    return json.loads(path.read_text()) if path.exists() else []


def _write(path: Path, facts: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1))


def score(folder: Path) -> None:
    """Scores the logits on test with intervals, both recipes against each other and against the linear probe."""
    import fieldmark
    from fieldmark.fitting import answer_test, with_features
    from fieldmark.fitting.configuration import configured_method
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
    trials = json.loads((folder / "trials.json").read_text())
    facts, logits = json.loads((folder / "runs.json").read_text()), np.load(folder / "logits.npz")
    items, labels = tuple(opened.items["test"]["item_id"]), opened.view.labels

    def card(predictions: LabelScores) -> Scorecard:
        truth, taxa = opened.truth["test"], opened.dataset.taxa
        return score_predictions(benchmark, predictions, truth, labels=labels, split="test", run=None, classes=taxa)

    by_recipe: dict[str, list[Scorecard]] = {name: [] for name in (*CHOSEN, REFITTED)}
    for number, run in enumerate(facts):
        found = card(LabelScores(items, labels, logits[f"arr_{number}"].astype(np.float32), "logit"))
        by_recipe[run["arm"]].append(found)
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
        "folds": FOLDS,
        "chosen": chosen(trials),
        "trials": trials,
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
    from fieldmark.scoring import Scorecard
    from studies.evidence.results import real_data, rounded, write_result
    from studies.evidence.tables import write_tables

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


PARTS: dict[str, Callable[..., None]] = {
    "list": list_photos,
    "choose": choose,
    "train": train_all,
    "score": score,
    "small": small,
}

if __name__ == "__main__":
    run_part(__doc__, PARTS)
