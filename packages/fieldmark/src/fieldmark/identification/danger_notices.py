"""Whether to be careful with a specimen, and how much is said about it.

The whole notice is given where the probability of danger exceeds what a mistake allows. Where all of it comes from
groups that the specimen hardly belongs to (a snake, for a photo that is surely of a dog), one line says so in its
place: whoever reads a page of warnings under each photo of a dog stops reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fieldmark.identification.advice import OTHER_ADVICE, advice_for, danger_word
from fieldmark.identification.label_facts import LabelFacts
from fieldmark.identification.photo_answers import DangerNotice, LookAlike, RankedClaim, UnknownVerdict
from fieldmark.models.guides.dangers import NEVER
from fieldmark.models.guides.living_groups import FUNGI, OTHER, SNAKES

Floats = NDArray[np.float64]
# Groups that have less than this together are improbable.
IMPROBABLE = 0.05
# Groups with less danger than this are not named; those that are, have most of what exceeds the line.
WORTH_NAMING = 0.001
CALLED = {OTHER: "other kinds"}


def danger_notice(
    facts: LabelFacts,
    chances: Floats,
    allowed: float,
    group: str,
    verdict: UnknownVerdict,
    sure_of: RankedClaim | None,
    look_alikes: Callable[[], tuple[LookAlike, ...]],
) -> DangerNotice | None:
    """Why to be careful; None where there is no reason.

    Args:
        facts: What is known about the labels.
        chances: The probability of each label, whatever a person left out.
        allowed: The highest probability of danger that goes without a notice.
        group: The group that most of the probability lies on.
        verdict: Whether the specimen is like anything that the model knows.
        sure_of: What the model is sure enough of among all its labels; None where that is nothing.
        look_alikes: Finds the dangerous species that it could be.
    """
    probability = float(chances[facts.dangerous].sum())
    because = []
    if probability > allowed and facts.dangerous.any():
        codes = np.flatnonzero(facts.dangerous)
        group = facts.groups[int(codes[chances[codes].argmax()])]
        because.append(_reason(facts, group, codes, probability, allowed))
        if line := _one_line(facts, chances, allowed, verdict, sure_of):
            return DangerNotice(group, probability, allowed, (line,), (), (), brief=True)
    if verdict.known is False and group in (FUNGI, SNAKES):
        because.append(f"It may be a species that the model does not know, and that can be a {danger_word(group)} one.")
    if not because:
        return None
    return DangerNotice(group, probability, allowed, tuple(because), look_alikes(), advice_for(group))


def _reason(facts: LabelFacts, group: str, dangerous: NDArray[np.int64], probability: float, allowed: float) -> str:
    own = [taxon for taxon, name in zip(facts.taxa, facts.groups, strict=True) if name == group]
    if all(taxon.poisonous is None for taxon in own):
        return f"The model was not told which of its {group} are poisonous: each counts as if it were."
    word = danger_word(group)
    feared_of = f"a {word} species"
    if not all(facts.taxa[int(code)].species for code in dangerous):  # some labels are genera, families, orders
        feared_of += f", or of a group that holds {word} ones,"
    told = "less than 0.1 %" if allowed < 0.001 else f"{100 * allowed:.1f} %"
    return f"The probability of {feared_of} is {exact_percent(probability)}; what a mistake costs allows {told}."


def _one_line(
    facts: LabelFacts, chances: Floats, allowed: float, verdict: UnknownVerdict, sure_of: RankedClaim | None
) -> str:
    """The line in place of the whole notice; empty where the whole notice is due.

    It takes all of these: the groups that the danger comes from have less than 5 % together, the danger in the other
    groups goes without a notice, the specimen is not called unknown, and the model is sure of a taxon below the kingdom
    that holds nothing of those groups.
    """
    if verdict.known is False or sure_of is None or sure_of.rank == "kingdom":
        return ""
    groups = np.array(facts.groups)
    # Scorpions and dogs are both "other": there, dangerous labels are a group by themselves.
    members = {
        name: (groups == name) & (facts.dangerous | (name != OTHER)) for name in sorted(set(groups[facts.dangerous]))
    }
    far = {name: own for name, own in members.items() if chances[own].sum() < IMPROBABLE}
    is_far = np.logical_or.reduce([np.zeros(len(groups), np.bool_), *far.values()])
    claimed = any(taxon.label in sure_of.labels for taxon, there in zip(facts.taxa, is_far, strict=True) if there)
    near_danger = float(chances[facts.dangerous & ~is_far].sum())
    if claimed or near_danger > allowed or chances[is_far].sum() >= IMPROBABLE:
        return ""
    danger_in = {name: float(chances[own & facts.dangerous].sum()) for name, own in far.items()}
    return improbable_line({name: share for name, share in danger_in.items() if share >= WORTH_NAMING})


def improbable_line(danger_in: Mapping[str, float]) -> str:
    """One line about danger from groups that a specimen hardly belongs to, given the danger in each.

    >>> improbable_line({"snakes": 0.021})
    'Dangerous snakes are improbable (2.1 %), but not ruled out. Never touch a snake because a model named it.'
    """
    order = sorted(danger_in, key=lambda name: -danger_in[name])
    shown = [CALLED.get(name, name) for name in order]
    named = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    share = exact_percent(sum(danger_in.values())) + (" together" if len(shown) > 1 else "")
    advice = dict.fromkeys(NEVER.get(name, OTHER_ADVICE[0]) for name in order)
    return f"Dangerous {named} are improbable ({share}), but not ruled out. {' '.join(advice)}"


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
