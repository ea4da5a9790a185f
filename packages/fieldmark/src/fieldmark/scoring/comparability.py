"""Whether scorecards asked the same: what was asked of one run and not of another must not look like a difference."""

from __future__ import annotations

from collections.abc import Mapping

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import OF_FIRST_ANSWERS, first_answers
from fieldmark.errors import InputError
from fieldmark.scoring.scorecard import Scorecard

WITHOUT_CLASSES = ("present", "union")  # classes over which a macro average is taken, whatever else is listed


def refuse_other_questions(cards: Mapping[str, Scorecard]) -> None:
    """Refuses scorecards of other benchmarks, parts, units or truths.

    Raises:
        InputError: Names the first that differs, and in what.
    """
    first_name, first = next(iter(cards.items()))
    for name, card in cards.items():
        found, expected = ((c.benchmark, c.version, c.split, c.unit_ids) for c in (card, first))
        if found != expected:
            what = "other units" if found[:3] == expected[:3] else _question(card)
            hint = "Score both on the same part of the same benchmark."
            raise InputError(name, found=what, expected=f"{_question(first)}, as {first_name}", hint=hint)
    known = _with_digests(cards)
    for name, card in known.items():
        other, reference = next(iter(known.items()))
        if card.digests["truth"] != reference.digests["truth"]:
            hint = "Score both against the same truth."
            raise InputError(
                name, found="another truth", expected=f"the truth that {other} was scored against", hint=hint
            )


def remarks_on(cards: Mapping[str, Scorecard], metric: Metric) -> tuple[str, ...]:
    """What a reader must know before runs are compared by a metric.

    Raises:
        InputError: When the metric rests on something that is not the same for all of them.
    """
    known = _with_digests(cards)
    remarks = [_about_older(cards, metric)] if len(known) < len(cards) else []
    for name, card in known.items():
        other, reference = next(iter(known.items()))
        _refuse_other_conventions(name, card, other, reference, metric)
        _refuse_other_facts(name, card, other, reference, metric)
        if card.digests.get("classes") == reference.digests.get("classes"):
            continue
        if _rests_on_classes(metric):
            same_number = card.classes == reference.classes
            found = "other classes" if same_number else f"{card.classes} classes"
            expected = f"those of {other}" if same_number else f"the {reference.classes} of {other}"
            hint = "Score both with the same list of classes (--classes FILE)."
            raise InputError(name, found=found, expected=f"{expected}, on which {metric.name} rests", hint=hint)
        remarks.append(f"{name} was scored with other classes than {other}; {metric.name} does not rest on them.")
    return tuple(remarks)


def _with_digests(cards: Mapping[str, Scorecard]) -> dict[str, Scorecard]:
    return {name: card for name, card in cards.items() if card.digests}


def _about_older(cards: Mapping[str, Scorecard], metric: Metric) -> str:
    older = [name for name, card in cards.items() if not card.digests]
    numbers = sorted({card.classes for card in cards.values()})
    classes = f", and scored with {' and '.join(map(str, numbers))} classes" if len(numbers) > 1 else ""
    doubt = f"{classes}, on which {metric.name} rests" if classes and _rests_on_classes(metric) else classes
    return (
        f"{', '.join(older)}: from before scorecards said which truth, classes and conventions they rest on{doubt}; "
        "those are taken to be the same. Score again to be sure."
    )


def _refuse_other_conventions(name: str, card: Scorecard, other: str, reference: Scorecard, metric: Metric) -> None:
    found, expected = (one.digests["conventions"].get(metric.name) for one in (card, reference))
    if found != expected:
        words = [one.conventions.get(metric.name, "not said") for one in (card, reference)]
        hint = "Score both by the same conventions."
        found, expected = f"{metric.name} by {words[0]!r}", f"{words[1]!r}, as {other}"
        raise InputError(name, found=found, expected=expected, hint=hint)


def _refuse_other_facts(name: str, card: Scorecard, other: str, reference: Scorecard, metric: Metric) -> None:
    """Refuses what was said otherwise of classes or items, where the metric may read it."""
    if metric.proportion or metric.reads in (first_answers, *OF_FIRST_ANSWERS):
        return
    facts, expected = card.digests.get("facts", {}), reference.digests.get("facts", {})
    for fact in facts:
        if fact in expected and facts[fact] != expected[fact]:
            hint = "Score both with the same tables."
            raise InputError(name, found=f"another {fact}", expected=f"the same as for {other}", hint=hint)


def _rests_on_classes(metric: Metric) -> bool:
    """Whether the value may change with the list of classes: not a share of items, nor an average over what occurs."""
    if metric.proportion or metric.reads is first_answers:
        return False
    return not (metric.reads in OF_FIRST_ANSWERS and metric.options.get("over") in WITHOUT_CLASSES)


def _question(card: Scorecard) -> str:
    return f"a run on {card.split} of {card.benchmark} (version {card.version})"
