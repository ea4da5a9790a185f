"""A classifier that also says how strange an item looks, by one score or by the one that does best on validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, Arrays, ChosenSetting, Fitted, Method, features_of, truth_of, with_targets
from fieldmark.methods.headed import Headed
from fieldmark.methods.linear import Linear
from fieldmark.metrics.openset import known_roc_auc
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.stats.logistic import logistic
from fieldmark.steps.base import Step
from fieldmark.steps.novelty import SCORES, Seen, around_zero, learn, logit_origin
from fieldmark.steps.temperature import Temperature, best_temperature
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.steps.unknown_threshold import RULES, UnknownThreshold
from fieldmark.tables.labels import UNKNOWN
from fieldmark.views.parts import Part, View

Floats = NDArray[np.float64]
COMBINED = "combined"
AVERAGE = "average"
# Two that read probabilities, and two that compare with training items.
AVERAGED = ("max-softmax", "entropy", "relative-mahalanobis", "round-neighbor")
# Ridge of the logistic regression, in units of items: keeps a handful of unknown items from saying too much.
RIDGE = 1.0
FOLDS = 5
ALL = "all"
HEAD, LEARNED = "head.", "score."
HELD_OUT_SEED = 0


@dataclass(frozen=True)
class OpenSet(Headed):
    """A classifier of features, and beside its answers a novelty score.

    Args:
        score: One of the scores (`fieldmark.steps.novelty`), `average` (of max softmax, entropy, relative Mahalanobis
            distance and nearest neighbor where classes are round, each scaled by the known items of val), `combined` (a
            logistic combination of all), or `all`, which tries each and takes the one of highest ROC-AUC on validation.
        choose: What counts as unknown on validation: the unknown items of val (`val-unknowns`), or known labels, kept
            in turn from classifiers fitted without them (`held-out`), which needs no unknown items at all. A score is
            then taken in place of `average` only where it is ahead in these rounds by more than one standard error.
        held_out: The share of labels that `held-out` keeps back in each round.
        k: The neighbor whose distance the score `knn` takes.
        rule: Where the line to "unknown" is drawn: see `fieldmark.steps.unknown_threshold`. Empty takes what the task
            is measured by, and with `held-out` the line that accepts 95 % of the known items of val.
        chosen: The score that was taken; made by `fit`.
    """

    score: str = setting(AVERAGE, choices=(*SCORES, AVERAGE, COMBINED, ALL))
    choose: str = setting("val-unknowns", choices=("val-unknowns", "held-out"))
    held_out: float = setting(0.2, above=0, below=1)
    k: int = setting(10, least=1)
    rule: str = setting("", choices=("", *RULES))
    chosen: str = ""

    scale: ClassVar[Scale] = "logit"
    wants_unknown: ClassVar[bool] = True
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)

    def fit(self, view: View) -> Fitted:
        if self.score == AVERAGE and (view.val is None or not len(view.val.of_known_labels())):
            told = (
                "There are no known items in val, by which scores could be averaged: items are scored by max softmax."
            )
            simple = replace(self, score="max-softmax").fit(view)
            return replace(simple, remarks=(*simple.remarks, told))
        head, arrays = self._learn(view)
        fitted = self._with_choices(head.method)
        chosen = self.score
        if self.score in (COMBINED, ALL):
            rounds = self._validation(view, fitted, arrays)
            arrays |= combine(*_together(rounds)).to_arrays(COMBINED)
            chosen = self.score if self.score == COMBINED else best_score(rounds)
        on = ON_VAL if self.choose == "val-unknowns" else "labels of train and val that were held out"
        scored = (ChosenSetting("score", on, chosen),) if self.score == ALL else ()
        return Fitted(replace(fitted, chosen=chosen), arrays, chosen=(*head.chosen, *scored))

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        head, learned = self._learn(view)
        kept = {name: values for name, values in arrays.items() if not name.startswith((HEAD, LEARNED))}
        return Fitted(self._with_choices(head.method), learned | kept)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return self.head().scores(_under(HEAD, arrays), part)

    def unknown(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return self._values(arrays, part, self.chosen)[self.chosen].astype(np.float32)

    def unknown_scores(self, arrays: Arrays, part: Part) -> dict[str, NDArray[np.float32]]:
        return {name: own.astype(np.float32) for name, own in self._values(arrays, part, self.score).items()}

    def unknown_scores_on_val(self, arrays: Arrays, val: Part) -> dict[str, NDArray[np.float32]]:
        values = self.unknown_scores(arrays, val)
        if self.choose != "val-unknowns" or COMBINED not in values:
            return values
        # The combined score on the very items it was fitted to would flatter it: here by folds, as it was judged.
        single = {name: score.astype(np.float64) for name, score in values.items() if name in SCORES}
        unit = np.unique(val.items["observation_id"].to_numpy(), return_inverse=True)[1]
        combined = cross_fitted(single, truth_of(val) < 0, unit)
        return values if combined is None else values | {COMBINED: combined.astype(np.float32)}

    @property
    def unknown_choice(self) -> tuple[str, str]:
        rule = f"highest ROC-AUC on {self.choose}" if self.score == ALL else "named beforehand"
        return self.chosen, rule

    def default_steps(self) -> tuple[Step, ...]:
        threshold = UnknownThreshold(self._rule)
        if self.choose == "held-out":
            return (Temperature(), threshold)
        return (Temperature(), UnknownProbability(), threshold)

    @property
    def _rule(self) -> str:
        return self.rule or ("tpr-95" if self.choose == "held-out" else "task")

    def _learn(self, view: View) -> tuple[Fitted, Arrays]:
        """Fits the classifier and what the scores keep of train."""
        of_known = view if view.val is None else replace(view, val=view.val.of_known_labels())
        head = self.head().fit(of_known)
        features, truth = features_of(view.train), truth_of(view.train)
        arrays: Arrays = {HEAD + name: values for name, values in head.arrays.items()} | {"temperature": np.array(1.0)}
        if of_known.val is not None and len(of_known.val):
            # Scores of probabilities are those of calibrated ones, as temperature and max-softmax would give them.
            predictions = head.predict(of_known.val, view.labels)
            arrays["temperature"] = np.array(best_temperature(predictions, truth_of(of_known.val)))
        names = _read_by(self.score)

        def largest_logits() -> NDArray[np.float64]:
            # Block by block: logits of all training items may take more memory than their features.
            scored = (head.method.scores(head.arrays, block) for block in view.train.blocks())
            return np.concatenate([around_zero(_scaled(head.method, one, arrays)).max(axis=1) for one in scored])

        learned = learn(names, features, truth, largest_logits, _origin(head, features), self.k)
        arrays |= {LEARNED + name: values for name, values in learned.items()}
        if of_known.val is not None and set(AVERAGED) <= set(names):
            usual = self._with_choices(head.method)._scores(arrays, of_known.val, AVERAGED)
            arrays |= average_of(usual).to_arrays(AVERAGE)
        return head, arrays

    def _scores(self, arrays: Arrays, part: Part, names: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
        head, learned, of_head = self.head(), _under(LEARNED, arrays), _under(HEAD, arrays)
        values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        for block in part.blocks() if len(part) else (part,):
            seen = Seen(_scaled(head, head.scores(of_head, block), arrays), features_of(block), learned)
            for name in names:
                values[name].append(SCORES[name](seen))
        return {name: np.concatenate(own) for name, own in values.items()}

    def _values(self, arrays: Arrays, part: Part, asked: str) -> dict[str, NDArray[np.float64]]:
        """The scores that were asked for, with those that they are made of."""
        if asked in SCORES:
            return self._scores(arrays, part, (asked,))
        # Models of earlier versions know fewer scores.
        known = Combination.from_arrays(arrays, AVERAGE if asked == AVERAGE else COMBINED).names
        values = self._scores(arrays, part, known)
        made = [name for name in (AVERAGE, COMBINED) if f"{name}.names" in arrays and asked in (name, COMBINED, ALL)]
        return values | {name: Combination.from_arrays(arrays, name)(values) for name in made}

    def _validation(self, view: View, fitted: OpenSet, arrays: Arrays) -> list[Judged]:
        """The scores of validation items: of val, or of each round of labels kept back."""
        if self.choose == "held-out":
            settled = replace(self, classifier_settings=fitted.classifier_settings)
            rounds = []
            for back in label_rounds(view, self.held_out):
                asked, kept = without_labels(view, back)
                assert asked.val is not None  # `label_rounds` asks for one
                rounds.append(settled._judged(settled._learn(kept)[1], asked.val))
            return rounds
        if view.val is None or (truth_of(view.val) >= 0).all():
            raise MisuseError(
                "openset chooses its score by the unknown species of val, and val has none: "
                "pass --set choose=held-out, or name a score."
            )
        return [fitted._judged(arrays, view.val)]

    def _judged(self, arrays: Arrays, val: Part) -> Judged:
        unit = np.unique(val.items["observation_id"].to_numpy(), return_inverse=True)[1]
        values = self._scores(arrays, val, tuple(SCORES))
        if f"{AVERAGE}.names" in arrays:
            values[AVERAGE] = Combination.from_arrays(arrays, AVERAGE)(values)
        return Judged(values, truth_of(val) < 0, unit)


class Judged(NamedTuple):
    """The scores of validation items, which of them count as unknown, and the observation of each."""

    values: dict[str, Floats]
    unknown: NDArray[np.bool_]
    unit: NDArray[np.int64]


def label_rounds(view: View, share: float) -> list[NDArray[np.int32]]:
    """The labels that are kept back in each round; over all rounds each is kept back once, or nearly.

    Raises:
        MisuseError: When there is no val, or too few labels are left to go on with.
    """
    labels = np.unique(truth_of(view.train))
    each = max(round(share * len(labels)), 1)
    if view.val is None or len(labels) - each < 2:
        raise MisuseError("held-out labels need a val and at least two labels to go on with.")
    order = np.random.default_rng(HELD_OUT_SEED).permutation(labels)
    rounds = min(FOLDS, len(labels) // each)
    return [order[number * each : (number + 1) * each] for number in range(rounds)]


def without_labels(view: View, back: NDArray[np.int32]) -> tuple[View, View]:
    """Keeps labels back, so that their items are as strange as those of unknown species.

    Returns:
        The view whose val holds the items of val of the other labels as known and, as unknown, all items of the labels
        kept back; and the view to fit on, without any item of theirs. Unknown items of val are in neither.
    """
    assert view.val is not None  # `label_rounds` asks for one
    known_val = view.val.of_known_labels()
    train_stays, val_stays = (~np.isin(truth_of(part), back) for part in (view.train, known_val))
    strange = [_hidden(part.take(~kept)) for part, kept in ((view.train, train_stays), (known_val, val_stays))]
    usual = known_val.take(val_stays)
    asked = Part.concat([usual, *strange])
    return replace(view, val=asked), replace(view, train=view.train.take(train_stays), val=usual)


def _hidden(part: Part) -> Part:
    return with_targets(part, values=np.full(len(part), UNKNOWN, dtype=np.int32))


def _read_by(score: str) -> tuple[str, ...]:
    """The scores of items that a score is made of."""
    return {AVERAGE: AVERAGED, COMBINED: tuple(SCORES), ALL: tuple(SCORES)}.get(score, (score,))


def _single(values: Mapping[str, Floats]) -> dict[str, Floats]:
    """What may be combined: an average is made of the others."""
    return {name: own for name, own in values.items() if name != AVERAGE}


def _together(rounds: Sequence[Judged]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """The items of all rounds."""
    values = {name: np.concatenate([one.values[name] for one in rounds]) for name in _single(rounds[0].values)}
    return values, np.concatenate([one.unknown for one in rounds])


def best_score(rounds: Sequence[Judged]) -> str:
    """The score of highest ROC-AUC on validation; the combination is judged on what it was not fitted to.

    With one round these are folds of units. With several it is each round by the others, whose labels are known there
    and unknown here; and nothing takes the place of the average that is not ahead by more than one standard error.
    """
    areas: dict[str, list[float]] = {name: [] for name in (*rounds[0].values, COMBINED)}
    for number, (values, unknown, unit) in enumerate(rounds):
        others = [one for place, one in enumerate(rounds) if place != number]
        combined = combine(*_together(others))(values) if others else cross_fitted(_single(values), unknown, unit)
        judged = values if combined is None else values | {COMBINED: combined}
        for name, score in judged.items():
            areas[name].append(known_roc_auc(score, ~unknown))
    tried = {name: np.array(area) for name, area in areas.items() if area}
    best = max(tried, key=lambda name: float(tried[name].mean()))
    if len(rounds) == 1:
        return best
    ahead = tried[best] - tried[AVERAGE]
    return best if ahead.mean() > ahead.std(ddof=1) / np.sqrt(len(ahead)) else AVERAGE


def _origin(head: Fitted, features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Where ViM looks from: the point at which a linear classifier has no bias, else the mean of train."""
    if not isinstance(head.method, Linear):
        return np.asarray(features.mean(axis=0, dtype=np.float64))
    weights = head.arrays["weights"][:-1].astype(np.float64) / head.arrays["spread"][:, None]
    return logit_origin(weights.T, head.arrays["weights"][-1] - head.arrays["mean"] @ weights)


def _scaled(head: Method, logits: NDArray[np.float32], arrays: Arrays) -> NDArray[Any]:
    """Logits as every score sees them, of train as of any item asked about: those of calibrated probabilities."""
    # The energy of log-probabilities is the same for all items, so that it would tell of nothing but the temperature.
    plain = around_zero(logits) if head.scale == "log_probability" else logits
    return np.asarray(plain / arrays["temperature"])


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class Combination:
    """A weighted sum of scores, each centered and scaled by validation items.

    Args:
        names: The scores, in order.
        center, spread, weights: One number for each.
    """

    names: tuple[str, ...]
    center: Floats
    spread: Floats
    weights: Floats

    def __call__(self, values: Mapping[str, NDArray[Any]]) -> Floats:
        table = np.column_stack([values[name] for name in self.names])
        return np.asarray((table - self.center) / self.spread @ self.weights)

    def to_arrays(self, called: str) -> dict[str, NDArray[Any]]:
        """As arrays of numbers that a model can keep, under a name; names of scores as their UTF-8 bytes."""
        return {
            f"{called}.names": np.frombuffer("\n".join(self.names).encode(), dtype=np.uint8),
            f"{called}.center": self.center,
            f"{called}.spread": self.spread,
            f"{called}.weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], called: str) -> Combination:
        """From what `to_arrays` made under this name."""
        names = tuple(arrays[f"{called}.names"].tobytes().decode().split("\n"))
        return cls(names, *(arrays[f"{called}.{part}"] for part in ("center", "spread", "weights")))


def average_of(usual: Mapping[str, Floats]) -> Combination:
    """The mean of scores, each centered and scaled by its values for known items."""
    table = np.column_stack(list(usual.values()))
    spread = np.maximum(table.std(axis=0), 1e-9 * np.maximum(np.abs(table).max(axis=0), 1e-9))
    return Combination(tuple(usual), table.mean(axis=0), spread, np.full(len(usual), 1 / len(usual)))


def combine(values: Mapping[str, Floats], unknown: NDArray[np.bool_]) -> Combination:
    """Fits the combination that separates unknown from known items by penalized logistic regression."""
    names = tuple(values)
    table = np.column_stack([values[name] for name in names])
    center, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-12)
    weights, _ = logistic((table - center) / spread, unknown.astype(np.float64), ridge=RIDGE)
    return Combination(names, center, spread, weights)


def cross_fitted(values: Mapping[str, Floats], unknown: NDArray[np.bool_], unit: NDArray[np.int64]) -> Floats | None:
    """The combined score of each item by a combination that was fitted without its unit; None with too few units.

    Folds deal out the units of unknown and of known items in turn, so that each has some of both.
    """
    units, first = np.unique(unit, return_index=True)
    strange = unknown[first]
    folds = min(FOLDS, int(strange.sum()), int((~strange).sum()))
    if folds < 2:
        return None
    fold_of_unit = np.empty(len(units), dtype=np.int64)
    for kind in (strange, ~strange):
        fold_of_unit[kind] = np.arange(kind.sum()) % folds
    fold = fold_of_unit[np.searchsorted(units, unit)]
    combined = np.empty(len(unit))
    for number in range(folds):
        inside = fold == number
        fitted = combine({name: score[~inside] for name, score in values.items()}, unknown[~inside])
        combined[inside] = fitted({name: score[inside] for name, score in values.items()})
    return combined
