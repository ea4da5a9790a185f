"""The mean of the answers of several methods, whatever each of them reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.benchmarks.declarations import LearnsFrom, Sees
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.methods import METHODS
from fieldmark.methods.base import (
    NOT_STATED,
    ON_TRAIN,
    ON_VAL,
    Arrays,
    ChosenSetting,
    Fitted,
    Method,
    Need,
    targets_of,
)
from fieldmark.methods.ensemble_members import SHAPES, EnsembleMember, parse_members
from fieldmark.questions.targets import Shape, Targets
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.runs.mean_scores import Mean, mean_predictions, member_probabilities
from fieldmark.runs.predictions import Predictions
from fieldmark.settings import setting
from fieldmark.stats.logistic import platt
from fieldmark.stats.mixture import mixture_weights
from fieldmark.steps.multilabel import chances_of, enough_rows, logits_of, with_chances
from fieldmark.steps.priors.combination import ProbabilityCombination, best_exponents
from fieldmark.steps.temperature import best_temperature, scaled
from fieldmark.tables.inputs import Input
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

# From the narrowest on; what the widest member sees, the ensemble sees.
WIDEST: tuple[Sees, ...] = ("item", "unit", "past", "test set")
WEIGHTS = ("equal", "val", "folds")
# A curve that changes nothing: a slope of 1 (the inverse of a temperature) and no offset.
PLAIN = (1.0, 0.0)


@dataclass(frozen=True)
class Ensemble(Method):
    """Fits each member by itself and answers with their mean.

    Members may be any methods that score labels: networks on photos, on spectrograms or on patches of maps, forests on
    tables, classifiers of features, the same one with several seeds. Each reads what it would read alone, with features
    of its own. What an ensemble brings in from outside, sees and learns from is what any member does.

    Args:
        members: Their names with commas between them, each with its settings after colons
            (`cnn:epochs=20,random-forest:inputs=environment`), those of its features among them
            (`linear:backbone=resnet50:size=160`). Members of one name are given seeds of their own, so that
            `triplet,triplet,triplet` are three instances of one approach.
        mean: Of what: probabilities, logits (log-probabilities; log-odds where several labels may hold), or ranks of
            the labels within each item.
        weights: equal; val or folds: the mixture of lowest log loss on val, or on folds of train that are held out in
            turn and fitted without; or numbers with commas between them, one for each member.
        folds: How many folds.
        folds_by: What stays together in a fold: unit, site, day, block:METRES, or a column.
        calibrated: Whether the probabilities of each member are calibrated on val before the mean is taken: by a
            temperature where one label holds, by a logistic curve where several may.
        seed: Of members that draw, and of the folds.
        several: Whether several labels may hold; found by `fit`.
    """

    members: str = ""
    mean: Mean = "probabilities"
    weights: str = "equal"
    folds: int = setting(5, least=2)
    folds_by: str = "unit"
    calibrated: bool = True
    seed: int = 0
    several: bool = False

    follows_from_task: ClassVar[tuple[str, ...]] = ("several", "members")

    def check_settings(self) -> None:
        made = self.made_members
        given = self._given_weights
        if given is not None and made and len(given) != len(made):
            raise MisuseError(f"weights={self.weights}: expected {len(made)} numbers, one for each member.")

    @cached_property
    def made_members(self) -> tuple[EnsembleMember, ...]:
        """The members as they were asked for."""
        earlier: Counter[str] = Counter()
        made = []
        for number, (name, settings) in enumerate(parse_members(self.members)):
            made.append(replace(EnsembleMember.of(name, settings, self.seed + earlier[name]), number=number))
            earlier[name] += 1
        return tuple(made)

    @property
    def _given_weights(self) -> list[float] | None:
        if self.weights in WEIGHTS:
            return None
        try:
            given = [float(one) for one in self.weights.split(",")]
        except ValueError as error:
            hint = did_you_mean(self.weights, WEIGHTS)
            raise MisuseError(f"weights={self.weights}: expected equal, val, folds, or numbers. {hint}") from error
        if min(given) < 0 or not sum(given) > 0 or not np.isfinite(given).all():
            raise MisuseError(f"weights={self.weights}: expected numbers of at least 0, and one above.")
        return given

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(dict.fromkeys(need for member in self.made_members for need in member.needs))

    @property
    def open_inputs(self) -> bool:
        return any(member.method.open_inputs for member in self.made_members)

    @property
    def scale(self) -> Scale:
        return "score" if self.several or self.mean == "ranks" else "log_probability"

    @property
    def sees(self) -> Sees:  # type: ignore[override]
        seen = {member.method.sees for member in self.made_members}
        return next((one for one in reversed(WIDEST) if one in seen), "item")

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:  # type: ignore[override]
        learned = dict.fromkeys(one for member in self.made_members for one in member.method.learns_from)
        return tuple(learned) or ("train",)

    @property
    def targets(self) -> tuple[Shape, ...]:  # type: ignore[override]
        return tuple(one for one in SHAPES if all(one in member.method.targets for member in self.made_members))

    @property
    def wants_unknown(self) -> bool:  # type: ignore[override]
        return any(member.method.wants_unknown for member in self.made_members)

    @property
    def external_data(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for member in self.made_members for one in member.method.external_data))

    @property
    def license(self) -> str:
        stated = dict.fromkeys(
            member.method.license for member in self.made_members if member.method.license != NOT_STATED
        )
        return "; ".join(stated) or NOT_STATED

    @property
    def learns_from_val(self) -> bool:
        return any(member.method.learns_from_val for member in self.made_members)

    @property
    def chooses_on_val(self) -> bool:
        return any(member.method.chooses_on_val for member in self.made_members)

    def for_release(self, inputs: Mapping[str, Input]) -> Ensemble:
        settled = [member.for_release(inputs) for member in self.made_members]
        return replace(self, members=",".join(member.text for member in settled))

    def check(self, view: View) -> None:
        if not self.made_members:
            raise MisuseError(
                "An ensemble needs members: --set members=linear,knn:k=5,finetune. For places, --method place-ensemble "
                "takes some by itself."
            )
        for member in self.made_members:
            member.method.check(view)

    def fit(self, view: View) -> Fitted:
        self.check(view)
        several = targets_of(view.train).shape == "pairs"
        fitted = [member.fit(view) for member in self.made_members]
        curves = np.array([self._curve(member, view, several=several) for member in fitted])
        weights, chosen = self._weigh(fitted, curves, view, several=several)
        method = replace(self, several=several)
        remarks = (*_remarks(fitted), *method.told_weights(weights))
        chosen = (*(choice for member in fitted for choice in member.chosen), *chosen)
        return Fitted(method, _kept(fitted, weights, curves, len(view.labels)), remarks, chosen)

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        before = self._fitted(arrays)
        fitted = [member.fit(view, again=True) if member.method.learns_from_val else member for member in before]
        weights = arrays["weights"]
        remarks = (*_remarks(fitted), *self.told_weights(weights))
        return Fitted(self, _kept(fitted, weights, arrays["curves"], len(view.labels)), remarks)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        labels = Labels(tuple(str(number) for number in range(int(arrays["n_labels"]))))
        answered = self.answer(arrays, part, labels)
        if not answered.dense:
            raise ValueError("with so many labels the best are listed: ask for the answer")
        return answered.scores.astype(np.float32)

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> LabelScores:
        return self._mean(arrays, [member.answer(part, labels) for member in self._fitted(arrays)])

    def start(self, arrays: Arrays) -> Any:
        return [member.method.start(member.arrays) for member in self._fitted(arrays)]

    def answer_day(self, state: Any, arrays: Arrays, day: Part, labels: Labels) -> LabelScores:
        members = zip(self._fitted(arrays), state, strict=True)
        return self._mean(
            arrays,
            [one.method.answer_day(known, one.arrays, one.shown(day), labels) for one, known in members],
        )

    def observe(self, state: Any, arrays: Arrays, day: Part) -> Any:
        members = zip(self._fitted(arrays), state, strict=True)
        return [one.method.observe(known, one.arrays, one.shown(day)) for one, known in members]

    def reveal(self, state: Any, arrays: Arrays, day: Part, truth: NDArray[np.int32]) -> Any:
        members = zip(self._fitted(arrays), state, strict=True)
        return [one.method.reveal(known, one.arrays, one.shown(day), truth) for one, known in members]

    def told_weights(self, weights: NDArray[np.float64]) -> tuple[str, ...]:
        """Who counts how much, in a sentence."""
        shares = ", ".join(f"{one.name} {weight:.2f}" for one, weight in zip(self.made_members, weights, strict=True))
        how = {"val": " chosen on val", "folds": " chosen on folds of train"}.get(self.weights, "")
        return (f"The mean of {self.mean} of {len(weights)} members, weights{how}: {shares}.",)

    def _mean(self, arrays: Arrays, answers: Sequence[Predictions]) -> LabelScores:
        calibrated = [
            _curved(cast(LabelScores, one), *curve, several=self.several)
            for one, curve in zip(answers, arrays["curves"].tolist(), strict=True)
        ]
        return mean_predictions(calibrated, arrays["weights"], mean=self.mean, several=self.several)

    def _curve(self, member: EnsembleMember, view: View, *, several: bool) -> tuple[float, float]:
        """What calibrates a member: slope and offset of its logits, by val."""
        val = None if view.val is None else view.val.of_known_labels()
        if not self.calibrated or self.mean == "ranks" or val is None or not len(val):
            return PLAIN
        answers = member.answer(val, view.labels)
        if not several:
            return 1 / best_temperature(answers, cast(NDArray[np.int32], val.truth)), 0.0
        rows = enough_rows(len(val), len(view.labels))
        chances, holds = chances_of(answers)[rows], targets_of(val).holds(len(view.labels))[rows]
        possible = chances > 0
        logits, found = logits_of(chances[possible]), holds[possible]
        if not found.any() or found.all() or np.ptp(logits) == 0:
            return PLAIN
        slope, offset = platt(logits, found)
        return max(slope, 1e-3), offset

    def _weigh(
        self, fitted: Sequence[EnsembleMember], curves: NDArray[np.float64], view: View, *, several: bool
    ) -> tuple[NDArray[np.float64], tuple[ChosenSetting, ...]]:
        """How much each member counts, and what was chosen for it."""
        given = self._given_weights
        if given is not None or self.weights == "equal":
            shares = np.array(given or [1.0] * len(fitted))
            return shares / shares.sum(), ()
        if self.weights == "val":
            if view.val is None:
                raise MisuseError("weights=val: there is no val to choose them on; take folds or equal.")
            part = view.val.of_known_labels()
            judged = [([member.answer(part, view.labels) for member in fitted], targets_of(part))]
        else:
            judged = list(self._held_out(view))
        blocks = []
        for answers, targets in judged:
            calibrated = [_curved(a, *c, several=several) for a, c in zip(answers, curves.tolist(), strict=True)]
            blocks.append(outcomes_of(calibrated, targets, several=several))
        codes = None if several else np.concatenate([targets.codes for _, targets in judged])
        weights = best_weights(np.concatenate(blocks, axis=1), codes, self.mean)
        on = ON_VAL if self.weights == "val" else ON_TRAIN
        return weights, (ChosenSetting("the weights of the members", on),)

    def _held_out(self, view: View) -> Any:
        """The answers of each member to each fold of train, fitted without it."""
        numbers = view.fold_numbers(self.folds_by, self.folds, self.seed)
        for fold in range(self.folds):
            rest, held_out = view.hold_out(numbers == fold)
            if view.scratch is not None:
                rest = replace(rest, scratch=view.scratch / f"fold-{fold}")
            part = held_out.of_known_labels()
            if len(part):
                asked = part.unlabeled()
                yield [one.fit(rest).answer(asked, view.labels) for one in self.made_members], targets_of(part)

    def _fitted(self, arrays: Arrays) -> list[EnsembleMember]:
        """The members with what they learned."""
        options = json.loads(arrays["members"].tobytes())
        made = []
        for number, (member, own) in enumerate(zip(self.made_members, options, strict=True)):
            prefix = f"{number}."
            learned = {key.removeprefix(prefix): one for key, one in arrays.items() if key.startswith(prefix)}
            made.append(replace(member, method=METHODS[member.name](**own), arrays=learned))
        return made


def _curved(predictions: LabelScores, slope: float, offset: float, *, several: bool) -> LabelScores:
    """Predictions of a member, calibrated."""
    if (slope, offset) == PLAIN:
        return predictions
    if several:
        chances = chances_of(predictions)
        present = np.where(chances > 0, expit(slope * logits_of(chances) + offset), 0.0)
        return with_chances(predictions, present)
    if predictions.scale == "score" or not predictions.dense:
        return predictions
    temperature = np.full(len(predictions.items), 1 / slope)
    return predictions.with_columns(scaled(predictions.columns, temperature), "log_probability")


def outcomes_of(answers: Sequence[LabelScores], targets: Targets, *, several: bool) -> NDArray[np.float64]:
    """What weights are judged by: the probability of each label by each member (members x items x labels).

    Where several labels may hold, it is that of what was found, one column for each pair (members x pairs).
    """
    if not several:
        return np.stack([member_probabilities(one, several=False) for one in answers])
    n_labels = len(answers[0].labels)
    rows = enough_rows(len(targets), n_labels)
    holds = targets.holds(n_labels)[rows]
    chances = (member_probabilities(one, several=True)[rows] for one in answers)
    return np.stack([np.where(holds, one, 1 - one).ravel() for one in chances])


def best_weights(outcomes: NDArray[np.float64], codes: NDArray[np.int32] | None, mean: Mean) -> NDArray[np.float64]:
    """The weights of lowest log loss, which add up to one."""
    if codes is None:
        return mixture_weights(outcomes)
    if mean != "logits":
        return mixture_weights(outcomes[:, np.arange(len(codes)), codes])
    logs = np.log(np.maximum(outcomes, 1e-30))
    items = tuple(str(row) for row in range(len(codes)))
    labels = Labels(tuple(str(number) for number in range(logs.shape[2])))
    nothing = LabelScores(items, labels, np.zeros(logs.shape[1:], dtype=np.float32), "logit")
    found, _ = best_exponents(ProbabilityCombination(nothing, lambda rows: logs[:, rows]), len(logs), codes)
    weights = np.asarray(found, dtype=np.float64)
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))


def _remarks(fitted: Sequence[EnsembleMember]) -> tuple[str, ...]:
    told = [f"Member {one.name}: {remark}" for one in fitted for remark in one.remarks]
    for name in dict.fromkeys(one.name for one in fitted if one.method.default_steps()):
        told.append(f"Member {name} answers without the steps that it takes alone; name them after the ensemble.")
    return tuple(dict.fromkeys(told))


def _kept(
    fitted: Sequence[EnsembleMember], weights: NDArray[np.float64], curves: NDArray[np.float64], n_labels: int
) -> Arrays:
    options = json.dumps([member.method.options for member in fitted]).encode()
    arrays: Arrays = {"weights": weights, "curves": curves, "n_labels": np.array(n_labels)}
    arrays["members"] = np.frombuffer(options, dtype=np.uint8)
    for number, member in enumerate(fitted):
        arrays |= {f"{number}.{name}": array for name, array in member.arrays.items()}
    return arrays
