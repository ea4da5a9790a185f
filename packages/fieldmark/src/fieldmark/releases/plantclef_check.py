"""A check of a PlantCLEF 2020 release: counts beside the published ones, and what is missing, broken or leaking."""

from __future__ import annotations

from collections.abc import Sequence

from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.plantclef import (
    ASSOCIATIONS,
    FIELD,
    SHEET,
    TEST,
    PlantPicture,
    lonely_xml,
    test_pictures,
    training_pictures,
    true_classes,
)
from fieldmark.storage.release import Release

SEED = "LifeCLEF 2020, section 2"
LISTS = "lists of the team Neuon AI"
PAIRED = "pressed and photographed"
PUBLISHED = {
    SHEET: {SEED: Count(photos=321_270, classes=997)},
    FIELD: {SEED: Count(photos=6_316), LISTS: Count(photos=6_257, classes=435)},
    PAIRED: {SEED: Count(observations=354)},
    TEST: {SEED: Count(observations=638, photos=3_186)},
}


def check_plantclef(check: CheckRun) -> tuple[PartCount, ...]:
    """Checks a release of 2020, or of 2021, which has the same pictures.

    Pictures with the same bytes in train and test are found in any case.
    """
    release, problems = check.release, check.problems
    learned, tested = training_pictures(release), test_pictures(release)
    if not any(one.domain == SHEET for one in learned):
        problems.add("error", "there are no herbarium sheets to learn from")
    if not tested:
        problems.add("warning", "a part is missing", [TEST])
    _check_xml(release, [*learned, *tested], problems)
    _check_observations(learned, tested, problems)
    _check_classes(release, learned, tested, problems)
    split_of = {one.path: "train" for one in learned} | {one.path: TEST for one in tested}
    check.check_photos(split_of)
    if check.name == "plantclef-2021":
        unread = "the traits of species that 2021 adds are not read: how their table is laid out is not known"
        problems.add("note", unread)
    return _counts(release, learned, tested)


def _counts(release: Release, learned: Sequence[PlantPicture], tested: Sequence[PlantPicture]) -> tuple[PartCount, ...]:
    by_domain = {domain: [one for one in learned if one.domain == domain] for domain in (SHEET, FIELD)}
    seen_in = {domain: {one.observation_id for one in pictures} for domain, pictures in by_domain.items()}
    found = {domain: _count(pictures) for domain, pictures in by_domain.items()}
    found[PAIRED] = Count(observations=len(seen_in[SHEET] & seen_in[FIELD]))
    truth = set(true_classes(release).values())
    observations = len({one.observation_id for one in tested})
    found[TEST] = Count(observations=observations, photos=len(tested), classes=len(truth) if truth else None)
    return tuple(PartCount(part, count, PUBLISHED[part]) for part, count in found.items())


def _count(pictures: Sequence[PlantPicture]) -> Count:
    observations, classes = {one.observation_id for one in pictures}, {one.label for one in pictures}
    return Count(observations=len(observations), photos=len(pictures), classes=len(classes))


def _check_xml(release: Release, pictures: Sequence[PlantPicture], problems: Problems) -> None:
    broken = [f"{one.path}: {one.broken}" for one in pictures if one.broken]
    without = [one.path for one in pictures if one.facts is None and not one.broken]
    repaired = [one.path for one in pictures if one.facts is not None and one.facts.repaired]
    for severity, what, places in (
        ("warning", "an XML file cannot be read; its picture counts as an observation of its own", broken),
        ("warning", "a picture has no XML beside it and counts as an observation of its own", without),
        ("warning", "an XML file has no picture beside it", lonely_xml(release)),
        ("note", "an XML file has ampersands that are not escaped; it is read all the same", repaired),
    ):
        problems.at(severity, what, places)  # type: ignore[arg-type]
    undecided = [one.path for one in pictures if one.domain is None]
    what = f"a picture of {ASSOCIATIONS} does not say whether it is a sheet (PhotoType) and is skipped"
    problems.at("warning", what, undecided)


def _check_observations(learned: Sequence[PlantPicture], tested: Sequence[PlantPicture], problems: Problems) -> None:
    label_of: dict[str, str | None] = {}
    mixed = []
    for one in learned:
        if label_of.setdefault(one.observation_id, one.label) != one.label:
            mixed.append(f"{one.path}: {one.observation_id} is in {label_of[one.observation_id]} as well")
    problems.at("error", "an observation is in two classes", mixed)
    shared = [one.path for one in tested if one.observation_id in label_of]
    problems.at("error", "an observation of test is in train as well", shared)


def _check_classes(
    release: Release, learned: Sequence[PlantPicture], tested: Sequence[PlantPicture], problems: Problems
) -> None:
    pressed = {one.label for one in learned if one.domain == SHEET}
    photographed = {one.label for one in learned if one.domain == FIELD}
    unpressed = sorted(str(label) for label in photographed - pressed)
    problems.at("note", "a species has field photos and no sheet", unpressed)
    unphotographed = sorted(str(label) for label in pressed - photographed)
    problems.at("note", "a species has sheets and no field photo", unphotographed)
    other = [
        f"{one.path}: {one.facts.text('classid')}"
        for one in learned
        if one.facts and one.facts.text("classid") not in (None, one.label)
    ]
    problems.at("warning", "the XML names another class than the folder; the folder counts", other)
    truth = true_classes(release)
    if not tested:
        return
    asked = {one.observation_id for one in tested}
    if not truth:
        problems.add("note", "the labels of a part are hidden", [TEST])
        return
    unlisted = sorted(asked - set(truth))
    problems.at("error", "an observation of test has no line in the table of truth", unlisted)
    untaught = sorted(set(truth.values()) - {str(label) for label in pressed | photographed})
    problems.at("warning", "a class of test has nothing to learn from in train", untaught)
