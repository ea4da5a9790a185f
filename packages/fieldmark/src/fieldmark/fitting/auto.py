"""`fit --method auto`: the best chain for a release within the minutes that there are.

Candidates (`fitting.candidates`) come from cheap to costly. Each answers the first fold of train; from group to group
of features the heads that did best go on. The best then answer the other folds, fewer of them where time is short
(successive halving). What is best, or a mixture whose weights have the lowest log loss on the held-out answers, is
fitted in the end as any other method.

The estimate is not flattered by choosing: for every fold the choice is made again on the other folds, and what it
chooses is measured on that fold. A fold by which candidates were dropped measures nothing. Models of folds learn from
less than the final one: what that is worth is estimated by a fit to half of what they learn from, and added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.fitting.auto_table import (
    NO_GAIN,
    AutoSearched,
    BestSoFar,
    LearningGain,
    NestedEstimate,
    TriedChain,
    estimate_of,
    learning_gain,
)
from fieldmark.fitting.candidates import HEADS, HEADS_KEPT, Candidate, SearchCircumstances, candidates_for
from fieldmark.fitting.chains import Chain
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.encoders import encoders_at_hand
from fieldmark.fitting.fit_part import supply_of
from fieldmark.fitting.place_folds import rule_like_test, some_places
from fieldmark.fitting.search_table import TrialResult
from fieldmark.fitting.train_folds import AnsweredFolds, TrainFolds
from fieldmark.methods.base import targets_of
from fieldmark.methods.ensemble import best_weights, outcomes_of
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.mean_scores import mean_predictions
from fieldmark.settings import Settings, setting
from fieldmark.tables.media import PHOTO
from fieldmark.views.open_benchmark import Opened
from fieldmark.views.parts import Part
from fieldmark.work.grid import run_grid
from fieldmark.work.progress import say

AUTO = "auto"
# Members of less weight than this are left out of an ensemble, and at most so many are weighed.
LEAST_WEIGHT, MOST_MEMBERS = 0.04, 12
# Candidates that go on to the next fold at least, where time is short.
FEWEST = 4
# Items whose features are timed before those of all are made, after a few that pay for loading the network.
PROBED, WARMING = 8, 2
# Features of a part cannot be broken off, and a machine may become busy meanwhile.
CAUTION = 1.5
# Folds before which candidates may be dropped; the others measure.
HALVINGS = 2
# New features are begun in this share of the time at least; then the best answer the other folds.
EXPLORING = 0.6
# With fewer items to learn from, heads are quick and one fold says little: no head is dropped after the first.
FEW_ITEMS = 1_000
# Models of places take longer, and differ more between folds of a region than between draws of folds.
PLACE_FOLDS = 3


@dataclass(frozen=True)
class Auto(Settings):
    """How `auto` searches.

    Args:
        minutes: How long it may take, the final fit included.
        single: Whether one chain is wanted and no ensemble.
        folds: How many folds train is cut into.
        by: What stays together in a fold, as for `Search`.
        tell: Shows a line to the person who waits.
    """

    minutes: float = setting(10.0, above=0)
    single: bool = False
    folds: int = setting(5, least=3)
    by: str = "unit"
    tell: Callable[[str], None] = say


@dataclass
class ChainResult:
    """A candidate with the folds that it has answered."""

    candidate: Candidate
    answered: AnsweredFolds
    done: list[int] = field(default_factory=list)
    first_score: float = float("nan")

    def seconds_of_a_fold(self) -> float:
        return self.answered.seconds(self.done) / max(len(self.done), 1)


@dataclass(frozen=True)
class ChosenChains:
    """What was chosen on some folds: entrants with their weights; one alone weighs 1."""

    members: tuple[ChainResult, ...]
    weights: tuple[float, ...]
    value: float


class AutoSearch:
    """One search: what was tried, how long it took, and what is best so far."""

    def __init__(self, auto: Auto, opened: Opened, train: TrainFolds, steps: Sequence[str] | None) -> None:
        self.auto, self.opened, self.train, self.steps = auto, opened, train, steps
        self.there = self._circumstances()
        # What decides is the order of places, which the steps of an answer do not change.
        ordered = steps is None and self.there.places and self.there.shape == "pairs"
        self.fold_steps: Sequence[str] | None = () if ordered else steps
        self.started = time.monotonic()
        self.entrants: list[ChainResult] = []
        self.finalists: list[ChainResult] = []
        self.skipped: dict[str, str] = {}
        self.curve: list[BestSoFar] = []
        self.metric: Metric | None = None
        self.interrupted = False
        self.dropped_after = 0  # so many folds had a say in which candidates went on
        self._values: dict[tuple[str, tuple[int, ...]], float] = {}

    def _circumstances(self) -> SearchCircumstances:
        """What there is to search, encoders among it; those that have learned from its photos would flatter folds."""
        there = SearchCircumstances.of(self.opened)
        found = encoders_at_hand(self.opened) if there.medium == PHOTO.name else {}
        for folder, seen in found.items():
            if seen:
                self.auto.tell(f"{folder} is not tried: it has learned from {seen:,} photos of this release.")
        return replace(there, encoders=tuple(folder for folder, seen in found.items() if not seen))

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def run(self) -> AutoSearched:
        """Searches until all is tried, the time is spent, or somebody presses Ctrl-C.

        Raises:
            MisuseError: When nothing is declared for the question, or nothing could be tried.
        """
        declared = candidates_for(self.there)
        if not declared:
            raise MisuseError(
                f"auto has no candidates for this question ({self.there.question}): name a method "
                "(`fieldmark list methods`)."
            )
        try:
            self._explore(declared)
            self._deepen()
        except KeyboardInterrupt:
            if not self.entrants:
                raise
            self.interrupted = True
            self.auto.tell("Interrupted: fitting the best so far. Press Ctrl-C again to stop without a run.")
        if not self.entrants:
            why = next(iter(self.skipped.values()), "")
            raise MisuseError(f"auto could try none of its {len(declared)} candidates. {why}".strip())
        return self._finished()

    # Exploring: every candidate answers the first fold.

    def _explore(self, declared: Sequence[Candidate]) -> None:
        groups: dict[str, list[Candidate]] = {}
        for candidate in declared:
            groups.setdefault(candidate.group, []).append(candidate)
        for group, own in groups.items():
            if not self._affordable(self._deepening_seconds()):
                self.skipped |= {one.chain.text: "No time left." for one in own}
                continue
            entrants = list(self._entering(group, self._worth_trying(own)))
            self._answer(f"trying {group}", entrants, 0)

    def _worth_trying(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates of a group without the heads that fell behind in earlier groups."""
        if len(self.opened.view.train) < FEW_ITEMS:
            return list(candidates)
        best: dict[str, float] = {}
        for entrant in self.entrants:
            name = entrant.candidate.chain.method
            if name in HEADS:
                best[name] = max(best.get(name, -np.inf), self._signed(entrant.first_score))
        if len(best) < len(HEADS):
            return list(candidates)
        kept = set(sorted(best, key=lambda name: -best[name])[:HEADS_KEPT])
        worth = [one for one in candidates if one.chain.method not in HEADS or one.chain.method in kept]
        self.dropped_after = max(self.dropped_after, 1 if len(worth) < len(candidates) else 0)
        return worth

    def _entering(self, group: str, candidates: Sequence[Candidate]) -> Iterator[ChainResult]:
        """Candidates whose features can be made in the time that is left, made."""
        for number, candidate in enumerate(candidates):
            text = candidate.chain.text
            try:
                configured = self.train.settled(
                    configured_method(candidate.chain.method, candidate.chain.settings, self.train.seed)
                )
                if number == 0 and self.entrants:
                    seconds = self._feature_seconds(configured) + self._deepening_seconds()
                    if not self._affordable(seconds):
                        self.skipped |= {one.chain.text: f"No time for features of {group}." for one in candidates}
                        return
                if not self._affordable(self._guess(candidate) + self._deepening_seconds()):
                    self.skipped[text] = "No time for a fit."
                    continue
                yield ChainResult(candidate, self.train.answered(configured, candidate.chain.steps or self.fold_steps))
            except FieldmarkError as error:
                self.skipped[text] = str(error)

    def _feature_seconds(self, configured: Any) -> float:
        """How long the features of all parts will take, by timing a few items; those in the store take nothing."""
        view = self.opened.view
        parts = [part for part in (view.train, view.val, view.unlabeled, view.test) if part is not None]
        items = sum(len(part) for part in parts)
        if len(view.train) < 4 * PROBED:
            return 0.0
        supply = supply_of(configured, self.opened, self.train.store)
        if not supply.sources:
            return 0.0
        # Others each time: what an earlier search has timed is in the store, and tells nothing of the rest.
        rows = np.random.default_rng().choice(len(view.train), PROBED + WARMING, replace=False)
        _supplied_rows(supply, view.train, rows[:WARMING])
        start = time.monotonic()
        _supplied_rows(supply, view.train, rows[WARMING:])
        return CAUTION * (time.monotonic() - start) / PROBED * items

    def _guess(self, candidate: Candidate) -> float:
        """How long a fold will take: as long as the longest of the same method did, or by its declaration."""
        same = [one for one in self.entrants if one.candidate.chain.method == candidate.chain.method]
        known = [one.seconds_of_a_fold() for one in same]
        return max(known) if known else candidate.seconds_per_item * len(self.opened.view.train)

    def _affordable(self, seconds: float) -> bool:
        """Whether so much more fits into the time, with what the final fit will take; the first always does."""
        if not self.entrants:
            return True
        final = 5 + 1.5 * sum(one.seconds_of_a_fold() for one in self._leading(FEWEST))
        return self.elapsed + seconds + final <= 60 * self.auto.minutes

    def _deepening_seconds(self) -> float:
        """What the best will take to answer the other folds, as far as time is kept for that."""
        each = sum(one.seconds_of_a_fold() for one in self._leading(MOST_MEMBERS))
        return min(CAUTION * (self.train.folds - 1) * each, 60 * (1 - EXPLORING) * self.auto.minutes)

    def _leading(self, number: int) -> list[ChainResult]:
        """The entrants that did best on the first fold."""
        return sorted(self.entrants, key=lambda one: -self._signed(one.first_score))[:number]

    def _answer(self, what: str, entrants: Sequence[ChainResult], fold: int) -> None:
        """Has entrants answer a fold, as long as there is time, and keeps those that did."""
        owners = {one.answered.cells[fold].path: one for one in entrants}
        cells = [one.answered.cells[fold] for one in entrants]
        for outcome in run_grid(what, cells, lambda held_out: held_out.answer(self.opened), keep_going=True):
            entrant = owners[outcome.cell.path]
            if outcome.problem is not None:
                self.skipped[entrant.candidate.chain.text] = str(outcome.problem)
                continue
            entrant.done.append(fold)
            if fold == 0:
                answers = entrant.answered.read([0])
                self.metric = self.metric or self.train.measurable(answers, [0])
                entrant.first_score = self._value(answers, [0])
                self.entrants.append(entrant)
                self._tell_best(entrant.candidate.chain.text, entrant.first_score, "first fold")
            if not self._affordable(self._deepening_seconds() if fold == 0 else 0.0):
                return

    # Deepening: the best answer the other folds.

    def _deepen(self) -> None:
        self.finalists = list(self.entrants)
        for fold in range(1, self.train.folds):
            ranked = sorted(self.finalists, key=lambda one: -self._signed(self._score_of(one, one.done)))
            kept = self._surviving(ranked, self.train.folds - fold) if fold <= HALVINGS else ranked
            if not self._affordable(sum(one.seconds_of_a_fold() for one in kept)):
                if fold > HALVINGS or (fold > 1 and not self._affordable(0.0)):
                    return
                kept = kept[:FEWEST]
            self._answer(f"fold {fold + 1} of {self.train.folds}", kept, fold)
            through = [one for one in kept if fold in one.done]
            if not through or (fold > HALVINGS and len(through) < len(kept)):
                return
            self.dropped_after = fold if len(through) < len(ranked) else self.dropped_after
            self.finalists = through

    def _surviving(self, ranked: Sequence[ChainResult], folds_left: int) -> list[ChainResult]:
        """The best that can answer all folds that are left; a few more than that, since later folds drop some."""
        left = 0.8 * (60 * self.auto.minutes - self.elapsed)
        costs = np.cumsum([one.seconds_of_a_fold() * folds_left for one in ranked])
        return list(ranked[: max(FEWEST, int((costs <= left).sum()))])

    # Choosing, and measuring what was chosen.

    def choose(self, folds: Sequence[int]) -> ChosenChains:
        """The best entrant on some folds, or the mixture of several.

        The best of many is flattered by having been picked, the mixture hardly: it is taken unless it is worse by more
        than the standard error of the difference.
        """
        ranked = sorted(self.finalists, key=lambda one: -self._signed(self._score_of(one, folds)))
        alone = ChosenChains((ranked[0],), (1.0,), self._score_of(ranked[0], folds))
        members = [one for one in ranked if one.candidate.in_ensemble][:MOST_MEMBERS]
        if self.auto.single or self.there.unknown or len(members) < 2:
            return alone
        if self.there.presences:
            return self._chosen_for_presences(members, folds)
        answers = [LabelScores.concat(one.answered.read(folds)) for one in members]
        if not all(one.dense and one.scale != "score" for one in answers) and self.there.shape == "codes":
            return alone
        several = self.there.shape == "pairs"
        targets = targets_of(self._held_out_part(folds, answers[0].items))
        weights = best_weights(
            outcomes_of(answers, targets, several=several), None if several else targets.codes, "probabilities"
        )
        kept = [(one, weight) for one, weight in zip(members, weights, strict=True) if weight >= LEAST_WEIGHT]
        total = sum(weight for _, weight in kept)
        mixed = ChosenChains(tuple(one for one, _ in kept), tuple(weight / total for _, weight in kept), 0.0)
        mixed = replace(mixed, value=self._value(self._answers_of(mixed, folds), folds))
        lead = self._signed(alone.value) - self._signed(mixed.value)
        return mixed if lead <= self._error_of_difference(mixed, alone, folds) else alone

    def _chosen_for_presences(self, ranked: Sequence[ChainResult], folds: Sequence[int]) -> ChosenChains:
        """All that are not worse than the best by more than the standard error of the difference, and what helps them.

        They have one weight: records tell no probabilities to weigh by, and which of several like ones is best is
        mostly chance.
        """
        alone = [self._equally((one,), folds) for one in ranked]
        best = max(alone, key=lambda one: self._signed(one.value))
        lead = self._signed(best.value)
        near = [one for one in alone if lead - self._signed(one.value) <= self._error_of_difference(one, best, folds)]
        choice = self._equally(tuple(one.members[0] for one in near), folds)
        for other in ranked:
            if other not in choice.members:
                more = self._equally((*choice.members, other), folds)
                choice = more if self._signed(more.value) > self._signed(choice.value) else choice
        return choice

    def _equally(self, members: tuple[ChainResult, ...], folds: Sequence[int]) -> ChosenChains:
        """Some chains of one weight, and their value together."""
        choice = ChosenChains(members, (1 / len(members),) * len(members), 0.0)
        return replace(choice, value=self._value(self._answers_of(choice, folds), folds))

    def _error_of_difference(self, one: ChosenChains, other: ChosenChains, folds: Sequence[int]) -> float:
        """The standard error of the difference of two choices on the same units; 0 where it is not known."""
        assert self.metric is not None
        cards = [self.train.score(self._answers_of(each, folds), self.metric, folds) for each in (one, other)]
        pseudo = [card.pseudo.get(self.metric.name) for card in cards]
        if pseudo[0] is None or pseudo[1] is None or len(pseudo[0]) < 2:
            return 0.0
        return float(np.std(pseudo[0] - pseudo[1], ddof=1) / np.sqrt(len(pseudo[0])))

    def _held_out_part(self, folds: Sequence[int], items: Sequence[str]) -> Part:
        """The items of some folds of train in a given order, with their labels."""
        train = self.opened.view.train
        row_of = {item: row for row, item in enumerate(train.item_ids)}
        return train.take(np.array([row_of[item] for item in items]))

    def _answers_of(self, choice: ChosenChains, folds: Sequence[int]) -> list[Any]:
        """What a choice answers to some folds."""
        several = self.there.shape == "pairs"
        made = []
        for fold in folds:
            answers = [one.answered.read([fold])[0] for one in choice.members]
            if self.there.presences:  # one alone as well, so that it is judged alike
                answers = [self.train.on_one_scale(answers, choice.weights)]
            elif len(answers) > 1:
                answers = [mean_predictions(answers, choice.weights, mean="probabilities", several=several)]
            made += answers
        return made

    def _finished(self) -> AutoSearched:
        """The choice on all folds, fitted weights, the estimate, and the table of what was tried."""
        finalists = self.finalists = self.finalists or self.entrants
        done = list(range(min(len(one.done) for one in finalists)))  # the folds that all of them have answered
        choice = self.choose(done)
        chain = self._chain(choice)
        measured = done[self.dropped_after :]
        # Half of train at least: averages over classes are too low where many classes are missing.
        enough = len(done) > 1 and 2 * len(measured) >= self.train.folds and not has_own_val(self.opened)
        estimate = self._estimate(choice.members, measured, done) if enough else None
        self._tell_best(chain.text, choice.value, f"{len(done)} folds")
        assert self.metric is not None  # a candidate was tried
        texts = {one.candidate.chain.text: weight for one, weight in zip(choice.members, choice.weights, strict=True)}
        trials = tuple(
            TrialResult(
                {"chain": one.candidate.chain.text},
                self.train.score(one.answered.read(done), self.metric, done),
                one.answered.seconds(done),
            )
            for one in finalists
        )
        space = {"chain": [one.candidate.chain.text for one in finalists]}
        return AutoSearched(
            trials,
            self.metric,
            space,
            len(done),
            self.train.by,
            self.train.seed,
            chain=chain,
            weights=texts,
            estimate=estimate,
            tried=tuple(self._tried(texts)),
            curve=tuple(self.curve),
            minutes=self.auto.minutes,
            seconds=self.elapsed,
            interrupted=self.interrupted,
        )

    def _estimate(self, members: Sequence[ChainResult], measured: Sequence[int], done: Sequence[int]) -> NestedEstimate:
        """The score of what is chosen without a fold on that fold, all measured folds together."""
        answers = []
        for fold in measured:
            others = [one for one in done if one != fold]
            answers += self._answers_of(self.choose(others), [fold])
        assert self.metric is not None
        gain = self._learning_gain(members[0], measured)
        card = self.train.score(answers, self.metric, measured)
        return estimate_of(card, self.metric, test_units(self.opened), gain)

    def _learning_gain(self, member: ChainResult, folds: Sequence[int]) -> LearningGain:
        """What the first member of the choice gains by learning from all of train; 0 where the time is spent."""
        assert self.metric is not None
        chain, train = member.candidate.chain, self.train
        seconds = member.seconds_of_a_fold()
        asked = [fold for number, fold in enumerate(folds, start=1) if self._affordable(number * seconds)]
        if not (self.metric.is_share and self.metric.higher_is_better) or self.interrupted or not asked:
            return NO_GAIN
        configured = configured_method(chain.method, chain.settings, train.seed)
        half = train.answered(configured, chain.steps or self.fold_steps, half=True)
        cells = [half.cells[fold] for fold in asked]
        for outcome in run_grid(
            "what more photos are worth", cells, lambda one: one.answer(self.opened), keep_going=True
        ):
            if outcome.problem is not None:
                return NO_GAIN
        more, less = (train.score(one.read(asked), self.metric, asked) for one in (member.answered, half))
        many, few = (float(np.mean([train.learned_from(fold, half=only) for fold in asked])) for only in (False, True))
        return learning_gain(more, less, self.metric, (many, few, len(self.opened.view.train) + train.of_val))

    def _chain(self, choice: ChosenChains) -> Chain:
        """What is fitted in the end."""
        best = choice.members[0].candidate.chain
        steps = None if self.steps is None else tuple(self.steps)
        if self.there.unknown and best.method in HEADS:
            return Chain("openset", {"classifier": best.method, **best.settings}, steps)
        if len(choice.members) == 1:
            return replace(best, steps=best.steps or steps)
        members = ",".join(one.candidate.chain.text for one in choice.members)
        if self.there.presences:
            return Chain("place-ensemble", {"members": members}, steps)
        weights = ",".join(f"{weight:.4f}" for weight in choice.weights)
        return Chain("ensemble", {"members": members, "weights": weights}, steps)

    def _tried(self, weights: Mapping[str, float]) -> Iterator[TriedChain]:
        for one in self.entrants:
            text = one.candidate.chain.text
            score, seconds = self._score_of(one, one.done), one.answered.seconds(one.done)
            yield TriedChain(text, len(one.done), score, seconds, weights.get(text, 0.0))
        for text, why in self.skipped.items():
            yield TriedChain(text, 0, None, 0.0, 0.0, why)

    def _score_of(self, entrant: ChainResult, folds: Sequence[int]) -> float:
        key = entrant.candidate.chain.text, tuple(folds)
        if key not in self._values:
            self._values[key] = self._value(entrant.answered.read(folds), folds)
        return self._values[key]

    def _value(self, answers: Sequence[Any], folds: Sequence[int]) -> float:
        assert self.metric is not None
        return self.train.score(answers, self.metric, folds).metrics[self.metric.name].value

    def _signed(self, value: float) -> float:
        higher = self.metric is None or self.metric.higher_is_better
        return -np.inf if np.isnan(value) else value if higher else -value

    def _tell_best(self, text: str, value: float, on: str) -> None:
        """Says so where something is better than all before, or is the final choice."""
        assert self.metric is not None
        final = on != "first fold"
        if not final and self.curve and self._signed(value) <= self._signed(self.curve[-1].value):
            return
        self.curve.append(BestSoFar(round(self.elapsed, 1), value, text, on))
        word = "chosen" if final else "best so far"
        self.auto.tell(f"{self.elapsed:5.0f} s  {word}: {self.metric.name} {value:.3f} ({on})  {text}")


def has_own_val(opened: Opened) -> bool:
    """Whether the release has a val with labels, which says what to expect on test."""
    return "val" in opened.truth and not opened.val_is_drawn


def test_units(opened: Opened) -> int | None:
    """How many units test has; None where it has no truth."""
    return len(set(opened.truth["test"].units)) if "test" in opened.truth else None


def run_auto(
    auto: Auto, opened: Opened, *, steps: Sequence[str] | None, seed: int, store: Path | None, scratch: Path
) -> AutoSearched:
    """Searches the best chain; the arguments are those of `run_search`."""
    there = SearchCircumstances.of(opened)
    if there.places and auto.by == "unit":
        few, folds = some_places(opened, seed), min(auto.folds, PLACE_FOLDS)
        train = TrainFolds(
            few, folds, rule_like_test(few), seed, store, scratch, refit=True, background=there.presences
        )
    else:
        train = TrainFolds(opened, auto.folds, auto.by, seed, store, scratch, refit=True)
    return AutoSearch(auto, opened, train, steps).run()


def _supplied_rows(supply: Any, part: Part, rows: Any) -> None:
    """Makes the features of a few items, which stay in the store."""
    few = part.take(rows)
    for name, source in supply.sources.items():
        source.supply(replace(few, features={}, missing={}), name.partition("[")[0], None)
