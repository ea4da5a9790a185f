"""Late fusion: a classifier for each modality, and weights from val."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.methods import METHODS
from fieldmark.methods.base import ON_VAL, Arrays, ChosenSetting, Fitted, Method, truth_of
from fieldmark.methods.joined import Joined
from fieldmark.methods.modalities import ALL, TOGETHER, OnModalities, is_missing, is_table
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import LabelScores, Scale, log_softmax
from fieldmark.steps.priors.base import Logs
from fieldmark.steps.priors.combination import ProbabilityCombination, best_exponents
from fieldmark.storage.files import appearing_file
from fieldmark.tables.inputs import MEDIA_INPUTS, Input
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

FREQUENCIES = "frequencies"
# Pictures and texts by the names that releases give them, where nobody has declared the inputs.
PICTURES_AND_TEXTS = (*MEDIA_INPUTS, "satellite", "caption")
# A label that train does not show counts as if half an observation of it had been.
HALF = 0.5
# Items whose answers of all members are held at once, and how many items of val decide about the few weights at most.
BLOCK_ITEMS, MOST_JUDGED = 2048, 4096


@dataclass(frozen=True)
class Fusion(OnModalities):
    """Puts the answers of one classifier per modality together.

        log P(c | all) = v log P(c) + sum over m of w_m (log P_m(c) - log P(c)),  renormalized

    With all weights 1 this is Bayes' rule for modalities that are independent given the label; they are not, and
    classifiers are too sure or not sure enough, which weights from 0 to 4 of lowest log loss on val make up for. What
    an item lacks adds nothing.

    Args:
        inputs: The modalities with commas between them, inputs of one modality joined by `+`; "all" takes every input
            that the release has and the task allows, each a modality.
        members: The method for each modality, with commas between them; empty for `tables` and `others` by kind.
        tables: The method for tables; linear has done better than boosted trees here, and takes seconds.
        others: The method for photos, recordings, other pictures and texts.
        seed: Of members that draw.
    """

    inputs: str = ALL
    members: str = ""
    tables: str = "linear"
    others: str = "linear"
    seed: int = 0

    scale: ClassVar[Scale] = "log_probability"
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)

    def check_settings(self) -> None:
        groups = self.modalities
        if self.members and len(self._member_names) != len(groups):
            raise MisuseError(
                f"fusion has {len(groups)} modalities (inputs={self.inputs}) and {len(self._member_names)} members "
                f"({self.members}): expected one for each."
            )
        for name in (*self._member_names, self.tables, self.others):
            _check_member(name)

    @property
    def _member_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.members.split(",")) if self.members else ()

    def for_release(self, inputs: Mapping[str, Input]) -> Self:
        settled = super().for_release(inputs)
        if settled.members:
            return settled
        tables = [all(name in inputs and is_table(inputs[name]) for name in group) for group in settled.modalities]
        return replace(settled, members=",".join(self.tables if table else self.others for table in tables))

    def fit(self, view: View) -> Fitted:
        if view.val is None:
            raise MisuseError("fusion takes its weights from val, and there is none.")
        log_prior = _log_prior(view)
        members = [self._member(number) for number in range(len(self.modalities))]
        fitted = [_fit_member(member, view) for member in members]
        judged = view.val
        if len(judged) > MOST_JUDGED:
            rows = np.random.default_rng(self.seed).permutation(len(judged))[:MOST_JUDGED]
            judged = judged.take(np.sort(rows))
        weights = _weights(_shifts(fitted, judged, view.labels, log_prior), truth_of(judged))
        chosen = (ChosenSetting("the weights of the modalities", ON_VAL),)
        return Fitted(self, {"weights": weights, **_kept(fitted, log_prior)}, self._remarks(weights), chosen)

    def _remarks(self, weights: NDArray[np.float64]) -> tuple[str, ...]:
        named = [FREQUENCIES, *(TOGETHER.join(names) for names in self.modalities)]
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(named, weights, strict=True))
        return (f"Weights of the modalities, from val: {told}.",)

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        fitted = [None if member is None else _fit_member(member, view, again=True) for member in self._fitted(arrays)]
        weights = arrays["weights"]
        return Fitted(self, {"weights": weights, **_kept(fitted, _log_prior(view))}, self._remarks(weights))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        log_prior = arrays["log_prior"]
        labels = Labels(tuple(str(number) for number in range(len(log_prior))))
        fitted, scores = self._fitted(arrays), np.zeros((len(part), len(log_prior)), dtype=np.float32)
        for first in range(0, len(part), BLOCK_ITEMS):
            rows = np.arange(first, min(first + BLOCK_ITEMS, len(part)))
            shifts = _shifts(fitted, part.take(rows), labels, log_prior)
            scores[rows] = log_softmax(np.tensordot(arrays["weights"], shifts, axes=1))
        return scores

    def _member(self, number: int) -> _Member:
        names = self.modalities[number]
        usual = self.others if any(name in PICTURES_AND_TEXTS for name in names) else self.tables
        name = self._member_names[number] if self.members else usual
        return _Member(name, _configured(name, self.seed), names)

    def _fitted(self, arrays: Arrays) -> list[_Member | None]:
        """What was learned about each modality; None for one that no item of train has."""
        told = json.loads(arrays["members"].tobytes())
        found: list[_Member | None] = []
        for number, (names, one) in enumerate(zip(self.modalities, told, strict=True)):
            if one is None:
                found.append(None)
                continue
            prefix = f"{number}."
            own = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            method = _configured(one["method"], self.seed, one["options"])
            found.append(_Member(one["method"], method, names, own))
        return found


@dataclass(frozen=True)
class _Member:
    """The classifier of one modality.

    Args:
        name: Of its method.
        method: The method; with its choices made, once it is fitted.
        names: The inputs it reads.
        arrays: What it learned, and how its inputs are joined; nothing before.
    """

    name: str
    method: Method
    names: tuple[str, ...]
    arrays: Arrays = field(default_factory=dict)

    def log_probabilities(self, part: Part, labels: Labels) -> Logs:
        """What it says about each item."""
        joined = Joined.of(self.names, self.arrays)
        predictions: Any = self.method.answer(self.arrays, _with_only(part, joined(part)), labels)
        return np.asarray(log_softmax(predictions.scores.astype(np.float64)))


def _fit_member(member: _Member, view: View, *, again: bool = False) -> _Member | None:
    """Fits the classifier of one modality to the items that have it; None where train or val has none of it.

    What val does not have cannot be weighed.
    """
    train = view.train.take(~is_missing(view.train, member.names))
    val = None if view.val is None else view.val.take(~is_missing(view.val, member.names))
    if not len(train) or (val is not None and not len(val)):
        return None
    joined = Joined.fit(member.names, train)
    shown = _with_only(train, joined(train))
    asked = None if val is None else _with_only(val, joined(val))
    own = replace(view, train=shown, val=asked, test=None, unlabeled=None)
    path = _path(member, own)
    if path is not None and path.exists():
        stored = load_file(path)
        options = json.loads(stored.pop("options").tobytes())
        return replace(member, method=_configured(member.name, 0, options), arrays=stored)
    fitted = member.method.fit_again(member.arrays, own) if again else member.method.fit(own)
    learned = replace(member, method=fitted.method, arrays={**fitted.arrays, **joined.arrays})
    if path is not None:
        _keep(path, learned)
    return learned


def _path(member: _Member, view: View) -> Path | None:
    """Where a fitted member is kept for other fits to the same features and labels; None where nothing is kept."""
    if view.shared is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([member.name, member.method.options], sort_keys=True, default=str).encode())
    for part in (view.train, view.val):
        if part is not None:
            for array in (*part.features.values(), truth_of(part)):
                digest.update(np.ascontiguousarray(array).data)
        digest.update(b"|")
    return view.shared / f"{digest.hexdigest()}.safetensors"


def _keep(path: Path, member: _Member) -> None:
    options = np.frombuffer(json.dumps(member.method.options).encode(), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(value, order="C") for name, value in {**member.arrays, "options": options}.items()}
    with appearing_file(path) as partial:
        save_file(arrays, partial)


def _shifts(fitted: Sequence[_Member | None], part: Part, labels: Labels, log_prior: Logs) -> Logs:
    """What a weight of 1 adds: the frequencies, and for each modality how its answer differs from them."""
    shifts = np.zeros((len(fitted) + 1, len(part), len(log_prior)))
    shifts[0] = log_prior
    for number, member in enumerate(fitted, start=1):
        if member is not None:
            there = np.flatnonzero(~is_missing(part, member.names))
            if len(there):
                shifts[number, there] = member.log_probabilities(part.take(there), labels) - log_prior
    return shifts


def _weights(shifts: Logs, truth: NDArray[np.int32]) -> NDArray[np.float64]:
    """The weights of lowest log loss."""
    items = tuple(str(row) for row in range(len(truth)))
    labels = Labels(tuple(str(number) for number in range(shifts.shape[2])))
    nothing = LabelScores(items, labels, np.zeros(shifts.shape[1:], dtype=np.float32), "logit")
    found, _ = best_exponents(ProbabilityCombination(nothing, lambda rows: shifts[:, rows]), len(shifts), truth)
    return np.asarray(found)


def _log_prior(view: View) -> Logs:
    counts = np.bincount(truth_of(view.train), minlength=len(view.labels)) + HALF
    return np.asarray(np.log(counts / counts.sum()))


def _kept(fitted: Sequence[_Member | None], log_prior: Logs) -> Arrays:
    told = [None if one is None else {"method": one.name, "options": one.method.options} for one in fitted]
    arrays: Arrays = {"log_prior": log_prior, "members": np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)}
    for number, one in enumerate(fitted):
        if one is not None:
            arrays |= {f"{number}.{name}": array for name, array in one.arrays.items()}
    return arrays


def _with_only(part: Part, features: NDArray[np.float32]) -> Part:
    """The part with these features and no others, as a method for one input takes them."""
    return replace(part, features={"joined": features}, missing={})


def _check_member(name: str) -> None:
    if name not in METHODS:
        raise MisuseError(f"fusion has no member called {name!r}. {did_you_mean(name, METHODS)}")
    method = _configured(name, 0)
    if [need.form for need in method.needs] != ["features"] or method.scale == "score" or "codes" not in method.targets:
        raise MisuseError(f"fusion takes members that make probabilities of features; {name} does not.")


def _configured(name: str, seed: int, options: Mapping[str, Any] | None = None) -> Method:
    """A member by its name: it takes the features that it is handed."""
    cls = METHODS[name]
    own = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    usual = {"inputs": "", "seed": seed}
    made: Method = cls(**{**{key: value for key, value in usual.items() if key in own}, **(options or {})})
    return made
