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
PREFIX = f"{COMBINED}."
# Ridge of the logistic regression, in units of items: keeps a handful of unknown items from saying too much.
RIDGE = 1.0
FOLDS = 5
ALL = "all"
HEAD, LEARNED = "head.", "score."
HELD_OUT_SEED = 0
USUAL_SCORE = "max-softmax"


@dataclass(frozen=True)
class OpenSet(Headed):
    """A classifier of features, and beside its answers a novelty score.

    Args:
        score: One of the scores (`fieldmark.steps.novelty`), `combined` (a logistic combination of all), or
            `all`, which tries each and takes the one of highest ROC-AUC on validation.
        choose: What counts as unknown on validation: the unknown items of val (`val-unknowns`), or known labels, kept
            in turn from classifiers fitted without them (`held-out`), which needs no unknown items at all. A score is
            then taken in place of max softmax only where it is ahead in these rounds by more than one standard error.
        held_out: The share of labels that `held-out` keeps back in each round.
        k: The neighbor whose distance the score `knn` takes.
        rule: Where the line to "unknown" is drawn: see `fieldmark.steps.unknown_threshold`. Empty takes what the task
            is measured by, and with `held-out` the line that accepts 95 % of the known items of val.
        chosen: The score that was taken; made by `fit`.
    """

    score: str = setting(USUAL_SCORE, choices=(*SCORES, COMBINED, ALL))
    choose: str = setting("val-unknowns", choices=("val-unknowns", "held-out"))
    held_out: float = setting(0.2, above=0, below=1)
    k: int = setting(10, least=1)
    rule: str = setting("", choices=("", *RULES))
    chosen: str = ""

    scale: ClassVar[Scale] = "logit"
    wants_unknown: ClassVar[bool] = True
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)

    def fit(self, view: View) -> Fitted:
        head, arrays = self._learn(view)
        fitted = self._with_choices(head.method)
        tried = ALL if self.score == COMBINED else self.score
        chosen = self.score
        if tried == ALL:
            rounds = self._validation(view, fitted, arrays)
            arrays |= combine(*_together(rounds)).to_arrays()
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
        tried = (
            self._all_scores(arrays, part) if self.chosen == COMBINED else self._scores(arrays, part, (self.chosen,))
        )
        return tried[self.chosen].astype(np.float32)

    def unknown_scores(self, arrays: Arrays, part: Part) -> dict[str, NDArray[np.float32]]:
        tried = self._scores(arrays, part, (self.score,)) if self.score in SCORES else self._all_scores(arrays, part)
        return {name: values.astype(np.float32) for name, values in tried.items()}

    def unknown_scores_on_val(self, arrays: Arrays, val: Part) -> dict[str, NDArray[np.float32]]:
        values = self.unknown_scores(arrays, val)
        if self.choose != "val-unknowns" or COMBINED not in values:
            return values
        # The combined score on the very items it was fitted to would flatter it: here by folds, as it was judged.
        single = {name: score.astype(np.float64) for name, score in values.items() if name != COMBINED}
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
        names = (self.score,) if self.score in SCORES else tuple(SCORES)

        def largest_logits() -> NDArray[np.float64]:
            # Block by block: logits of all training items may take more memory than their features.
            scored = (head.method.scores(head.arrays, block) for block in view.train.blocks())
            return np.concatenate([around_zero(_scaled(head.method, one, arrays)).max(axis=1) for one in scored])

        learned = learn(names, features, truth, largest_logits, _origin(head, features), self.k)
        return head, arrays | {LEARNED + name: values for name, values in learned.items()}

    def _scores(self, arrays: Arrays, part: Part, names: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
        head, learned, of_head = self.head(), _under(LEARNED, arrays), _under(HEAD, arrays)
        values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        for block in part.blocks() if len(part) else (part,):
            seen = Seen(_scaled(head, head.scores(of_head, block), arrays), features_of(block), learned)
            for name in names:
                values[name].append(SCORES[name](seen))
        return {name: np.concatenate(own) for name, own in values.items()}

    def _all_scores(self, arrays: Arrays, part: Part) -> dict[str, NDArray[np.float64]]:
        values = self._scores(arrays, part, tuple(SCORES))
        return values | {COMBINED: Combination.from_arrays(arrays)(values)}

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
        return Judged(self._scores(arrays, val, tuple(SCORES)), truth_of(val) < 0, unit)


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


def _together(rounds: Sequence[Judged]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """The items of all rounds."""
    values = {name: np.concatenate([one.values[name] for one in rounds]) for name in rounds[0].values}
    return values, np.concatenate([one.unknown for one in rounds])


def best_score(rounds: Sequence[Judged]) -> str:
    """The score of highest ROC-AUC on validation; the combination is judged on what it was not fitted to.

    With one round these are folds of units. With several it is each round by the others, whose labels are known there
    and unknown here; and nothing takes the place of max softmax that is not ahead by more than one standard error.
    """
    areas: dict[str, list[float]] = {name: [] for name in (*rounds[0].values, COMBINED)}
    for number, (values, unknown, unit) in enumerate(rounds):
        others = [one for place, one in enumerate(rounds) if place != number]
        combined = combine(*_together(others))(values) if others else cross_fitted(values, unknown, unit)
        judged = values if combined is None else values | {COMBINED: combined}
        for name, score in judged.items():
            areas[name].append(known_roc_auc(score, ~unknown))
    tried = {name: np.array(area) for name, area in areas.items() if area}
    best = max(tried, key=lambda name: float(tried[name].mean()))
    if len(rounds) == 1:
        return best
    ahead = tried[best] - tried[USUAL_SCORE]
    return best if ahead.mean() > ahead.std(ddof=1) / np.sqrt(len(ahead)) else USUAL_SCORE


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

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """As arrays of numbers that a model can keep; names as their UTF-8 bytes."""
        return {
            f"{PREFIX}names": np.frombuffer("\n".join(self.names).encode(), dtype=np.uint8),
            f"{PREFIX}center": self.center,
            f"{PREFIX}spread": self.spread,
            f"{PREFIX}weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Combination:
        """From what `to_arrays` made."""
        names = tuple(arrays[f"{PREFIX}names"].tobytes().decode().split("\n"))
        return cls(names, *(arrays[f"{PREFIX}{part}"] for part in ("center", "spread", "weights")))


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
