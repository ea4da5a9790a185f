"""A classifier whose answers are expected to cost least."""

from __future__ import annotations

from dataclasses import dataclass

from fieldmark.methods.openset import OpenSet
from fieldmark.settings import setting_of
from fieldmark.steps.base import Step
from fieldmark.steps.min_cost import TASK, MinCost
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_probability import UnknownProbability


@dataclass(frozen=True)
class LeastCost(OpenSet):
    """A classifier, calibrated, with the step `min-cost` after it.

    The idea is the step; this method is the chain that makes its probabilities: the classifier's logits, a temperature,
    the probability of "unknown" from a novelty score, and the rule.

    Args:
        cost: A rule, a CSV file, or `task`: see `fieldmark.steps.min_cost`.
        c_p, c_e, c_u, c_k: What the rules charge.
    """

    cost: str = TASK
    c_p: float = setting_of(MinCost, "c_p")
    c_e: float = setting_of(MinCost, "c_e")
    c_u: float = setting_of(MinCost, "c_u")
    c_k: float = setting_of(MinCost, "c_k")

    def default_steps(self) -> tuple[Step, ...]:
        return (Temperature(), UnknownProbability(), self._decision())

    def _decision(self) -> MinCost:
        return MinCost(self.cost, self.c_p, self.c_e, self.c_u, self.c_k)
