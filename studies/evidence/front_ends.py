"""Real birds by ear: mel spectrograms against learned Gabor filters, labels against triplets beside them.

Training wants a GPU, which may sit in a machine without a table library. So the study has three parts:

    python -m studies.evidence.front_ends pack chipnotes.npz             a window of each clip of `birds_chipnotes`
    python -m studies.evidence.front_ends train chipnotes.npz DIR        on the GPU; writes the logits of each held-out
    fold python -m studies.evidence.front_ends score chipnotes.npz DIR        writes studies/results/front-ends.json

Every clip is answered by networks that did not hear its source recording, in five folds, with three seeds. Nothing is
chosen: all networks have the same settings, and the last epoch counts.
"""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from studies.evidence.study_parts import run_part

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard

COMMAND = "python -m studies.evidence.front_ends"
# Name, front end and objective.
VARIANTS = {
    "mel": ("mel", "labels"),
    "gabor": ("gabor", "labels"),
    "mel, triplet": ("mel", "triplet"),
    "gabor, triplet": ("gabor", "triplet"),
}
PAIRS = (("gabor", "mel"), ("mel, triplet", "mel"), ("gabor, triplet", "gabor"))
FOLDS, SEEDS, AT_ONCE = 5, (0, 1, 2), 5
NETWORK = "efficientnet_lite0"
HOW: dict[str, Any] = {
    "epochs": 40,
    "batch": 16,
    "lr": 1e-3,
    "weight_decay": 0.01,
    "warmup_epochs": 1.0,
    "best_by": "last",
    "workers": 2,
}


@dataclass(frozen=True)
class Job:
    """One training."""

    variant: str
    fold: int
    seed: int


def pack(out: Path) -> None:
    """Cuts the most salient window of each clip."""
    from fieldmark.audio.spectrograms import SPECTROGRAMS
    from fieldmark.features.sounds import Clip
    from fieldmark.training.sounds import open_sound_pack
    from studies.evidence.chipnotes import list_clips
    from studies.evidence.results import real_data

    data = real_data("birds_chipnotes")
    if data is None:
        return
    clips = list_clips(data)
    opened = [Clip(str(clip["path"]), None, None) for clip in clips]
    with tempfile.TemporaryDirectory() as folder:
        packed = open_sound_pack(opened, _open, SPECTROGRAMS["segment"], 1, Path(folder))
        kept = packed.owners >= 0
        names = sorted({clip["label"] for clip in clips})
        np.savez_compressed(
            out,
            windows=packed.windows[kept],
            labels=np.array([names.index(clip["label"]) for clip in clips], dtype=np.int32),
            folds=np.array([clip["fold"] for clip in clips]),
            names=np.array(names),
            items=np.array([clip["path"].name for clip in clips]),
            sources=np.array([clip["source"] for clip in clips]),
        )


def _open(path: str) -> IO[bytes]:
    return Path(path).open("rb")


def train_once(packed: Path, job: Job) -> Any:
    """The logits of the clips of one fold, by a network that learned from the others."""
    import torch

    from fieldmark.audio.spectrograms import SPECTROGRAMS
    from fieldmark.training.gabor import GaborFrontEnd, listen_through
    from fieldmark.training.loop import train
    from fieldmark.training.networks import answer_with_embedding, make_network, with_one_channel
    from fieldmark.training.objective_names import make_objective
    from fieldmark.training.recipe import Training
    from fieldmark.training.sounds import SoundPack, SoundSource, SoundTransform

    data = np.load(packed)
    settings, (front_end, objective_name) = SPECTROGRAMS["segment"], VARIANTS[job.variant]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    objective = make_objective(objective_name, classes=len(data["names"]))
    network = with_one_channel(
        make_network(NETWORK, "pretrained", classes=len(data["names"]), size=settings.frames, seed=job.seed)
    )
    if front_end == "gabor":
        listen_through(network, GaborFrontEnd(settings))
    plain = network.forward
    if objective.with_embedding:
        answer_with_embedding(network)
    transform = SoundTransform(settings, device, pictures=front_end == "mel")
    windows = SoundPack(data["windows"], np.arange(len(data["labels"]), dtype=np.int32), {})
    held_out = data["folds"] == job.fold
    own = np.flatnonzero(~held_out)
    source = SoundSource(windows, own, data["labels"][own], np.empty(0, dtype=np.int64))
    with tempfile.TemporaryDirectory() as scratch:
        how = Training(seed=job.seed, objective=objective_name, **HOW)
        trained = train(network, source, None, transform, how, objective=objective, scratch=Path(scratch))
    network.load_state_dict(trained.weights)
    network.forward = plain
    network.eval().to(device)
    with torch.inference_mode():
        asked = torch.from_numpy(data["windows"][held_out]).to(device)
        return network(transform([asked], None)).float().cpu().numpy()


def train_all(packed: Path, out: Path) -> None:
    """All trainings; what is done is written at once."""
    out.mkdir(parents=True, exist_ok=True)
    data = np.load(packed)
    shape = (len(data["labels"]), len(data["names"]))
    found = {f"{variant}/{seed}": np.full(shape, np.nan, np.float32) for variant in VARIANTS for seed in SEEDS}
    jobs = [Job(variant, fold, seed) for seed in SEEDS for fold in range(FOLDS) for variant in VARIANTS]
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        started = {pool.submit(train_once, packed, job): job for job in jobs}
        for done in as_completed(started):
            job, logits = started[done], done.result()
            inside = data["folds"] == job.fold
            found[f"{job.variant}/{job.seed}"][inside] = logits
            right = float((logits.argmax(axis=1) == data["labels"][inside]).mean())
            print(json.dumps({"variant": job.variant, "fold": job.fold, "seed": job.seed, "top_1": right}), flush=True)
            np.savez_compressed(out / "logits.npz", allow_pickle=False, **found)


def score(packed: Path, folder: Path) -> None:
    """Top-1 over all clips, by source recording, and how far variants are apart."""
    import fieldmark
    from fieldmark.runs.label_scores import LabelScores
    from fieldmark.tables.labels import Labels
    from studies.evidence.finetuning import ahead
    from studies.evidence.results import rounded, write_result
    from studies.evidence.tables import write_tables

    data, logits = np.load(packed), np.load(folder / "logits.npz")
    labels = Labels(tuple(data["names"].tolist()))
    truth = {
        "id": data["items"].tolist(),
        "label": [labels.names[code] for code in data["labels"]],
        "unit": data["sources"].tolist(),
    }

    def card(values: Any) -> Scorecard:
        assert np.isfinite(values).all()  # every fold was trained
        answers = LabelScores(tuple(truth["id"]), labels, values, "logit")
        return fieldmark.score("folder", answers, truth=truth, classes={"label": list(labels.names)})

    cards = {variant: [card(logits[f"{variant}/{seed}"]) for seed in SEEDS] for variant in VARIANTS}
    result = {
        "simulated": False,
        "clips": len(data["items"]),
        "sources": len(set(data["sources"].tolist())),
        "settings": {"network": NETWORK, "folds": FOLDS, "seeds": list(SEEDS), **HOW},
        "top_1": {variant: [rounded(one)["top_1"] for one in these] for variant, these in cards.items()},
        "top_1_ahead": {f"{one} of {other}": ahead(cards[one], cards[other]) for one, other in PAIRS},
    }
    print(json.dumps(result["top_1_ahead"], indent=1))
    print("written to", write_result("front-ends", result, f"{COMMAND} --help"), write_tables())


if __name__ == "__main__":
    run_part(__doc__, {"pack": pack, "train": train_all, "score": score})
