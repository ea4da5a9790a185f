"""Encoders trained on half of the species of a group, judged on the other half and on other groups of real photos.

Training wants a GPU, which may sit in a machine without anything but torch, timm and scikit-learn. Three parts:

    python -m studies.evidence.encoders pack photos.npz               photos made smaller, with species and genus
    python -m studies.evidence.encoders train photos.npz DIR          on the GPU; goes on where an earlier run was ended
    python -m studies.evidence.encoders write DIR                     writes studies/results/encoders.json

For each of five seeds the classes of a group are halved at random. Settings are chosen on birds, by halving the species
learned from once more; they never meet the species that are reported with the same seed. Heads: one shrunk covariance,
the nearest mean, scikit-learn's logistic regression and nearest neighbor.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.evidence.gpu_sharing import gpu_shared_by_children
from studies.evidence.study_parts import run_part

SIDE_PX, QUALITY, MOST_PER_CLASS = 168, 72, 30
SEEDS = (0, 1, 2, 3, 4)
EPISODES, SHOTS = 20, 4
AT_ONCE = 8
ALL_GROUPS = "all"
CHOSEN_ON = "birds"
# What is tried around the recipe, which was described elsewhere: cross-entropy alone, no pull, no halfway weights,
# relatives as weaker partners, longer, quicker.
TRIED: Mapping[str, dict[str, Any]] = {
    "recipe": {},
    "lr 1e-3": {"lr": 1e-3},
    "30 epochs, lr 2e-3": {"epochs": 30, "lr": 2e-3},
    "30 epochs": {"epochs": 30},
    "30 epochs, lr 1e-3": {"epochs": 30, "lr": 1e-3},
    "relatives": {"relatives": 0.3},
    "cross-entropy alone": {"contrast": 0.0, "pull": 0.0, "keep": 1.0},
    "no pull": {"pull": 0.0},
    "end weights": {"keep": 1.0},
}
# Arms that show what each idea is worth, and are never chosen.
CONTROLS = ("cross-entropy alone", "no pull", "end weights")
OWN_SETTINGS = ("contrast", "temperature", "pull", "relatives", "each")


@dataclass(frozen=True)
class Photos:
    """Photos of one or more groups as JPEGs, with the species and genus of each by name."""

    data: Sequence[bytes]
    groups: NDArray[Any]
    species: NDArray[Any]
    genera: NDArray[Any]

    @classmethod
    def load(cls, path: Path) -> Photos:
        with np.load(path) as kept:
            ends = np.cumsum(kept["sizes"])
            raw = kept["bytes"].tobytes()
            data = [raw[end - size : end] for end, size in zip(ends, kept["sizes"], strict=True)]
            return cls(data, *(kept[name] for name in ("groups", "species", "genera")))

    def rows(self, group: str, species: Sequence[str] | None = None) -> NDArray[np.int64]:
        inside = self.groups == group
        return np.flatnonzero(inside if species is None else inside & np.isin(self.species, species))

    def halves(self, group: str, seed: int, among: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
        """The species of a group, or some of them, in two halves drawn at random."""
        names = np.unique(self.species[self.rows(group, among)])
        drawn = np.random.default_rng([seed, len(names)]).permutation(names).tolist()
        return sorted(drawn[: len(drawn) // 2]), sorted(drawn[len(drawn) // 2 :])


def pack(out: Path) -> None:
    """Writes the photos of all groups into one file, at most 30 of a class, 168 px along the shorter side."""
    from PIL import Image

    from studies.evidence.results import real_data

    listed: list[tuple[str, str, str, Path]] = []
    for group, (name, find) in FOLDERS.items():
        root = real_data(name)
        if root is not None:
            listed += [(group, *each) for each in _spread(list(find(root)))]
    sizes, joined = [], bytearray()
    for *_, path in listed:
        with Image.open(path) as photo:
            small = photo.convert("RGB")
            scale = SIDE_PX / min(small.size)
            shrunk = small.resize([max(1, round(side * scale)) for side in small.size]) if scale < 1 else small
            buffer = io.BytesIO()
            shrunk.save(buffer, "JPEG", quality=QUALITY)
        joined += buffer.getvalue()
        sizes.append(len(buffer.getvalue()))
    columns = dict(zip(("groups", "species", "genera"), zip(*(row[:3] for row in listed), strict=True), strict=True))
    arrays = {name: np.array(values) for name, values in columns.items()}
    arrays |= {"bytes": np.frombuffer(bytes(joined), dtype=np.uint8), "sizes": np.array(sizes)}
    np.savez(out, **arrays)  # type: ignore[arg-type]
    print(f"{len(sizes):,} photos, {len(joined) / 2**20:.1f} MiB in {out}")


def _spread(listed: list[tuple[str, str, Path]]) -> list[tuple[str, str, Path]]:
    """At most so many photos of each class, evenly spread over its files."""
    by_class: dict[str, list[tuple[str, str, Path]]] = {}
    for one in sorted(listed):
        by_class.setdefault(one[0], []).append(one)
    kept = []
    for own in by_class.values():
        rows = np.linspace(0, len(own) - 1, min(len(own), MOST_PER_CLASS)).round().astype(int)
        kept += [own[row] for row in rows]
    return kept


def _birds(root: Path) -> Iterator[tuple[str, str, Path]]:
    for path in root.glob("*/*/*.jpg"):
        yield path.parent.name, path.parent.name.rpartition("_")[2], path


def _classes(root: Path, pattern: str) -> Iterator[tuple[str, str, Path]]:
    for path in root.glob(pattern):
        yield path.parent.name, path.parent.name.partition("_")[0], path


def _butterflies(root: Path) -> Iterator[tuple[str, str, Path]]:
    for path in root.glob("images/*"):
        yield path.name[:3], path.name[:3], path


def _plants(root: Path) -> Iterator[tuple[str, str, Path]]:
    for path in [*root.glob("train/photo/*/*.jpg"), *root.glob("test/*/*.jpg")]:
        yield path.parent.name, path.parent.name, path


Finder = Callable[[Path], Iterator[tuple[str, str, Path]]]
FOLDERS: Mapping[str, tuple[str, Finder]] = {
    "birds": ("birds_cub_odd", _birds),
    "fungi": ("fungi_genera", partial(_classes, pattern="*/*.jp*g")),
    "snakes": ("snakes_philippines", partial(_classes, pattern="*/*/*.jp*g")),
    "butterflies": ("butterflies_leeds", _butterflies),
    "plants": ("plants_sheets_and_field", _plants),
}


@dataclass(frozen=True)
class Job:
    """One training: which species of which groups it learns, how, and on which it is judged."""

    arm: str
    group: str
    seed: int
    learned: Mapping[str, list[str]]
    judged: Mapping[str, list[str]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.arm}/{self.group}/{self.seed}"


def train(photos: Path, out: Path) -> None:
    """Chooses settings, then trains and judges an encoder for each group and seed; each result is written at once."""
    shown = Photos.load(photos)
    out.mkdir(parents=True, exist_ok=True)
    done = json.loads((out / "done.json").read_text()) if (out / "done.json").exists() else {}
    with (
        tempfile.TemporaryDirectory() as service,
        gpu_shared_by_children(Path(service)),
        ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool,
    ):
        for jobs in (_choosing, _reported):  # what is reported needs what was chosen
            started = [pool.submit(judged, job, photos) for job in jobs(shown, done) if job.key not in done]
            for finished in as_completed(started):
                result = finished.result()
                done[result["key"]] = result
                print(json.dumps(result), flush=True)
                (out / "done.json").write_text(json.dumps(done, indent=1))


def _choosing(photos: Photos, done: Mapping[str, Any]) -> list[Job]:
    """Each setting, on half of the species that are learned from with a seed; judged on the other half of them."""
    jobs = []
    for seed in SEEDS:
        learned, _ = photos.halves(CHOSEN_ON, seed)
        first, second = photos.halves(CHOSEN_ON, seed, learned)
        for arm, settings in TRIED.items():
            jobs.append(Job(f"choose:{arm}", CHOSEN_ON, seed, {CHOSEN_ON: first}, {CHOSEN_ON: second}, settings))
    return jobs


def chosen(done: Mapping[str, Any], seed: int) -> str:
    """What gained most with a seed, among its own species to learn from."""
    arms = [arm for arm in TRIED if arm not in CONTROLS]
    return max(arms, key=lambda arm: done[f"choose:{arm}/{CHOSEN_ON}/{seed}"]["gains"][CHOSEN_ON]["lda_4"])


def _reported(photos: Photos, done: Mapping[str, Any]) -> list[Job]:
    jobs = []
    for seed in SEEDS:
        halves = {group: photos.halves(group, seed) for group in FOLDERS}
        judged = {group: second for group, (_, second) in halves.items()}
        settings = TRIED[chosen(done, seed)]
        for group, (first, _) in halves.items():
            jobs.append(Job("report", group, seed, {group: first}, judged, settings))
        everything = {group: first for group, (first, _) in halves.items()}
        jobs.append(Job("report", ALL_GROUPS, seed, everything, judged, settings))
    return jobs


def judged(job: Job, path: Path) -> dict[str, Any]:
    """Trains an encoder and compares its features with those of the network it started from."""
    import torch

    torch.set_num_threads(1)
    photos, how = Photos.load(path), _recipe(job)
    network, start = (_network(how) for _ in range(2))
    names = [f"{group}/{name}" for group, species in job.learned.items() for name in species]
    rows = np.concatenate([photos.rows(group, species) for group, species in job.learned.items()])
    losses = _trained(network, photos, rows, names, how, job)
    before, after, gains = {}, {}, {}
    for group, species in job.judged.items():
        own = photos.rows(group, species)
        labels = np.unique(photos.species[own], return_inverse=True)[1]
        scores = [heads(_features(one, photos, own, how), labels, job.seed) for one in (start, network)]
        before[group], after[group] = scores
        gains[group] = {head: scores[1][head] - scores[0][head] for head in scores[0]}
    about = {name: value for name, value in asdict(job).items() if name not in ("learned", "judged")}
    return {"key": job.key, **about, "photos": len(rows), "loss": losses, "before": before, "after": after} | {
        "gains": gains
    }


def _recipe(job: Job) -> Any:
    from fieldmark.training.recipe import Recipe, read_recipe

    given = {name: value for name, value in job.settings.items() if name not in (*OWN_SETTINGS, "keep")}
    return Recipe(**read_recipe("encoder") | given | {"seed": job.seed, "workers": 2})


def _network(how: Any) -> Any:
    from fieldmark.training.networks import make_network

    return make_network(how.network, how.weights, classes=1, size=how.size, seed=how.seed)


def _source(photos: Photos, rows: NDArray[np.int64], labels: NDArray[np.int32], how: Any) -> Any:
    from fieldmark.training.boxes import Crops
    from fieldmark.training.packs import UnpackedPhotos
    from fieldmark.training.photos import PhotoSource, pack_side

    ids = [str(row) for row in rows]
    side_px = pack_side(how.size, how.eval_crop, how.eval_share)
    squares = _InMemory(UnpackedPhotos(ids, lambda one: photos.data[int(one)], side_px))
    crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
    return PhotoSource(squares, np.arange(len(rows)), labels, None, crops)  # type: ignore[arg-type]


class _InMemory:
    """Squares of photos that are decoded once and kept."""

    def __init__(self, photos: Any) -> None:
        self._squares, self._aspects = photos.squares(np.arange(len(photos.media_ids)))

    def read(self, rows: NDArray[np.int64]) -> tuple[Any, Any]:
        return self._squares[rows], self._aspects[rows]


def _trained(
    network: Any, photos: Photos, rows: NDArray[np.int64], names: Sequence[str], how: Any, job: Job
) -> list[float]:
    """Trains the network in place; returns the loss of each epoch."""
    from fieldmark.training.encoders import SupervisedContrast, train_encoder
    from fieldmark.training.networks import normalization
    from fieldmark.training.photos import PhotoTransform

    code_of = {name: code for code, name in enumerate(names)}
    whole = [f"{group}/{name}" for group, name in zip(photos.groups[rows], photos.species[rows], strict=True)]
    species = np.array([code_of[name] for name in whole], dtype=np.int32)
    genera = np.unique(
        [f"{group}/{genus}" for group, genus in zip(photos.groups[rows], photos.genera[rows], strict=True)],
        return_inverse=True,
    )[1]
    source = _source(photos, rows, np.column_stack([species, genera]).astype(np.int32), how)
    own = {name: value for name, value in job.settings.items() if name in OWN_SETTINGS}
    transform = PhotoTransform(how.size, *normalization(network), how.randaugment_ops, how.randaugment_magnitude)
    network.reset_classifier(len(names))
    with tempfile.TemporaryDirectory() as scratch:
        objective, keep = SupervisedContrast(len(names), **own), float(job.settings.get("keep", 0.5))
        weights, trained = train_encoder(network, source, transform, how, objective, keep=keep, scratch=Path(scratch))
    network.load_state_dict(weights)
    return [round(epoch["train_loss"], 4) for epoch in trained.epochs]


def _features(network: Any, photos: Photos, rows: NDArray[np.int64], how: Any) -> NDArray[np.float32]:
    """What goes into the classifier, of whole photos as a fitted model shows them."""
    import torch

    from fieldmark.training.networks import normalization
    from fieldmark.training.photos import PhotoTransform
    from fieldmark.training.sources import evaluation_batches, prepared

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = network.eval().to(device)
    source = _source(photos, rows, np.zeros(len(rows), dtype=np.int32), how)
    transform = PhotoTransform(how.size, *normalization(network))
    batches = evaluation_batches(source, np.arange(len(rows)), batch=128, workers=1, device=device)
    found = []
    with torch.inference_mode():
        for batch in prepared(batches, transform, device):
            pooled = network.forward_head(network.forward_features(batch.inputs), pre_logits=True)
            found.append(pooled.float().cpu().numpy())
    return np.concatenate(found)


def heads(features: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> dict[str, float]:
    """Top-1 in percent: from four photos a class (LDA, centroid), and from half of all photos (linear, nearest)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng([seed, len(labels)])
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    few: dict[str, list[float]] = {"lda_4": [], "centroid_4": []}
    for _ in range(EPISODES):
        shown = _drawn(labels, SHOTS, rng)
        for name, shrunk in (("lda_4", True), ("centroid_4", False)):
            said = discriminant(unit[shown], labels[shown], unit[~shown], shrunk=shrunk)
            few[name].append(100 * float((said == labels[~shown]).mean()))
    half = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        half[own[: len(own) // 2]] = True
    scaled = unit * np.sqrt(unit.shape[1])
    linear = LogisticRegression(C=0.03, max_iter=500).fit(scaled[half], labels[half])
    nearest = KNeighborsClassifier(1).fit(unit[half], labels[half])
    whole = {"linear": linear.predict(scaled[~half]), "nearest": nearest.predict(unit[~half])}
    scores = {name: float(np.mean(values)) for name, values in few.items()}
    return scores | {name: 100 * float((said == labels[~half]).mean()) for name, said in whole.items()}


def discriminant(
    known: NDArray[np.float32], labels: NDArray[np.int64], asked: NDArray[np.float32], *, shrunk: bool
) -> NDArray[np.int64]:
    """The nearest class mean, by one covariance for all classes shrunk after Ledoit and Wolf, or by plain distance."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    classes, codes = np.unique(labels, return_inverse=True)
    means = np.stack([known[codes == code].mean(axis=0) for code in range(len(classes))]).astype(np.float64)
    directions = means
    if shrunk:  # by the inverse of share x R'R / n + rest x I, with fewer rows than columns (Woodbury)
        spread = known - means[codes]
        share = ledoit_wolf_shrinkage(spread, assume_centered=True)
        rest = share * (spread**2).sum() / len(spread) / spread.shape[1]
        inner = np.eye(len(spread)) * len(spread) * rest / (1 - share) + spread @ spread.T
        directions = (means - np.linalg.solve(inner, spread @ means.T).T @ spread) / rest
    scores = asked @ directions.T - 0.5 * (means * directions).sum(axis=1)
    return np.asarray(classes[scores.argmax(axis=1)])


def _drawn(labels: NDArray[np.int64], each: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Some photos of each class."""
    shown = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        shown[rng.permutation(own)[: min(each, len(own) - 1)]] = True
    return shown


def write(folder: Path) -> None:
    """The gains of each group, mean and spread over seeds, and what each idea was worth where settings were chosen."""
    from studies.evidence.results import write_result

    done = json.loads((folder / "done.json").read_text())
    tried = {
        arm: _summary([done[f"choose:{arm}/{CHOSEN_ON}/{seed}"]["gains"][CHOSEN_ON] for seed in SEEDS]) for arm in TRIED
    }
    gains = {
        trained: {
            group: _summary([done[f"report/{trained}/{seed}"]["gains"][group] for seed in SEEDS]) for group in FOLDERS
        }
        for trained in (*FOLDERS, ALL_GROUPS)
    }
    before = {
        group: _summary([done[f"report/{ALL_GROUPS}/{seed}"]["before"][group] for seed in SEEDS]) for group in FOLDERS
    }
    result = {
        "simulated": False,
        "network": "efficientnet_lite0",
        "shots": SHOTS,
        "episodes": EPISODES,
        "seeds": list(SEEDS),
        "chosen": {str(seed): chosen(done, seed) for seed in SEEDS},
        "tried_gains": tried,
        "before": before,
        "gains_by_group_learned": gains,
        "runs": list(done.values()),
    }
    print("written to", write_result("encoders", result, "python -m studies.evidence.encoders --help"))


def _summary(values: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Mean, lowest and highest over seeds by head."""
    return {
        head: [round(float(of([one[head] for one in values])), 2) for of in (np.mean, np.min, np.max)]
        for head in values[0]
    }


if __name__ == "__main__":
    run_part(__doc__, {"pack": pack, "train": train, "write": write})
