"""Whether to be careful with a specimen, and how much is said about it.

First comes how plausible the dangerous group is. Whatever model answers, the packaged network says whether a photo may
show a fungus or a snake (`packaged.photo_groups`), so that a snake shown to a model of birds is noticed, and a cardinal
shown to a model that knows cobras is not taken for one. Where the group is plausible, the whole notice is given; where
it is not, one line: whoever reads a page of warnings under each photo of a bird stops reading them. A specimen that may
be a fungus or a snake never goes without a word.

Where nothing was seen of the photos (a recording, no packaged network, a simulated world), the probabilities of the
answering model itself tell the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fieldmark.identification.advice import OTHER_ADVICE, SINGULAR, advice_for, danger_word
from fieldmark.identification.label_facts import LabelFacts, TaxonOfLabel
from fieldmark.identification.packaged.photo_groups import PLAUSIBLE
from fieldmark.identification.photo_answers import DangerNotice, LookAlike, RankedClaim, UnknownVerdict
from fieldmark.models.guides.dangers import NEVER
from fieldmark.models.guides.living_groups import FUNGI, OTHER, SNAKES

Floats = NDArray[np.float64]
# Groups that have less than this are improbable.
IMPROBABLE = 0.05
# From this on a group is plausible even where the answering model is sure of another one.
LIKELY = 0.5
# What the packaged network gives less than this is not worth a line.
WORTH_A_LINE = 0.02
# What the one line says, and no whole notice does.
IMPROBABLE_WORDS = "are unlikely"
CALLED = {OTHER: "other kinds"}


@dataclass(frozen=True)
class DangerQuestion:
    """What decides about a notice.

    Args:
        facts: What is known about the labels.
        chances: The probability of each label, whatever a person left out.
        allowed: The highest probability of danger that goes without a notice.
        verdict: Whether the specimen is like anything that the model knows.
        sure_of: What the model is sure enough of among all its labels; None where that is nothing.
        seen: The probability of each group by the packaged network; None where nothing was seen of the photos.
        lines: From which such probability on fungi and snakes are plausible.
    """

    facts: LabelFacts
    chances: Floats
    allowed: float
    verdict: UnknownVerdict
    sure_of: RankedClaim | None
    seen: Mapping[str, float] | None = None
    lines: Mapping[str, float] = field(default_factory=lambda: PLAUSIBLE)

    def danger_in(self, group: str) -> float:
        """The probability of the dangerous labels of a group."""
        return float(self.chances[self.facts.dangerous & self.members(group)].sum())

    def share_of(self, group: str) -> float:
        """The probability of a group by the answering model; of "other", which holds dogs and scorpions, its danger."""
        return self.danger_in(group) if group == OTHER else float(self.chances[self.members(group)].sum())

    def members(self, group: str) -> NDArray[np.bool_]:
        return np.array([name == group for name in self.facts.groups], dtype=np.bool_)

    def probability_of(self, group: str) -> float:
        """How likely the specimen belongs to a group, as far as it can be told."""
        return self.share_of(group) if self.seen is None or group == OTHER else self.seen[group]

    def sure_of_another(self, group: str) -> bool:
        """Whether the model is sure of a taxon below the kingdom that holds nothing of a group."""
        if self.verdict.known is False or self.sure_of is None or self.sure_of.rank == "kingdom":
            return False
        held = np.isin([taxon.label for taxon in self.facts.taxa], self.sure_of.labels)
        near = self.members(group) & (self.facts.dangerous | (group != OTHER))
        return not (held & near).any()

    def is_plausible(self, group: str) -> bool:
        """Whether the specimen may well belong to a group."""
        probability, own = self.probability_of(group), self.share_of(group)
        if self.seen is None:
            return own >= IMPROBABLE or not self.sure_of_another(group)
        if group not in (FUNGI, SNAKES):
            return min(probability, own) >= IMPROBABLE
        by_model = own >= LIKELY and self.verdict.known is True
        line = LIKELY if self.sure_of_another(group) else self.lines[group]
        return by_model or probability >= line


def danger_notice(
    question: DangerQuestion, look_alikes: Callable[[Sequence[str]], tuple[LookAlike, ...]]
) -> DangerNotice | None:
    """Why to be careful; None where there is no reason.

    Args:
        question: What decides.
        look_alikes: Finds the dangerous species of some groups that it could be.
    """
    facts, seen = question.facts, question.seen
    danger = {group: question.danger_in(group) for group in sorted({*facts.groups, FUNGI, SNAKES})}
    total = sum(danger.values())
    feared = [group for group, share in danger.items() if share > 0 and total > question.allowed]
    feared = [group for group in feared if danger[group] > question.allowed / len(feared)]
    if seen is not None:
        # A model may give cobras a percent of every bird: what hardly anything speaks for is skipped.
        least = max(question.allowed, WORTH_A_LINE)
        feared = [one for one in feared if question.probability_of(one) > least or question.share_of(one) >= LIKELY]
        feared += [group for group in (FUNGI, SNAKES) if group not in feared and seen[group] > least]
    elif question.verdict.known is False:
        feared += [group for group in (FUNGI, SNAKES) if group not in feared and question.share_of(group) >= LIKELY]
    if not feared:
        return None
    feared.sort(key=lambda group: -max(question.probability_of(group), danger[group]))
    near = [group for group in feared if question.is_plausible(group)]
    if seen is None and sum(map(question.share_of, feared)) >= IMPROBABLE:
        near = feared  # improbable groups count together
    if not near:
        line = improbable_line({group: danger[group] if seen is None else seen[group] for group in feared})
        return DangerNotice(feared[0], total, question.allowed, (line,), (), (), brief=True)
    because = tuple(reason for group in near for reason in _reasons(question, group, danger[group]))
    because = because or (_reason_together(question, near[0], total),)
    advice = tuple(dict.fromkeys(sentence for group in near for sentence in advice_for(group)))
    return DangerNotice(near[0], total, question.allowed, because, look_alikes(near), advice)


def _reasons(question: DangerQuestion, group: str, danger: float) -> list[str]:
    facts, told = question.facts, []
    own = [taxon for taxon, name in zip(facts.taxa, facts.groups, strict=True) if name == group]
    word = danger_word(group)
    if question.seen is not None and group in SINGULAR and question.seen[group] >= IMPROBABLE:
        looks = f"The photo may show {SINGULAR[group]} ({exact_percent(question.seen[group])})"
        told.append(f"{looks}." if own else f"{looks}, for which this model has no names.")
    if own and danger > question.allowed:
        told.append(_probability(own, group, danger, question.allowed))
    if own and question.verdict.known is False:
        told.append(f"It may be a species that the model does not know, possibly a {word} one.")
    return told


def _reason_together(question: DangerQuestion, group: str, total: float) -> str:
    """Why to be careful where no group has a reason of its own: only together they are above the line."""
    if total > question.allowed:
        shown = f"The probability of all dangerous species together is {exact_percent(total)}"
        return f"{shown}; a warning is shown above {_least(question.allowed)}."
    return f"The model takes it for one of the {group} ({exact_percent(question.share_of(group))})."


def _probability(taxa: Sequence[TaxonOfLabel], group: str, danger: float, allowed: float) -> str:
    if all(taxon.poisonous is None for taxon in taxa):
        return f"The model has no data on which of its {group} are poisonous, so all of them count as poisonous."
    word = danger_word(group)
    feared_of = f"a {word} species"
    if not all(taxon.species for taxon in taxa if taxon.poisonous):  # some labels are genera, families, orders
        feared_of += f", or of a group that holds {word} ones,"
    return f"The probability of {feared_of} is {exact_percent(danger)}; a warning is shown above {_least(allowed)}."


def _least(allowed: float) -> str:
    return "less than 0.1 %" if allowed < 0.001 else f"{100 * allowed:.1f} %"


def improbable_line(chances: Mapping[str, float]) -> str:
    """One line about dangerous groups that a specimen hardly belongs to, given the probability of each.

    >>> improbable_line({"snakes": 0.021})
    'Dangerous snakes are unlikely (2.1 %), but not ruled out. Never touch a snake because a model named it.'
    """
    order = sorted(chances, key=lambda name: -chances[name])
    shown = [CALLED.get(name, name) for name in order]
    named = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    share = exact_percent(sum(chances.values())) + (" together" if len(shown) > 1 else "")
    advice = dict.fromkeys(NEVER.get(name, OTHER_ADVICE[0]) for name in order)
    return f"Dangerous {named} {IMPROBABLE_WORDS} ({share}), but not ruled out. {' '.join(advice)}"


def exact_percent(share: float) -> str:
    """A share for people, with more digits where it is small.

    >>> exact_percent(0.123), exact_percent(0.0004), exact_percent(0.999)
    ('12 %', 'less than 0.1 %', 'more than 99 %')
    """
    if share < 0.001:
        return "less than 0.1 %"
    if share < 0.1:
        return f"{100 * share:.1f} %"
    return "more than 99 %" if share > 0.995 else f"{100 * share:.0f} %"
