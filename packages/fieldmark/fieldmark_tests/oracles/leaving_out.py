"""Scores with each unit left out, computed by the naive programs on what is left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fieldmark_tests.oracles import classification, edition_programs, programs, retrieval
from fieldmark_tests.oracles.comparing import differences
from fieldmark_tests.oracles.presence import PRESENCE, present
from fieldmark_tests.oracles.tables import Case

Metrics = dict[str, float]


def items_of(case: Case) -> list[str]:
    """What is asked about, each once."""
    return programs.segments(case) if case.media is not None else list(dict.fromkeys(case.truth.column("id")))


def unit_of(case: Case) -> dict[str, str]:
    """The independent unit of each item."""
    if case.media is not None:
        return {item: item.rpartition("/")[0] for item in programs.segments(case)}
    return edition_programs.unit_of(case)


def values(case: Case, items: Sequence[str]) -> Metrics:
    """Every metric of some of the items of a case."""
    every = {**programs.PROGRAMS, **edition_programs.PROGRAMS, PRESENCE: present}
    return programs.with_declared(every[case.benchmark], case, items)


def value_without(card: Any, place: int) -> Metrics:
    """Every metric of a scorecard without one of its units, from the pseudo-values U v - (U - 1) v_u."""
    n_units = len(card.unit_ids)
    return {
        metric: (n_units * card.metrics[metric].value - float(pseudo[place])) / (n_units - 1)
        for metric, pseudo in card.pseudo.items()
    }


def left_out(case: Case, card: Any) -> Iterator[tuple[str, Metrics, Metrics]]:
    """Each unit with the metrics without it, by the scorecard and by the naive program."""
    units, items = unit_of(case), items_of(case)
    if len(card.unit_ids) < 2:
        return
    for place, unit in enumerate(card.unit_ids):
        found = value_without(card, place)
        kept = [item for item in items if units[item] != unit]
        naive = values(case, kept) | adaptive_to_first_order(case, items, kept)
        yield unit, found, {metric: naive[metric] for metric in found}


def adaptive_to_first_order(case: Case, items: Sequence[str], kept: Sequence[str]) -> Metrics:
    """Adaptive top-30 accuracy without some items as `fieldmark.metrics.geo` declares it: the threshold moves smoothly.

    The mean over those that are kept of h - dA/dM (m - M), with dA/dM the gain of accuracy per label between sets of
    22.5 and of 37.5 labels on average.
    """
    if case.benchmark != "geolifeclef-2020":
        return {}
    scores, true = programs.scores_of_places(case, items), dict(zip(items, programs.truth_of(case, items), strict=True))
    in_order = sorted((score for own in scores.values() for score in own.values()), reverse=True)
    wanted, gain = retrieval.SET_SIZE * len(items), 0.0
    if len(in_order) > wanted:
        reach = wanted // 4
        narrow, wide = in_order[wanted - reach - 1], in_order[min(wanted + reach, len(in_order)) - 1]
        between = sum(1 for score in in_order if wide <= score < narrow) / len(items)
        hits = [sum(1 for item in items if scores[item].get(true[item], -math.inf) >= line) for line in (wide, narrow)]
        gain = (hits[0] - hits[1]) / len(items) / between if between else 0.0
    found = {}
    for name, strict in (("adaptive_top_30", False), ("adaptive_top_30_strict", True)):
        sets = retrieval.adaptive_sets(scores, strict=strict)
        size = classification.mean([float(len(own)) for own in sets.values()])
        found[name] = classification.mean(
            [(true[item] in sets[item]) - gain * (len(sets[item]) - size) for item in kept]
        )
    return found


def differences_left_out(case: Case, card: Any) -> list[str]:
    """A line for each metric and unit whose value without that unit is another than the naive program's."""
    own = sorted(set(unit_of(case).values()))
    if sorted(card.unit_ids) != own:
        return [f"units: fieldmark.score says {sorted(card.unit_ids)}, the definition {own}"]
    pairs = list(left_out(case, card))
    return [f"without {unit}: {line}" for unit, ours, naive in pairs for line in differences(ours, naive)]
