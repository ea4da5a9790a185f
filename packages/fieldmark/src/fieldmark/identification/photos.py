"""The answer to photos of one specimen, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.photos import is_noise, is_plain
from fieldmark.identification.advice import next_photos
from fieldmark.identification.danger_notices import DangerQuestion, danger_notice, exact_percent
from fieldmark.identification.label_facts import THREATENED, LabelFacts
from fieldmark.identification.microscopy import is_microscopic
from fieldmark.identification.name_lists import Restriction
from fieldmark.identification.photo_answers import (
    Contribution,
    DangerNotice,
    LookAlike,
    Name,
    Neighbor,
    PhotoAnswer,
    RankedClaim,
    ShortList,
    UnknownVerdict,
)
from fieldmark.identification.pretrained import TrainedElsewhere
from fieldmark.identification.results import Circumstances
from fieldmark.identification.specimens import SpecimenQuery
from fieldmark.models.guides import Guide
from fieldmark.models.guides.conformal import ConformalSets, calibrate
from fieldmark.models.guides.dangers import allowed_by
from fieldmark.models.guides.living_groups import FUNGI, OTHER, is_genus
from fieldmark.models.guides.rollup import BANDS, OF_LABEL, RollUp, learn_roll_up, rank_of_labels

Floats = NDArray[np.float64]
NEAREST, LOOK_ALIKES, PHOTOS_EACH = 5, 3, 2
# Look-alikes below this probability are named only where nothing likelier is dangerous.
WORTH_NAMING = 0.002
# From which probability on a name counts for whether places are told exactly.
LIKELY = 0.05
PLAIN, NOISE = "It shows a single color.", "It shows only noise."


@dataclass(frozen=True)
class PhotoQuestion:
    """How photos are asked about.

    Args:
        top: How many names to give.
        restriction: Which labels may be given.
        common_names: Common names by species (in small letters) and language.
        evidence: Whether to say what moved the answer, which training photos look alike and which photos are
            microscopic, which takes longest.
        facts: What is known about the labels, where somebody who asks much has looked it up.
        circumstances: What is known besides the photos.
    """

    top: int = 3
    restriction: Restriction = field(default_factory=Restriction)
    common_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    evidence: bool = True
    facts: LabelFacts | None = field(default=None, repr=False, compare=False)
    circumstances: Circumstances = field(default_factory=Circumstances)


def answer_photos(asked: SpecimenQuery, question: PhotoQuestion) -> PhotoAnswer:
    """The answer to the photos of one specimen."""
    made = _Making(asked, question)
    model = asked.model
    final = asked.final
    verdict = made.verdict()
    claim = made.claim() if verdict.known is not False else None
    made.hold_names_to(claim)
    answer = PhotoAnswer(
        file=asked.photos[0],
        names=made.best_names(question.top),
        unknown=None if final.unknown is None else float(final.unknown[0]),
        simulated=model.simulated,
        remarks=made.remarks(),
        further=asked.photos[1:],
        claim=claim,
        verdict=verdict,
        danger=made.danger(verdict, claim),
        short_list=made.short_list(),
        sources=made.sources() if question.evidence else (),
        ignored=ignored(asked),
        missing=tuple(name for name in asked.usable if name not in asked.used),
        nearest=made.nearest() if question.evidence else (),
        next_photos=next_photos(made.group),
        microscopic=made.microscopic() if question.evidence else (),
        knows=len(model.labels),
        group=made.group,
        groups={name: round(chance, 6) for name, chance in (asked.seen or {}).items()},
        threatened=made.threatened(),
        circumstances=question.circumstances,
    )
    method = model.fitted.method
    return method.plainly(model, answer) if isinstance(method, TrainedElsewhere) else answer


class _Making:
    """One answer in the making."""

    def __init__(self, asked: SpecimenQuery, question: PhotoQuestion) -> None:
        self.asked, self.question, self.model = asked, question, asked.model
        self.facts = question.facts or LabelFacts.of(self.model)
        self.taxa, self.groups, self.dangerous = self.facts.taxa, self.facts.groups, self.facts.dangerous
        self.chances, self.elsewhere = question.restriction.chances(asked.chances)
        self.guide: Guide | None = self.model.guide
        self.stated = self.chances

    def hold_names_to(self, claim: RankedClaim | None) -> None:
        """Lets every name carry the number that validation bears out, and none above that of a taxon that holds it."""
        self.stated = np.array([self._borne_out(float(chance)) for chance in self.chances])
        if claim is not None:
            codes = [self.model.labels.code_of[label] for label in claim.labels]
            self.stated[codes] = np.minimum(self.stated[codes], claim.probability)

    def _borne_out(self, chance: float) -> float:
        """The probability of a label as it is stated: where validation was asked, never higher than it bears out."""
        rule = self._rule
        return chance if rule is None or chance < BANDS[1] else rule.stated(OF_LABEL, chance)

    @cached_property
    def _rule(self) -> RollUp | None:
        rule = self._rules()[0]
        return rule if rule is not None and OF_LABEL in rule.bands else None

    @property
    def group(self) -> str:
        """The group that most of the probability lies on."""
        weight = dict.fromkeys(self.groups, 0.0)
        for name, chance in zip(self.groups, self.asked.chances, strict=True):
            weight[name] += float(chance)
        return max(weight, key=weight.__getitem__) if weight else OTHER

    def names(self, codes: Sequence[int] | NDArray[np.int64], chances: Floats | None = None) -> tuple[Name, ...]:
        shown = self.stated if chances is None else chances
        found = []
        for code in codes:
            taxon = self.taxa[code]
            commons = self.question.common_names.get((taxon.species or taxon.label).replace("_", " ").lower(), {})
            common = taxon.common_name or next(iter(commons.values()), None)
            chance = round(float(shown[code]), 6)
            found.append(Name(taxon.label, taxon.species, common, chance, taxon.poisonous, dict(commons)))
        return tuple(found)

    def best_names(self, top: int) -> tuple[Name, ...]:
        """The likeliest names, of those that may be given."""
        order = np.argsort(-self.chances, kind="stable")
        allowed = self.question.restriction.allowed
        return self.names([int(code) for code in order if allowed is None or allowed[code]][:top])

    def verdict(self) -> UnknownVerdict:
        if self.guide is None:
            return (
                UnknownVerdict(False, because="A rule of the model calls it unknown.")
                if self._called
                else UnknownVerdict(None)
            )
        if all(map(is_plain, self.asked.held)):
            return UnknownVerdict(False, 1.0, self.guide.strangers.line, PLAIN)
        # Fitted models tell noise by the distance to what they were shown.
        if isinstance(self.model.fitted.method, TrainedElsewhere) and all(map(is_noise, self.asked.held)):
            return UnknownVerdict(False, 1.0, self.guide.strangers.line, NOISE)
        strangers = self.guide.strangers
        distance = None
        if self.asked.features is not None and len(strangers.kept):
            distance = float(strangers.distances(self.asked.features).mean())
        score = strangers.score(distance, 1 - float(self.asked.chances.max()))
        because = ""
        if score > strangers.line:
            apart = distance is not None and strangers.score(distance, 0.0) > strangers.line
            looks = (
                "It looks unlike the training photos of the model"
                if apart
                else ("No name stands out more than for something the model does not know")
            )
            because = f"{looks}: more unusual than {100 * score:.0f} % of the validation photos of known species."
        elif self._called:
            because = "A rule of the model calls it unknown."
        return UnknownVerdict(not because, score, strangers.line, because)

    @property
    def _called(self) -> bool:
        return self.asked.called_unknown

    def _rules(self) -> tuple[RollUp | None, ConformalSets | None, str]:
        """The rule to roll up by, the lines of short lists, and why there are none."""
        guide, allowed = self.guide, self.question.restriction.allowed
        if guide is None:
            return None, None, "The model was saved without calibration data: fit it again for a list with a guarantee."
        used = self.asked.used
        if allowed is None:
            sets = guide.sets_for(used)
            return guide.roll_up, sets, "" if sets else self._no_promise(used)
        said = self.question.restriction.said
        record = guide.record
        kept = allowed[record.truth] if len(record.chances) else np.zeros(0, np.bool_)
        if set(used) != set(self.asked.usable) or not kept.any():
            return guide.roll_up, None, f"The guarantee of the list does not hold after {said}."
        chances = record.chances[kept].astype(np.float64) * allowed
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-12)
        truth = record.truth[kept]
        sets = calibrate(chances, truth, guide.counts)
        reason = "" if sets else f"After {said} validation has {len(truth)} observations left: too few for a guarantee."
        return learn_roll_up(chances, truth, self.model.taxonomy), sets, reason

    def _no_promise(self, used: Sequence[str]) -> str:
        assert self.guide is not None
        if not self.guide.conformal:
            checked = self.guide.checked
            drawn_on = "Validation has" if checked is None else f"The {checked['observations']} checked answers are"
            return f"{drawn_on} too few observations for a list with a guarantee."
        known = f"{' and '.join(used)} alone" if used else "the photo alone"
        return f"The list was not calibrated for answers from {known}, so it guarantees nothing."

    def claim(self) -> RankedClaim | None:
        rule = self._rules()[0]
        if rule is None:
            return None
        best = int(self.chances.argmax())
        below = float(self.chances[best]) < self.question.restriction.thresholds.get(best, 0.0)
        lines = {rank: None if below and rank == OF_LABEL else line for rank, line in rule.lines.items()}
        found = RollUp(lines, rule.bands, rule.right).answer(self.chances, self.model.taxonomy)
        if found is None or len(found.codes) == len(self.model.labels) > 1:  # what holds every name says nothing
            return None
        rank = found.rank
        if rank == OF_LABEL:
            rank = rank_of_labels(self.model.taxonomy)
            rank = "genus" if rank == OF_LABEL and is_genus(found.taxon) else rank
        record = self.facts.records.of(found.taxon, None if rank == OF_LABEL else rank)
        return RankedClaim(
            record.rank or OF_LABEL,
            record.name,
            found.probability,
            tuple(self.model.labels.names[code] for code in found.codes),
            record.lineage,
            rule.right.get(found.rank),
            found.taxon if found.rank == OF_LABEL else None,
            record.common_name,
        )

    def short_list(self) -> ShortList | None:
        if self.guide is None:
            return None
        _, sets, reason = self._rules()
        order = np.argsort(-self.chances, kind="stable")
        if sets is None:
            gathered = np.cumsum(self.chances[order])
            number = int(np.searchsorted(gathered, 0.9)) + 1
            return ShortList(self.names(order[:number]), None, 0, reason)
        inside = sets.listed(self.chances[None], self.guide.counts)[0]
        codes = [code for code in order if inside[code]]
        return ShortList(self.names(codes), sets.coverage, sum(sets.calibrated_on))

    def sources(self) -> tuple[Contribution, ...]:
        number = len(self.asked.photos)
        values = {"photo": f"{number} photos" if number > 1 else ""}
        best = int(self.asked.chances.argmax())
        # Where a person leaves names out, what moved the answer is told of all names.
        most = float(self.stated[best]) if self.question.restriction.allowed is None else 1.0
        for name in self.asked.used:
            values[name] = _value(name, self.asked.known)
        return tuple(
            Contribution(name, values.get(name, ""), *(round(min(self._borne_out(one), most), 6) for one in moved))
            for name, *moved in self.asked.contributions
        )

    def nearest(self) -> tuple[Neighbor, ...]:
        guide = self.guide
        if guide is None or self.asked.features is None or not len(guide.strangers.kept):
            return ()
        rows, likeness = guide.strangers.nearest(self.asked.features, NEAREST)
        return tuple(self._neighbor(int(row), float(value)) for row, value in zip(rows, likeness, strict=True))

    def _neighbor(self, row: int, likeness: float) -> Neighbor:
        assert self.guide is not None
        photos = self.guide.photos
        taxon = self.taxa[int(photos.codes[row])]
        shown = taxon.common_name or taxon.species or taxon.label
        return Neighbor(taxon.label, shown, round(likeness, 4), photos.file(row), photos.paths[row])

    def danger(self, verdict: UnknownVerdict, claim: RankedClaim | None) -> DangerNotice | None:
        """Whether to be careful. Names that a person leaves out neither silence nor shorten it."""
        question = DangerQuestion(
            self.facts,
            self.asked.chances,
            self.guide.danger.line if self.guide is not None else allowed_by(),
            verdict,
            claim if self.question.restriction.allowed is None else None,
            self.asked.seen,
        )
        return danger_notice(question, self._look_alikes)

    def _look_alikes(self, groups: Sequence[str]) -> tuple[LookAlike, ...]:
        """The likeliest dangerous species of some groups."""
        chances = self.asked.chances
        codes = np.flatnonzero(self.dangerous & np.isin(self.groups, groups))
        codes = codes[np.argsort(-chances[codes], kind="stable")]
        named = [int(code) for code in codes[:LOOK_ALIKES] if chances[code] >= WORTH_NAMING] or codes[:1].tolist()
        # A name that may be given has one number, wherever it stands.
        shown = chances if self.question.restriction.allowed is not None else self.stated
        return tuple(LookAlike(self.names([code], shown)[0], self._photos_of(code)) for code in named)

    def _photos_of(self, code: int) -> tuple[Path, ...]:
        """Training photos of a label that look most alike, where there are any."""
        guide = self.guide
        if guide is None or self.asked.features is None or not len(guide.strangers.kept):
            return ()
        own = np.flatnonzero(guide.photos.codes == code)
        rows, _ = guide.strangers.nearest(self.asked.features, len(guide.photos.codes))
        files = (guide.photos.file(int(row)) for row in rows[np.isin(rows, own)][: 4 * PHOTOS_EACH])
        return tuple(file for file in files if file is not None)[:PHOTOS_EACH]

    def microscopic(self) -> tuple[int, ...]:
        """Which photos look as if taken through a microscope; asked of fungi, whose spores are."""
        if FUNGI not in self.groups:
            return ()
        return tuple(number for number, photo in enumerate(self.asked.held) if is_microscopic(photo))

    def threatened(self) -> bool:
        """Whether a likely name is of a threatened species, where the taxa tell (`red_list`)."""
        if "red_list" not in self.model.taxa.columns:
            return False
        listed = {row["label"]: row["red_list"] in THREATENED for row in self.model.taxa.iter_rows(named=True)}
        likely = np.flatnonzero(self.asked.chances >= LIKELY)
        return any(listed.get(self.model.labels.names[code], False) for code in likely)

    def remarks(self) -> tuple[str, ...]:
        found = [*self.model.supply.remarks, *self.question.restriction.remarks]
        if self.guide is None and self.asked.final.unknown is None:
            found.append(
                f"The model knows {len(self.model.labels):,} names and answers every photo with one of them; a high "
                f"probability does not mean that it is one of them."
            )
        if self.elsewhere >= 0.005:
            said = self.question.restriction.said
            found.append(f"{exact_percent(self.elsewhere)} of the probability lay on names that {said} left out.")
        return tuple(found)


def ignored(asked: SpecimenQuery) -> tuple[str, ...]:
    """What was given and not used, one sentence each."""
    unused = [name for name in asked.given if name not in asked.used]
    return tuple(f"{CALLED.get(name, name)} was given, but the model does not use it." for name in unused)


CALLED = {"date": "The date", "place": "The place", "region": "The country", "site": "The site"} | {
    "habitat": "The habitat",
    "substrate": "The substrate",
}


def _value(context: str, known: Mapping[str, Any]) -> str:
    if context == "place":
        return f"{known['lat']:g}, {known['lon']:g}"
    return str(known.get({"region": "country"}.get(context, context), ""))
