"""What mistakes cost: the likeliest answer against the one of least expected cost, over a range of prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, GREEN, MUTED, ORANGE, draw, name_curve, stacked
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.confusions import UNKNOWN_SPECIES, Pair, all_pairs, photos_of, poisonous_items
from fieldmark.scoring import Score
from fieldmark.stats.comparison import compare
from fieldmark.stats.concentrated import cost_interval
from fieldmark.stats.intervals import pseudo_values
from fieldmark.steps.costs import POISON_RULES, RULES, Costs, Prices, costs_by_rule, rule_of
from fieldmark.steps.min_cost import TASK
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels
from fieldmark_worlds import POSTERIORS
from fieldmark_worlds.nature.posterior import ClassPosterior

DANGEROUS_SHOWN, CONFUSIONS_LISTED = 6, 12
LIKELIEST, CHEAPEST, AS_RUN = "the likeliest label", "least expected cost", "as the run answers"
# For rules with one price that matters: its name, and the prices to try.
PRICE_OF = {"poison": "c_p", "fungiclef-3": "c_p", "unknown": "c_u", "unknown-organizers": "c_u"}
TRIED = {"c_p": np.geomspace(1, 1000, 25), "c_u": np.geomspace(1, 100, 25)}
# A bound so many times below the cheapest decision is told in the table and not drawn.
OFF_SCALE = 20.0
EXPLAINED = {
    "c_p": "what a poisonous species taken for a harmless one costs (c_p)",
    "c_u": "what an unknown species taken for a known one costs (c_u)",
}


@dataclass(frozen=True)
class Decision:
    """One way to answer: what it costs, and how often it is right."""

    title: str
    cost: Score
    right: Share


@dataclass(frozen=True)
class Paid:
    """A confusion that remains, and what each of its items costs."""

    pair: Pair
    each: float

    @property
    def together(self) -> float:
        return self.each * self.pair.items


@dataclass(frozen=True)
class Curve:
    """Mean cost and accuracy of each decision over a range of prices; the bound is None where it is not known."""

    price: str
    tried: NDArray[np.float64]
    cost: dict[str, NDArray[np.float64]]
    right: dict[str, NDArray[np.float64]]
    bound: NDArray[np.float64] | None


class CostSection(Section):
    """Costs of both decisions, the curve over prices, and the dangerous confusions that remain."""

    name = "costs"
    title = "Costs"

    def applies(self, context: Context) -> bool:
        return context.probabilities is not None and costs_of(context) is not None

    def render(self, context: Context) -> str:
        costs = costs_of(context)
        assert costs is not None  # applies() said so
        rule, prices = rule_and_prices(context)
        curve = cost_curve(context, rule, prices) if rule in PRICE_OF else None
        pairs = [pair for pair in all_pairs(context) if pair.dangerous] if rule in POISON_RULES else []
        paid = costliest(context, costs)
        if rule not in POISON_RULES:  # a table of one's own, or unknown: the price alone says what is grave
            pairs = [one.pair for one in paid]
        return render(
            "sections/costs.html.j2",
            context=context,
            decisions=decisions(context, costs),
            saved=_saved(context, costs),
            curve=curve,
            figure=None if curve is None else _figure(curve, getattr(prices, PRICE_OF[rule])),
            explained=None if curve is None else EXPLAINED[curve.price],
            bound=_bound(context, rule, prices) if rule in RULES else None,
            about_poison=rule in POISON_RULES,
            paid=paid[:CONFUSIONS_LISTED],
            n_paid=len(paid),
            pairs=[(pair, photos_of(context, pair)) for pair in pairs[:DANGEROUS_SHOWN]],
            n_dangerous=sum(pair.items for pair in pairs),
            n_pairs=len(pairs),
            poisonous_items=poisonous_items(context),
            called_unknown=_poisonous_called_unknown(context),
        )


def costs_of(context: Context) -> Costs | None:
    """The cost matrix of the run's own rule, else of the task; None where neither has one."""
    for step in context.first.run.steps:
        if step.get("step") == "min-cost" and step.get("costs"):
            return Costs.from_data(step["costs"])
    rule, prices = rule_and_prices(context)
    return costs_by_rule(rule, _labels(context), dangerous_labels(context), prices) if rule in RULES else None


def decisions(context: Context, costs: Costs) -> list[Decision]:
    """The likeliest label, the cheapest one, and where it is neither, what the run answers."""
    codes = _codes(context)
    return [
        Decision(title, _mean_cost(context, costs, given), share(given == codes, context.unit))
        for title, given in shown_answers(context, costs).items()
    ]


def shown_answers(context: Context, costs: Costs) -> dict[str, NDArray[np.int32]]:
    """The answers by each way to decide, without those of the run where they are the likeliest or the cheapest."""
    answers = given_answers(context, costs)
    if any((answers[AS_RUN] == answers[other]).all() for other in (LIKELIEST, CHEAPEST)):
        del answers[AS_RUN]
    return answers


def costliest(context: Context, costs: Costs) -> list[Paid]:
    """The confusions that cost anything, the costliest in all first; whatever made the matrix, a rule or a table."""
    code_of = {**costs.labels.code_of, UNKNOWN_SPECIES: len(context.labels)}
    pairs = all_pairs(context, called_unknown=context.task.unknown)
    paid = [Paid(pair, costs.at(code_of[pair.truth], code_of[pair.answer])) for pair in pairs]
    return sorted((one for one in paid if one.each > 0), key=lambda one: (-one.together, -one.each))


def cost_curve(context: Context, rule: str, prices: Prices) -> Curve:
    """Both decisions for each price, from the same stored probabilities."""
    price = PRICE_OF[rule]
    tried = TRIED[price]
    codes = _codes(context)
    cost: dict[str, list[float]] = {LIKELIEST: [], CHEAPEST: []}
    right: dict[str, list[float]] = {LIKELIEST: [], CHEAPEST: []}
    bound = [_bound(context, rule, replace(prices, **{price: float(value)})) for value in tried]
    for value in tried:
        changed = replace(prices, **{price: float(value)})
        costs = costs_by_rule(rule, _labels(context), dangerous_labels(context), changed)
        matrix, given = costs.matrix, given_answers(context, costs)
        for title in cost:
            cost[title].append(float(matrix[codes, given[title]].mean()))
            right[title].append(float((given[title] == codes).mean()))
    return Curve(
        price=price,
        tried=tried,
        cost={title: np.array(values) for title, values in cost.items()},
        right={title: np.array(values) for title, values in right.items()},
        bound=None if any(one is None for one in bound) else np.array(bound, dtype=np.float64),
    )


def rule_and_prices(context: Context) -> tuple[str, Prices]:
    """The rule and the prices by which the run answers, else those of the task; no name where there is none."""
    rule, prices = TASK, Prices()
    for step in context.first.run.steps:
        if step.get("step") == "min-cost":
            rule, prices = step["cost"], Prices(*(step[name] for name in ("c_p", "c_e", "c_u", "c_k")))
    if rule != TASK:
        return rule, prices
    try:
        return rule_of(context.task), prices
    except MisuseError:
        return "", prices


def _labels(context: Context) -> Labels:
    """The rows and columns of the cost matrix: the known labels, and unknown where the task has it."""
    return Labels((*context.labels.names, UNKNOWN_NAME)) if context.task.unknown else context.labels


def _codes(context: Context) -> NDArray[np.int32]:
    """The true label of each item as a row of the cost matrix, whose last row is unknown in an open set."""
    return np.where(context.truth == UNKNOWN, len(context.labels), context.truth).astype(np.int32)


def given_answers(context: Context, costs: Costs) -> dict[str, NDArray[np.int32]]:
    """The answers by each way to decide; unknown is the last label of the costs."""
    p = context.predictions.probabilities()
    if len(costs.labels) > p.shape[1]:  # the run never answers unknown
        p = np.column_stack([p, np.zeros(len(p), dtype=p.dtype)])
    return {
        LIKELIEST: p.argmax(axis=1).astype(np.int32),
        CHEAPEST: costs.best(p),
        AS_RUN: np.where(context.predicted >= 0, context.predicted, len(context.labels)).astype(np.int32),
    }


def dangerous_labels(context: Context) -> NDArray[np.bool_]:
    """For each label of the costs whether it is poisonous or venomous."""
    taxa = context.opened.dataset.taxa
    flags = dict(zip(taxa["label"], taxa["poisonous"], strict=True))
    return np.array([bool(flags.get(name)) for name in _labels(context).names])


def _poisonous_called_unknown(context: Context) -> int:
    """How many items of poisonous classes were answered with unknown, which the rules of poison take for harmless."""
    flags = np.append(dangerous_labels(context)[: len(context.labels)], False)
    return int((flags[context.truth] & (context.predicted == UNKNOWN)).sum()) if context.task.unknown else 0


def _pseudo(context: Context, costs: Costs, given: NDArray[np.int32]) -> tuple[float, NDArray[np.float64]]:
    paid = costs.matrix[_codes(context), given]
    value = float(paid.mean())
    return value, pseudo_values(value, mean_without_each_unit(paid, context.unit))


def _mean_cost(context: Context, costs: Costs, given: NDArray[np.int32]) -> Score:
    value, pseudo = _pseudo(context, costs, given)
    bounds = cost_interval(value, pseudo, largest=float(costs.wrong.max()))
    return Score(value, bounds.low, bounds.high, bounds.method, bounds.reason)


def _saved(context: Context, costs: Costs) -> Score:
    """What the cheapest answer saves against the likeliest, paired by unit."""
    answers = given_answers(context, costs)
    pairs = [_pseudo(context, costs, answers[title]) for title in (LIKELIEST, CHEAPEST)]
    outcome = compare(np.array([value for value, _ in pairs]), np.stack([pseudo for _, pseudo in pairs]))
    apart = outcome.differences[0]
    return Score(apart.value, apart.interval.low, apart.interval.high, apart.interval.method, apart.interval.reason)


def _bound(context: Context, rule: str, prices: Prices) -> float | None:
    """The expected cost of the best decision that knows the traits, on a world whose test photos these are."""
    posterior = _posterior(context)
    if posterior is None:
        return None
    labels, probabilities = posterior
    flags = dict(zip(_labels(context).names, dangerous_labels(context), strict=True))
    costs = costs_by_rule(rule, labels, np.array([bool(flags.get(name)) for name in labels.names]), prices)
    return float(costs.expected(probabilities).min(axis=1).mean())


def _posterior(context: Context) -> tuple[Labels, NDArray[np.float64]] | None:
    """The exact posterior of a world behind the items of the page, where there is one."""
    world = context.first.run.world or {}
    if world.get("dataset") not in POSTERIORS or context.part != "test" or not context.task.unknown:
        return None
    exact = _posterior_of_world(str(world["dataset"]), str(world["size"]), int(world["seed"]))
    return (Labels(exact.labels), exact.probabilities) if set(exact.items) == set(context.predictions.items) else None


@cache
def _posterior_of_world(dataset: str, size: str, seed: int) -> ClassPosterior:
    return POSTERIORS[dataset](size, seed)


def _figure(curve: Curve, price: float) -> Any:
    paint: Callable[[Figure], None] = partial(_paint, curve=curve, price=price)
    return draw(
        "costs-curve",
        paint,
        width=720,
        height=520,
        description="Mean cost and share of right answers of both decisions, for a range of prices.",
    )


def _paint(figure: Figure, *, curve: Curve, price: float) -> None:
    above, below = stacked(figure, heights=(1.6, 1))
    for title, color in ((LIKELIEST, MUTED), (CHEAPEST, BLUE)):
        above.plot(curve.tried, curve.cost[title], color=color, label=title)
        below.plot(curve.tried, curve.right[title], color=color)
        name_curve(
            below, curve.tried.tolist(), curve.right[title].tolist(), title, color, at=0.02 if color == MUTED else 0.6
        )
    lowest = min(float(values.min()) for values in curve.cost.values())
    if curve.bound is not None and (lowest <= 0 or curve.bound.max() > lowest / OFF_SCALE):
        label = "the least that the traits allow (simulated)"
        above.plot(curve.tried, curve.bound, color=GREEN, linestyle=(0, (4, 3)), label=label)
    for axes in (above, below):
        axes.axvline(price, color=ORANGE, linewidth=1, linestyle=(0, (2, 3)))
    above.set_title("Mean cost")
    above.legend(loc="upper left")
    above.set(xscale="log", yscale="log" if lowest > 0 else "linear")
    if lowest > 0:
        above.set_ylim(bottom=lowest / OFF_SCALE)
    above.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    below.set_title("Share correct")
    below.set_ylim(0, 1)
    below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    below.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    below.set_xlabel(f"{curve.price}; the dotted line is the price of this run")


SECTION = CostSection()
