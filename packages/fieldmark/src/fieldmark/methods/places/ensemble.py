"""Several methods for places with one voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_TRAIN, ON_VAL, Arrays, ChosenSetting, Fitted, targets_of
from fieldmark.methods.places.base import OnPlaces, Ratios, as_odds, log_odds
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.methods.places.spatial_folds import held_out_chances
from fieldmark.registry import Registry
from fieldmark.runs.label_scores import log_softmax
from fieldmark.settings import configure, parse_pairs, setting
from fieldmark.stats.mixture import mixture_weights
from fieldmark.views.parts import View

MEMBERS: Registry[type[OnPlaces]] = Registry(
    "member of an ensemble of places",
    {
        "neighbors": ("fieldmark.methods.places.neighbors:NeighborsInSpace", "what was found nearby"),
        "boosting": ("fieldmark.methods.places.rerank:Boosting", "neighbors and a forest, put in order"),
        "random-forest": ("fieldmark.methods.places.forest:RandomForest", "random forests"),
        "maxent": ("fieldmark.methods.places.maxent:Maxent", "maximum entropy"),
        "down-weighted-boosting": ("fieldmark.methods.places.boosted_trees:DownWeightedBoosting", "boosted trees"),
        "spline-logistic": ("fieldmark.methods.places.splines:SplineLogistic", "additive splines"),
        "sinr": ("fieldmark.methods.places.sinr:Sinr", "one network for all species"),
        "deepmaxent": ("fieldmark.methods.places.sinr:DeepMaxent", "the same by maximum entropy"),
    },
)
Weights = Literal["equal", "val", "folds"]
FEW_SPECIES = 200
# Members are brought to one scale over so many points of the background.
MOST_OF_MOMENTS = 1000
FOR_FEW = "sinr,boosting,random-forest:background=random:trees=100"
FOR_MANY = "neighbors,random-forest,sinr"


@dataclass(frozen=True, kw_only=True)
class PlaceEnsemble(OnPlaces):
    """The mean of several methods for places.

    Where probabilities are known (one label holds, or a survey) it is the mean of probabilities. Records of presences
    tell none: there the log ratios of each member are first brought to the same mean and spread over the background,
    species by species, so that no member counts more because it is bolder.

    All members count the same unless weights are asked for: the mixture that gives what was found the highest
    probability, on val or on blocks of train that the members have not seen (stacking, Wolpert 1992; blocks, Roberts
    et al. 2017). Where only presences are recorded, weights reward members that have learned where people look,
    because val and train were recorded by the same people.

    Args:
        members: Their names with commas between them, each with settings after colons
            (`random-forest:trees=500,sinr:background=random`); auto is sinr, boosting and
            random-forest (100 trees, against random points) for up to 200 species, and neighbors, random-forest and
            sinr for more.
        weights: equal; val: the mixture of lowest log loss there; folds: the same on blocks of train, held out in turn.
        folds: How many times blocks are held out.
        blocks_m: The side of the square blocks.
    """

    members: str = "auto"
    weights: Weights = "equal"
    folds: int = setting(5, least=2)
    blocks_m: float = setting(20_000.0, above=0)

    added_settings: ClassVar[tuple[str, ...]] = ("folds", "blocks_m")

    def check_settings(self) -> None:
        super().check_settings()
        if self.members != "auto":
            self.made(0)

    @property
    def external_data(self) -> tuple[str, ...]:
        """What its members bring along."""
        members = [] if self.members == "auto" else self.made(0)
        return tuple(dict.fromkeys(sentence for member in members for sentence in member.external_data))

    def made(self, n_labels: int) -> list[OnPlaces]:
        """The members for so many labels."""
        members = self.members
        if members == "auto":
            members = FOR_FEW if n_labels <= FEW_SPECIES else FOR_MANY
        return [self._member(text.strip()) for text in members.split(",")]

    def _member(self, text: str) -> OnPlaces:
        name, *settings = text.split(":")
        if name not in MEMBERS:
            raise MisuseError(f"place-ensemble has no member called {name!r}: expected some of {', '.join(MEMBERS)}.")
        given = {"seed": self.seed, "background": self.background, **parse_pairs(settings)}
        method: OnPlaces = configure(given, MEMBERS[name])[0]
        return replace(method, inputs=self.inputs, several=self.several)

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:  # type: ignore[override]
        learned = dict.fromkeys(one for member in self.made(0) for one in member.learns_from)
        return tuple(learned)

    def learn(self, records: PlaceRecords) -> tuple[PlaceEnsemble, Arrays]:
        members = self.made(records.n_labels)
        weights = np.full(len(members), 1 / len(members))
        if self.weights == "folds":
            weights = mixture_weights(held_out_chances(members, records, self.folds, self.blocks_m, self.seed))
        fitted = [member.learn(self._records_for(member, records)) for member in members]
        arrays: Arrays = {"weights": weights}
        common = {"log_prior": records.log_prior.astype(np.float32), "survey": np.array([records.is_survey])}
        for number, (member, own) in enumerate(fitted):
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
            if self.several and records.background is not None:
                points = sample(records.background, self.seed)
                mean, spread = spread_of(np.concatenate([*member.blocks({**own, **common}, points)]))
                arrays |= {f"moments.{number}.mean": mean, f"moments.{number}.spread": spread}
        texts = ",".join(_told(member) for member, _ in fitted)
        return replace(self, members=texts), arrays

    def _records_for(self, member: OnPlaces, records: PlaceRecords) -> PlaceRecords:
        """The records set against the background of a member, where it has one of its own."""
        own = member.background
        return records if records.is_survey or own in ("auto", self.background) else records.against(own, self.seed)

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        return self._combined(arrays, self.of_members(arrays, points), arrays["weights"])

    def of_members(self, arrays: Arrays, points: Points) -> list[Ratios]:
        """The log ratios of each member."""
        n_labels = len(arrays["log_prior"])
        common = {name: arrays[name] for name in ("log_prior", "survey")}
        found = []
        for number, member in enumerate(self.made(n_labels)):
            prefix = f"{number}."
            own = {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}
            found.append(member.log_ratios({**own, **common}, points))
        return found

    def _combined(self, arrays: Arrays, ratios: Sequence[Ratios], weights: NDArray[np.float64]) -> Ratios:
        log_prior = arrays["log_prior"].astype(np.float64)
        if self.several and not arrays["survey"][0]:
            numbers = range(len(ratios))
            moments = [(arrays[f"moments.{one}.mean"], arrays[f"moments.{one}.spread"]) for one in numbers]
            return on_one_scale(ratios, moments, weights)
        chances = sum(
            weight * np.exp(_log_chance(arrays, log_prior, one)) for weight, one in zip(weights, ratios, strict=True)
        )
        logs = np.log(np.maximum(cast(NDArray[np.float64], chances), 1e-300)) - log_prior
        return np.asarray(as_odds(arrays, logs), dtype=np.float32)

    def fit(self, view: View) -> Fitted:
        fitted = super().fit(view)
        method, arrays = fitted.method, fitted.arrays
        assert isinstance(method, PlaceEnsemble)  # it is this method with its choices made
        if self.weights == "val" and view.val is not None:
            ratios = method.of_members(arrays, method.points(arrays, view.val))
            chance = np.stack([_chance_of_truth(method, arrays, one, view) for one in ratios])
            arrays = {**arrays, "weights": mixture_weights(chance)}
        elif self.weights != "folds":
            return fitted
        chosen = (ChosenSetting("the weights of the members", ON_VAL if self.weights == "val" else ON_TRAIN),)
        return Fitted(method, arrays, (*fitted.remarks, *method.told_weights(arrays)), chosen)

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        fitted = super(PlaceEnsemble, replace(self, weights="equal")).fit(view)
        method, weighted = replace(cast(PlaceEnsemble, fitted.method), weights=self.weights), dict(fitted.arrays)
        weighted["weights"] = arrays["weights"]
        return Fitted(method, weighted, (*fitted.remarks, *method.told_weights(weighted)))

    def told_weights(self, arrays: Arrays) -> tuple[str, ...]:
        """Who counts how much, in a sentence, where that was chosen."""
        if self.weights == "equal":
            return ()
        names = [text.partition(":")[0] for text in self.members.split(",")]
        shares = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, arrays["weights"], strict=True))
        return (f"Weights of the members, by {self.weights}: {shares}.",)


def on_one_scale(
    ratios: Sequence[Ratios], moments: Sequence[tuple[NDArray[Any], NDArray[Any]]], weights: NDArray[np.float64]
) -> Ratios:
    """The mean of log ratios after each was brought to the same mean and spread, species by species.

    Args:
        ratios: Those of each member.
        moments: Mean and spread of each member by species.
        weights: How much each counts.
    """
    scaled = [(one - mean) / spread for one, (mean, spread) in zip(ratios, moments, strict=True)]
    total = sum(weight * one for weight, one in zip(weights, scaled, strict=True))
    bold = np.mean([spread for _, spread in moments], axis=0)
    level = np.mean([mean for mean, _ in moments], axis=0)
    return np.asarray(total * bold + level, dtype=np.float32)


def spread_of(ratios: Ratios) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and spread of each species over some points."""
    mean, spread = ratios.mean(axis=0, dtype=np.float64), ratios.std(axis=0, dtype=np.float64)
    # A member that says the same everywhere has no say: it is left as it is, at a spread of one.
    return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32)


def _log_chance(arrays: Arrays, log_prior: NDArray[np.float64], ratios: Ratios) -> NDArray[np.float64]:
    """Log-probabilities from log ratios: over all labels, or for a survey of each by itself."""
    if arrays["survey"][0]:
        return np.asarray(-np.logaddexp(0, -(log_odds(log_prior) + ratios)))
    return np.asarray(log_softmax(log_prior + ratios))


def _chance_of_truth(method: PlaceEnsemble, arrays: Arrays, ratios: Ratios, view: View) -> NDArray[np.float64]:
    """The probability that one member gives to what was found on val."""
    assert view.val is not None  # weights come from there
    targets = targets_of(view.val)
    if not method.several:
        logs = log_softmax(arrays["log_prior"] + ratios)
        return np.asarray(np.exp(logs[np.arange(len(logs)), targets.codes]))
    chances = method.scored(arrays, ratios).astype(np.float64)
    return np.asarray(np.where(targets.holds(chances.shape[1]), chances, 1 - chances).ravel())


def sample(background: Points, seed: int) -> Points:
    """Some of many points: mean and spread need no more, and to answer costs forests more than to grow."""
    if len(background) <= MOST_OF_MOMENTS:
        return background
    return background.take(np.sort(np.random.default_rng(seed).choice(len(background), MOST_OF_MOMENTS, replace=False)))


def _told(member: OnPlaces) -> str:
    """A member as it would be asked for, with the settings that differ from its defaults."""
    name = next(name for name in MEMBERS if MEMBERS[name] is type(member))
    usual = type(member)()
    left_out = ("inputs", "several", "seed", "listed")
    changed = [
        f"{key}={value}"
        for key, value in member.options.items()
        if key not in left_out and value != getattr(usual, key)
    ]
    return ":".join([name, *changed])
