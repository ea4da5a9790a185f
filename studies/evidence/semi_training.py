"""Fine-tuning Lite0 with few labels and many unlabeled photos of real birds: labels alone, FixMatch, class-aware
contrast, self-training, contrast before labels, and an oracle, from ImageNet and from scratch.

Training wants a GPU, which may sit in a machine without a table library. So the study has two parts:

    python -m studies.evidence.semi_training train PHOTOS DIR    on the GPU; writes what each training got right on test
    python -m studies.evidence.semi_training score DIR           writes studies/results/semi-training.json

The draws are those of `studies.evidence.semi` (half of the species in-class, 5 labels and 5 photos of val each, the
rest unlabeled with all photos of the other half). Beside unlabeled photos, labels are shown about as often as alone,
the oracle shows its many labels; the epoch is chosen on val, nothing on test, and no setting was tuned for any arm.
Labels alone are changed by RandAugment, while FixMatch and class-aware contrast change labeled photos by crops and
mirrors alone, as their authors do: a part of the difference may be that. `contrast` trains two views without labels
first, and is neither MoCo's queue nor its momentum encoder. ImageNet, on which the network was trained before, contains
some of these photos.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from studies.evidence.semi_draws import draw_parts, half_of_species, listed

SIZE_PX, BATCH, EACH = 160, 128, 3
DRAWS, SCRATCH_DRAWS = 5, 2
# An epoch shows all unlabeled photos once, and with them the labeled ones several times.
EPOCHS, SCRATCH_EPOCHS, CONTRAST_EPOCHS = 10, 20, 10
ARMS = ("supervised", "oracle", "fixmatch", "ccssl", "self-training", "contrast")
AT_ONCE = 6
OBJECTIVES = {
    "fixmatch": f"consistency:threshold=0.8,unlabeled_each={EACH}",
    "ccssl": f"class-aware-contrast:threshold=0.8,unlabeled_each={EACH},contrast=0.3",
}


def recipe_of(seed: int, start: str, **more: Any) -> Any:
    """The recipe that all arms start from."""
    from fieldmark.training.recipe import Recipe

    scratch = start == "scratch"
    fixed: dict[str, Any] = {
        "network": "efficientnet_lite0", "weights": "random" if scratch else "pretrained", "size": SIZE_PX,
        "epochs": SCRATCH_EPOCHS if scratch else EPOCHS, "batch": BATCH, "seed": seed, "workers": 2,
        "optimizer": "adamw", "lr": 2e-3 if scratch else 1e-3, "weight_decay": 0.05,
        "layer_decay": 1.0 if scratch else 0.75, "schedule": "cosine", "warmup_epochs": 1.0, "crop_scale": 0.4,
        "flip": True, "randaugment_ops": 2, "randaugment_magnitude": 9, "best_by": "top_1",
    }  # fmt: skip
    return Recipe(**fixed | more)


class Trainer:
    """One draw of photos, and networks that are trained on it."""

    def __init__(self, photos: Path, packs: Path, draw: int, start: str, tail: str = "balanced") -> None:
        train, test = listed(photos)
        inside = half_of_species(sorted(train))
        self.photos, self.packs, self.draw, self.start = photos, packs, draw, start
        self.parts = draw_parts(train, test, inside, draw, tail)
        self.code_of = {species: code for code, species in enumerate(inside)}
        self.parts["known"] = [one for one in self.parts["unlabeled"] if one[1] in self.code_of]

    def pack(self) -> None:
        """Packs all photos that trainings will ask for, before they look for them all at once."""
        how = recipe_of(self.draw, self.start)
        for parts in (("train",), ("val",), ("test",), ("unlabeled",), ("train", "unlabeled"), ("train", "known")):
            self.source(parts, np.zeros(0, dtype=np.int32), how)

    def codes(self, part: str) -> Any:
        """The class of each photo of a part, -1 for other species."""
        return np.array([self.code_of.get(species, -1) for _, species in self.parts[part]], dtype=np.int32)

    def source(self, parts: tuple[str, ...], labels: Any, how: Any) -> Any:
        """The photos of some parts, one after the other, with these labels."""
        from fieldmark.training.boxes import Crops
        from fieldmark.training.packs import open_pack
        from fieldmark.training.photos import PhotoSource, pack_side

        paths = [path for part in parts for path, _ in self.parts[part]]
        side_px = pack_side(SIZE_PX, how.eval_crop, how.eval_share)
        pack = open_pack(paths, lambda path: (self.photos / path).read_bytes(), side_px, "raw", self.packs)
        crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
        return PhotoSource(pack, np.arange(len(paths)), labels, None, crops)

    def fit(
        self,
        objective: Any,
        how: Any,
        parts: tuple[str, ...],
        labels: Any,
        *,
        begin: Any = None,
        two_views: bool = False,
        val: Any = None,
    ) -> Any:
        """A trained network, its weights, what it came to on val, and what happens to photos on their way into it."""
        from fieldmark.training.loop import train
        from fieldmark.training.networks import answer_with_embedding, make_network, normalization
        from fieldmark.training.photos import PhotoTransform
        from fieldmark.training.semi_objectives import Distillation, taught_labels
        from fieldmark.training.sources import WeakAndStrong

        network = make_network(how.network, how.weights, classes=len(self.code_of), size=SIZE_PX, seed=how.seed)
        if begin is not None:
            network.load_state_dict(begin)
        plain = network.forward
        if objective.with_embedding:
            answer_with_embedding(network)
        norm = normalization(network)
        strong = PhotoTransform(SIZE_PX, *norm, how.randaugment_ops, how.randaugment_magnitude)
        transform = WeakAndStrong(PhotoTransform(SIZE_PX, *norm), strong) if two_views else strong
        val = self.codes("val") if val is None else val
        if isinstance(objective, Distillation):
            val = taught_labels(val, np.zeros((0, len(self.code_of)), np.float32))
        with tempfile.TemporaryDirectory() as scratch:
            sources = self.source(parts, labels, how), self.source(("val",), val, how)
            trained = train(network, *sources, transform, how, objective=objective, scratch=Path(scratch))
        network.load_state_dict(trained.weights)
        network.forward = plain
        return network, trained.weights, trained.epochs[trained.best_epoch - 1]["val"], strong

    def answers(self, network: Any, part: str, how: Any, transform: Any) -> Any:
        """The logits of a part."""
        import torch

        from fieldmark.training.sources import evaluation_batches, prepared

        network.eval()
        source = self.source((part,), self.codes(part), how)
        device = next(network.parameters()).device
        batches = evaluation_batches(source, np.arange(len(source)), batch=256, workers=2, device=torch.device("cpu"))
        with torch.inference_mode():
            return np.concatenate(
                [network(batch.inputs).float().cpu().numpy() for batch in prepared(batches, transform, device)]
            )

    def run(self, arm: str) -> dict[str, Any]:
        """One arm of the study."""
        from fieldmark.training.objective_names import make_objective
        from fieldmark.training.objectives import SingleLabel
        from fieldmark.training.semi_objectives import Contrast, Distillation, taught_labels

        labeled, unlabeled = self.codes("train"), self.codes("unlabeled")
        hidden = np.full(len(unlabeled), -1, dtype=np.int32)
        # Labels alone are shown as often as beside unlabeled photos.
        turns = max(1, round(len(unlabeled) / EACH / len(labeled)))
        classes, both = len(self.code_of), ("train", "unlabeled")
        how = recipe_of(self.draw, self.start)
        label_how = recipe_of(self.draw, self.start, epochs=how.epochs * turns, warmup_epochs=float(turns), batch=32)
        begin = None
        if arm == "oracle":
            inside = unlabeled >= 0
            codes = np.concatenate([labeled, unlabeled[inside]])
            shown = recipe_of(self.draw, self.start, epochs=how.epochs * max(1, turns // 2), batch=32)
            network, _, val, transform = self.fit(SingleLabel(classes), shown, ("train", "known"), codes)
        elif arm in OBJECTIVES:
            objective = make_objective(OBJECTIVES[arm], classes=classes)
            codes = np.concatenate([labeled, hidden])
            network, _, val, transform = self.fit(objective, how, both, codes, two_views=True)
        else:
            if arm == "contrast":
                before = recipe_of(self.draw, self.start, epochs=CONTRAST_EPOCHS, best_by="last", crop_scale=0.2)
                labels = np.concatenate([labeled, hidden])
                _, begin, _, _ = self.fit(Contrast(classes), before, both, labels)
            network, _, val, transform = self.fit(SingleLabel(classes), label_how, ("train",), labeled, begin=begin)
            if arm == "self-training":
                logits = self.answers(network, "unlabeled", how, transform)
                taught = np.exp(logits - logits.max(axis=1, keepdims=True))
                taught = (taught / taught.sum(axis=1, keepdims=True)).astype(np.float32)
                labels = taught_labels(np.concatenate([labeled, hidden]), taught)
                objective = Distillation(classes, unlabeled_each=EACH)
                network, _, val, transform = self.fit(objective, how, both, labels)
        return self.outcome(arm, network, val["top_1"], how, transform)

    def outcome(self, arm: str, network: Any, val_top_1: float, how: Any, transform: Any) -> dict[str, Any]:
        """What a training got right on test, and how sure it is of unlabeled photos."""
        unlabeled = self.codes("unlabeled")
        right = self.answers(network, "test", how, transform).argmax(axis=1) == self.codes("test")
        guesses = self.answers(network, "unlabeled", how, transform)
        sure = np.exp(guesses - np.logaddexp.reduce(guesses, axis=1, keepdims=True)).max(axis=1)
        facts = {
            "arm": arm, "draw": self.draw, "start": self.start, "val_top_1": val_top_1,
            "top_1": float(right.mean()), "sure_in_class": float((sure[unlabeled >= 0] >= 0.8).mean()),
            "sure_out_of_class": float((sure[unlabeled < 0] >= 0.8).mean()),
        }  # fmt: skip
        return {"facts": facts, "right": right}


def _job(photos: Path, packs: Path, draw: int, start: str, arm: str) -> dict[str, Any]:
    return Trainer(photos, packs, draw, start).run(arm)


def train_all(photos: Path, out: Path) -> None:
    """All arms and draws; what is done is written at once, and is not repeated."""
    out.mkdir(parents=True, exist_ok=True)
    jobs = [(draw, "ImageNet", arm) for draw in range(DRAWS) for arm in ARMS]
    jobs += [(draw, "scratch", arm) for draw in range(SCRATCH_DRAWS) for arm in ARMS]
    facts: list[dict[str, Any]] = []
    right: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as packs,
        ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool,
    ):
        for draw in range(DRAWS):
            Trainer(photos, Path(packs), draw, "ImageNet").pack()
        started = {pool.submit(_job, photos, Path(packs), *job): job for job in jobs}
        for done in as_completed(started):
            try:
                run = done.result()
            except Exception as error:  # one arm that fails must not lose the others
                print("failed:", started[done], repr(error), flush=True)
                continue
            print(json.dumps(run["facts"]), flush=True)
            facts.append(run["facts"])
            right["-".join(str(one) for one in started[done])] = run["right"]
            (out / "runs.json").write_text(json.dumps(facts, indent=1))
            np.savez_compressed(out / "right.npz", **right)


def score(folder: Path) -> None:
    """Each arm against labels alone, over photos and draws."""
    from studies.evidence.results import write_result
    from studies.evidence.semi import against_supervised

    facts, right = json.loads((folder / "runs.json").read_text()), np.load(folder / "right.npz")
    sets: dict[str, Any] = {}
    for start, draws in (("ImageNet", DRAWS), ("scratch", SCRATCH_DRAWS)):
        rows: dict[str, Any] = {}
        for arm in ARMS:
            have = [d for d in range(draws) if {f"{d}-{start}-{arm}", f"{d}-{start}-supervised"} <= set(right.files)]
            if not have:
                continue
            own, base = (
                np.stack([right[f"{d}-{start}-{one}"] for d in have]).astype(float) for one in (arm, "supervised")
            )
            runs = [run for run in facts if run["arm"] == arm and run["start"] == start]
            rows[arm] = against_supervised(own, base, runs)
        sets[start] = rows
    result = {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n")[-1].split()),
        "settings": {"size_px": SIZE_PX, "epochs": EPOCHS, "scratch_epochs": SCRATCH_EPOCHS, "objectives": OBJECTIVES},
        "sets": sets,
        "runs": facts,
    }
    print("written to", write_result("semi-training", result, "python -m studies.evidence.semi_training --help"))


def main() -> None:
    """Runs one part of the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["train", "score"])
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    parts: dict[str, Callable[..., None]] = {"train": train_all, "score": score}
    parts[arguments.part](*arguments.paths)


if __name__ == "__main__":
    main()
