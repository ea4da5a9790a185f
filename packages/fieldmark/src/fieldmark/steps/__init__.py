"""Steps: what happens to predictions after a method made them. Fitted on val, saved with the model as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.registry import Registry, late_imports
from fieldmark.settings import configure, parse_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fieldmark.steps.base import Step

STEPS: Registry[type[Step]] = Registry(
    "step",
    {
        "temperature": ("fieldmark.steps.temperature:Temperature", "one temperature for all logits, from val"),
        "bias-temperature": (
            "fieldmark.steps.bias_temperature:BiasTemperature",
            "one temperature and a bias for each label, from val",
        ),
        "group-temperature": (
            "fieldmark.steps.group_temperature:GroupTemperature",
            "a temperature for each month, habitat, ... drawn towards the common one",
        ),
        "max-softmax": ("fieldmark.steps.unknown_score:MaxSoftmax", "novelty: one minus the highest probability"),
        "unknown-score": (
            "fieldmark.steps.unknown_score:UnknownScore",
            "novelty by energy, highest logit, entropy or max softmax, from logits",
        ),
        "unknown-probability": (
            "fieldmark.steps.unknown_probability:UnknownProbability",
            "a probability of unknown from the novelty score",
        ),
        "unknown-threshold": (
            "fieldmark.steps.unknown_threshold:UnknownThreshold",
            "answers unknown above a threshold from val",
        ),
        "min-cost": ("fieldmark.steps.min_cost:MinCost", "the answer of least expected cost"),
        "observation-mean": (
            "fieldmark.steps.observation:ObservationMean",
            "photos of an observation share the mean of their log-probabilities",
        ),
        "observation-max": (
            "fieldmark.steps.observation:ObservationMax",
            "photos of an observation share the highest score of each label",
        ),
        "observation-attention": (
            "fieldmark.steps.observation:ObservationAttention",
            "photos of an observation share a weighted mean: better photos count more",
        ),
        "presence": (
            "fieldmark.steps.multilabel:PresenceCurve",
            "scores as probabilities that a label holds, from val",
        ),
        "label-lists": (
            "fieldmark.steps.label_lists:ListLabels",
            "a list of labels for each item, by thresholds of highest mean F1 on val",
        ),
        "neighbors": ("fieldmark.steps.neighbors:Neighbors", "smoothing over the neighboring segments of a recording"),
        "prior": (
            "fieldmark.steps.priors.prior:Prior",
            "prior by context (column=habitat, month, country, ...), from train",
        ),
        "month-prior": ("fieldmark.steps.priors.prior:MonthPrior", "prior by month, from train"),
        "country-prior": (
            "fieldmark.steps.priors.prior:CountryPrior",
            "prior by country, from train or a table of presence",
        ),
        "site-prior": ("fieldmark.steps.priors.groups:SitePrior", "prior by site, from val"),
        "season-prior": ("fieldmark.steps.priors.groups:SeasonPrior", "prior by month, from val"),
        "place-prior": (
            "fieldmark.steps.priors.places:PlacePrior",
            "prior by place and week, from BirdNET's location model",
        ),
        "prior-online": (
            "fieldmark.steps.prior_online:PriorOnline",
            "prior by recent label frequencies, from earlier days with forgetting",
        ),
        "prior-em": (
            "fieldmark.steps.prior_shift:PriorEm",
            "label frequencies of the test set, by EM; up to 100 labels",
        ),
        "prior-map": (
            "fieldmark.steps.prior_shift:PriorMap",
            "the same with pseudo-counts, so that rare labels stay possible; for many labels",
        ),
        "prior-confusion": (
            "fieldmark.steps.prior_shift:PriorConfusion",
            "the same from the confusions of val (RLLS, BBSE)",
        ),
        "class-thresholds": (
            "fieldmark.steps.class_thresholds:ClassThresholds",
            "drops scores below the threshold of their label; for lists that people read",
        ),
    },
    group="fieldmark.steps",
)


def make_step(text: str) -> Step:
    """A step by its name, with settings after a colon.

    >>> make_step("group-temperature:column=habitat,borrowed=50").column
    'habitat'
    """
    name, _, settings = text.partition(":")
    step: Step = configure(parse_pairs([pair for pair in settings.split(",") if pair]), STEPS[name])[0]
    return step


def step_to_data(step: Step) -> dict[str, Any]:
    """A fitted step as plain data; its arrays, where it has some, are saved apart."""
    return {"step": step.name, **asdict(step)}  # type: ignore[call-overload]


def step_from_data(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> Step:
    """A fitted step from plain data, and from the arrays it was saved with."""
    values = dict(data)
    name = values.pop("step", "")
    if name not in STEPS:
        raise MisuseError(f"The model has a step called {name!r}, which is not known. {did_you_mean(name, STEPS)}")
    step: Step = STEPS[name](**values)
    return step.with_arrays(arrays) if arrays else step


__getattr__ = late_imports(__name__, "fieldmark.steps.base:Step")
__all__ = ["STEPS", "Step", "make_step", "step_from_data", "step_to_data"]
