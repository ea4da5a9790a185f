"""What mistakes cost: poison, missed unknowns, venom, and the tracks of FungiCLEF and SnakeCLEF."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import ANY_COST, Arguments, first_answers
from fieldmark.benchmarks.measures.support import on_costs, on_venom
from fieldmark.metrics import costs
from fieldmark.metrics.costs import Track
from fieldmark.questions.one_label import LabelEvaluation

__all__ = ["cost_poison", "cost_unknown", "fungiclef_track", "venom_cost", "venom_score"]


def _first_answers_and_danger(evaluation: LabelEvaluation) -> Arguments:
    return {**first_answers(evaluation), "dangerous": evaluation.dangerous}


def _first_answers_and_venom(evaluation: LabelEvaluation) -> Arguments:
    return {**first_answers(evaluation), "venomous": evaluation.dangerous}


# What a mistake about an item costs at most, in each track.
_TRACK_RESTS_ON = {
    1: None,
    2: partial(on_costs, kind="dangerous", dear=100.0, other=1.0),
    3: partial(on_costs, kind="dangerous", dear=101.0, other=2.0),
    4: partial(on_costs, kind="unknown", dear=10.0, other=1.0),
}


def _first_answers_and_danger_of_species(evaluation: LabelEvaluation) -> Arguments:
    return {**_first_answers_and_danger(evaluation), "truly_dangerous": evaluation.truly_dangerous}


def _said_of_unknown(evaluation: LabelEvaluation) -> Sequence[str]:
    """That some unknown species count as harmless because nobody says what they are."""
    unknown, said = ~evaluation.is_known, evaluation.truth.poisonous
    silent = unknown if said is None else unknown & said.is_null().to_numpy()
    if not silent.any():
        return ()
    count = int(silent.sum())
    said_nothing = f"the truth does not say of {count} unknown items whether they are poisonous"
    return (f"cost_poison: {said_nothing}; they count as harmless",)


def cost_poison(*, unknown: Literal["species", "harmless"] = "species") -> Metric:
    """What confusing poisonous and edible species costs; unknown species by what they are, or all as harmless."""
    by_species = unknown == "species"
    counts = "-1 counts as harmless" + (
        " as an answer, and in the truth as the species that it is" if by_species else ""
    )
    return Metric(
        name="cost_poison" if by_species else "cost_poison_unknown_harmless",
        title="Cost of poison confusions" if by_species else "Cost of poison, unknown as harmless",
        unit="cost",
        value=costs.poison_cost,
        without_each_unit=costs.poison_cost_without_each_unit,
        rests_on=partial(on_costs, kind="dangerous", dear=100.0, other=1.0),
        reads=_first_answers_and_danger_of_species if by_species else _first_answers_and_danger,
        first_answer=True,
        options={"c_p": 100.0, "c_e": 1.0},
        about=f"mean of 100 for poisonous taken for harmless, 1 for harmless taken for poisonous; {counts}",
        largest_cost=100.0,
        higher_is_better=False,
        bounds=ANY_COST,
        remarks=_said_of_unknown if by_species else None,
        otherwise={"unknown=harmless": partial(cost_poison, unknown="harmless")} if by_species else {},
    )


def cost_unknown() -> Metric:
    """What missing the unknown costs."""
    return Metric(
        name="cost_unknown",
        title="Cost of missed unknowns",
        unit="cost",
        value=costs.unknown_cost,
        without_each_unit=costs.unknown_cost_without_each_unit,
        rests_on=partial(on_costs, kind="unknown", dear=10.0, other=1.0),
        reads=first_answers,
        first_answer=True,
        options={"c_u": 10.0, "c_k": 1.0},
        about="mean of 10 for an unknown item answered with a known class, 1 for any other mistake",
        largest_cost=10.0,
        higher_is_better=False,
        bounds=ANY_COST,
    )


def fungiclef_track(track: Track) -> Metric:
    """A track of FungiCLEF 2023 and 2024 as their evaluator has it, unrounded."""
    about = {
        1: "classification error; unknown is a class",
        2: "cost of confusing poisonous and edible: 100 and 1",
        3: "track 1 plus track 2",
        4: "error with 10 for a missed unknown, 0.1 for a known taken for unknown, 1 otherwise",
    }[track]
    return Metric(
        name=f"track_{track}",
        title=f"Track {track}",
        unit="%" if track == 1 else "cost",
        value=costs.fungiclef_track,
        without_each_unit=costs.fungiclef_track_without_each_unit,
        rests_on=_TRACK_RESTS_ON[track],
        reads=_first_answers_and_danger,
        first_answer=True,
        options={"track": track},
        about=f"{about}; the organizers round to four digits",
        largest_cost={1: None, 2: 100.0, 3: 101.0, 4: 10.0}[track],
        proportion=track == 1,
        higher_is_better=False,
        bounds=(0.0, 1.0) if track == 1 else ANY_COST,
    )


def venom_cost() -> Metric:
    """Track 2 of SnakeCLEF 2023: the sum of what mistakes cost."""
    return Metric(
        name="venom_cost",
        title="Cost of venom confusions",
        unit="cost",
        value=costs.venom_cost,
        without_each_unit=costs.venom_cost_without_each_unit,
        rests_on=partial(on_costs, kind="venomous", dear=5.0, other=2.0),
        reads=_first_answers_and_venom,
        first_answer=True,
        about="sum over mistakes: harmless for harmless 1, for venomous 2; venomous for harmless 5, for venomous 2",
        largest_cost=5.0,
        summed=True,
        higher_is_better=False,
        bounds=ANY_COST,
        optional=True,
    )


def venom_score() -> Metric:
    """Track 1 of SnakeCLEF 2023: a weighted mean of macro-F1 and the shares of harmless mistakes, in percent."""
    return Metric(
        name="venom_score",
        title="Venom score",
        unit="points",
        value=costs.venom_score,
        without_each_unit=costs.venom_score_without_each_unit,
        rests_on=on_venom,
        borrowing=True,
        reads=_first_answers_and_venom,
        first_answer=True,
        about="track 1 of SnakeCLEF 2023, from 0 to 100, unrounded",
        bounds=(0.0, 100.0),
        optional=True,
    )
