"""Fine-tuning with few labels of real birds, a long tail of them and as many of each: momentum contrast, coarse labels,
thresholds that adapt, and a balanced loss, beside what `studies.evidence.semi_training` measured.

Training wants a GPU, which may sit in a machine without a table library. So the study has two parts:

    python -m studies.evidence.semi_tails train PHOTOS DIR [--seconds 540]    on the GPU; goes on where it was stopped
    python -m studies.evidence.semi_tails score DIR                           writes studies/results/semi-tails.json

The draws are those of `studies.evidence.semi`: half of 100 species in-class; 5 labels each, or from 15 down to 1
(long-tailed), 5 photos of val each, the rest unlabeled with all photos of the other half. Coarse labels are groups of
names (sparrows, warblers). Labels alone come with RandAugment (`supervised`), with crops and mirrors alone, which is
how arms with two views see labeled photos, and with a balanced softmax. `fixmatch, adaptive` has FreeMatch's thresholds
and alignment; `fixmatch, within` guesses only species of the stated group, `coarse` is the hierarchical loss alone.
`moco` is momentum contrast of all photos before labels. Labels are shown about as often in each arm but the oracle. The
epoch is chosen on val, nothing on test; no setting was tuned for any arm. ImageNet contains some of these photos.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from studies.evidence.semi_draws import group_of
from studies.evidence.semi_training import EACH, SIZE_PX, Trainer, recipe_of

EPOCHS, SCRATCH_EPOCHS, MOCO_EPOCHS, SCRATCH_MOCO_EPOCHS = 10, 20, 20, 60
AT_ONCE = 6
TWO_VIEWS = {
    "fixmatch": f"consistency:threshold=0.8,unlabeled_each={EACH}",
    "fixmatch, adaptive": f"consistency:thresholds=freematch,align=true,unlabeled_each={EACH}",
    "fixmatch, within": f"consistency:threshold=0.8,unlabeled_each={EACH},within=true",
    "ccssl": f"class-aware-contrast:threshold=0.8,unlabeled_each={EACH},contrast=0.3",
    "coarse": f"consistency:weight=0,coarse=1,unlabeled_each={EACH}",
    "fixmatch, within, and coarse": f"consistency:threshold=0.8,unlabeled_each={EACH},within=true,coarse=1",
}
LABELS_ALONE = ("supervised", "supervised, crops alone", "supervised, balanced softmax")
# Start, tail, arms, draws.
PLAN: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("ImageNet", "long-tailed", (*LABELS_ALONE, "oracle", *TWO_VIEWS, "moco"), 5),
    (
        "ImageNet",
        "balanced",
        (*LABELS_ALONE[:2], "fixmatch, adaptive", "fixmatch, within", "coarse", "fixmatch, within, and coarse", "moco"),
        5,
    ),
    ("scratch", "balanced", ("supervised", "coarse", "moco"), 2),
)
Job = tuple[int, str, str, str]


class TailTrainer(Trainer):
    """One draw of photos, balanced or long-tailed, and networks that are trained on it."""

    def __init__(self, photos: Path, packs: Path, draw: int, start: str, tail: str, epochs: int = 0) -> None:
        super().__init__(photos, packs, draw, start, tail)
        self.tail = tail
        scratch = start == "scratch"
        self.epochs = epochs or (SCRATCH_EPOCHS if scratch else EPOCHS)
        self.moco_epochs = epochs or (SCRATCH_MOCO_EPOCHS if scratch else MOCO_EPOCHS)

    def run(self, arm: str) -> dict[str, Any]:
        """One arm of the study."""
        from fieldmark.training.objectives import SingleLabel

        labeled, unlabeled = self.codes("train"), self.codes("unlabeled")
        turns = max(1, round(len(unlabeled) / EACH / len(labeled)))
        how = recipe_of(self.draw, self.start, epochs=self.epochs)
        label_how = replace(how, epochs=self.epochs * turns, warmup_epochs=float(turns), batch=32)
        plain = SingleLabel(len(self.code_of))
        if arm in TWO_VIEWS:
            network, _, val, transform = self._two_views(TWO_VIEWS[arm], how)
        elif arm == "oracle":
            codes = np.concatenate([labeled, unlabeled[unlabeled >= 0]])
            shown = replace(how, epochs=self.epochs * max(1, turns // 2), batch=32)
            network, _, val, transform = self.fit(plain, shown, ("train", "known"), codes)
        else:
            begin = self._contrasted(how) if arm == "moco" else None
            if arm == "supervised, crops alone":
                label_how = replace(label_how, randaugment_ops=0)
            elif arm == "supervised, balanced softmax":
                label_how = replace(label_how, loss="balanced-softmax")
            network, _, val, transform = self.fit(plain, label_how, ("train",), labeled, begin=begin)
        outcome = self.outcome(arm, network, val["top_1"], how, transform)
        outcome["facts"]["tail"] = self.tail
        return outcome

    def _two_views(self, text: str, how: Any) -> Any:
        from fieldmark.training.consistency import Consistency
        from fieldmark.training.objective_names import make_objective

        objective = make_objective(text, classes=len(self.code_of))
        labeled, both = self.codes("train"), ("train", "unlabeled")
        codes = np.concatenate([labeled, np.full(len(self.parts["unlabeled"]), -1, dtype=np.int32)])
        if not (isinstance(objective, Consistency) and objective.reads_coarse):
            return self.fit(objective, how, both, codes, two_views=True)
        groups = sorted({group_of(species) for part in self.parts.values() for _, species in part})
        own = np.array([groups.index(group_of(species)) for species in self.code_of])
        allowed = own[None, :] == np.arange(len(groups))[:, None]
        stated = [groups.index(group_of(species)) for part in both for _, species in self.parts[part]]
        labels = np.column_stack([codes, stated]).astype(np.int32)
        val = self.codes("val")
        val = np.column_stack([val, np.zeros_like(val)])
        return self.fit(replace(objective, allowed=allowed), how, both, labels, two_views=True, val=val)

    def _contrasted(self, how: Any) -> Any:
        """The weights that momentum contrast of all photos gives, with those of a new head."""
        from fieldmark.training.loop import train
        from fieldmark.training.momentum import MomentumContrast, MomentumPair
        from fieldmark.training.networks import make_network, normalization
        from fieldmark.training.photos import PhotoTransform

        before = replace(how, epochs=self.moco_epochs, best_by="last", crop_scale=0.2, layer_decay=1.0)
        both = ("train", "unlabeled")
        photos = sum(len(self.parts[part]) for part in both)
        source = self.source(both, np.zeros(photos, dtype=np.int32), before)
        network = make_network(how.network, how.weights, classes=len(self.code_of), size=SIZE_PX, seed=how.seed)
        new_head = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        transform = PhotoTransform(SIZE_PX, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)
        pair = MomentumPair(network, queue=photos // 4, momentum=0.99, temperature=0.2, dimensions=128, seed=how.seed)
        with tempfile.TemporaryDirectory() as scratch:
            trained = train(pair, source, None, transform, before, objective=MomentumContrast(1), scratch=Path(scratch))
        head = f"{network.default_cfg['classifier']}."
        own = MomentumPair.network_weights(trained.weights)
        return {name: new_head[name] if name.startswith(head) else tensor for name, tensor in own.items()}


def jobs_of_plan(draws: int = 0) -> list[Job]:
    """All trainings; first draws first, so that a study that was stopped has every arm."""
    jobs = [
        (draw, start, tail, arm)
        for start, tail, arms, number in PLAN
        for draw in range(min(number, draws or number))
        for arm in arms
    ]
    return sorted(jobs, key=lambda job: job[0])


def name_of(job: Job) -> str:
    """What a training is called in the files of results."""
    return "-".join(str(one) for one in job)


def _job(photos: Path, packs: Path, epochs: int, job: Job) -> dict[str, Any]:
    draw, start, tail, arm = job
    return TailTrainer(photos, packs, draw, start, tail, epochs).run(arm)


def train_all(photos: Path, out: Path, *, seconds: float, draws: int, epochs: int, at_once: int) -> None:
    """All trainings that are not there yet; each is written at once, and none is begun when the time is up."""
    out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    facts: list[dict[str, Any]] = []
    right: dict[str, Any] = {}
    if (out / "right.npz").exists():
        facts = json.loads((out / "runs.json").read_text())
        with np.load(out / "right.npz") as kept:
            right = {name: kept[name] for name in kept.files}
    waiting = [job for job in jobs_of_plan(draws) if name_of(job) not in right]
    print(f"{len(right)} trainings are there, {len(waiting)} to go", flush=True)
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(at_once, mp_context=get_context("spawn")) as pool,
    ):
        packs, going = Path(name), dict[Future[dict[str, Any]], Job]()
        packed: set[tuple[int, str]] = set()
        while waiting or going:
            while waiting and len(going) < at_once and time.monotonic() < until:
                job = waiting.pop(0)
                if (job[0], job[2]) not in packed:
                    TailTrainer(photos, packs, *job[:3]).pack()
                    packed.add((job[0], job[2]))
                going[pool.submit(_job, photos, packs, epochs, job)] = job
            if not going:
                print(f"time is up: {len(waiting)} trainings are left; run it again with the same folder", flush=True)
                return
            for done in wait(going, return_when=FIRST_COMPLETED).done:
                job = going.pop(done)
                try:
                    run = done.result()
                except Exception as error:  # one training that fails must not lose the others
                    print("failed:", job, repr(error), flush=True)
                    continue
                print(json.dumps(run["facts"]), flush=True)
                facts.append(run["facts"])
                right[name_of(job)] = run["right"]
                (out / "runs.json").write_text(json.dumps(facts, indent=1))
                np.savez_compressed(out / "right.partial.npz", **right)
                (out / "right.partial.npz").replace(out / "right.npz")


def score(folder: Path) -> None:
    """Each arm against labels alone, over photos and draws."""
    from studies.evidence.results import write_result
    from studies.evidence.semi import against_supervised

    facts = json.loads((folder / "runs.json").read_text())
    with np.load(folder / "right.npz") as kept:
        right = {name: kept[name] for name in kept.files}
    sets: dict[str, Any] = {}
    for start, tail, arms, draws in PLAN:
        rows: dict[str, Any] = {}
        for arm in arms:
            names = [[name_of((draw, start, tail, one)) for one in (arm, "supervised")] for draw in range(draws)]
            have = [pair for pair in names if set(pair) <= set(right)]
            if not have:
                continue
            own, base = (np.stack([right[pair[which]] for pair in have]).astype(float) for which in (0, 1))
            runs = [run for run in facts if (run["start"], run["tail"], run["arm"]) == (start, tail, arm)]
            rows[arm] = against_supervised(own, base, runs)
        sets[f"{start}, {tail}"] = rows
    result = {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n")[-1].split()),
        "settings": {"size_px": SIZE_PX, "epochs": EPOCHS, "moco_epochs": MOCO_EPOCHS, "objectives": TWO_VIEWS}
        | {"scratch_epochs": SCRATCH_EPOCHS, "scratch_moco_epochs": SCRATCH_MOCO_EPOCHS},
        "sets": sets,
        "runs": facts,
    }
    print("written to", write_result("semi-tails", result, "python -m studies.evidence.semi_tails --help"))


def main() -> None:
    """Runs one part of the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    train = parts.add_parser("train")
    train.add_argument("photos", type=Path)
    train.add_argument("out", type=Path)
    train.add_argument("--seconds", type=float, default=1e9, help="begin no further training after so long")
    train.add_argument("--draws", type=int, default=0, help="at most so many draws; 0 for all")
    train.add_argument("--epochs", type=int, default=0, help="for a try: so many epochs instead of those of the study")
    train.add_argument("--at-once", type=int, default=AT_ONCE, help="how many trainings at a time")
    parts.add_parser("score").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.part == "score":
        score(given.folder)
    else:
        train_all(
            given.photos,
            given.out,
            seconds=given.seconds,
            draws=given.draws,
            epochs=given.epochs,
            at_once=given.at_once,
        )


if __name__ == "__main__":
    main()
