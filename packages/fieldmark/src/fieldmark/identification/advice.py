"""What to say besides names: photos that would help, and what to do about danger. It follows from the taxa.

No sentence here calls anything safe to eat or harmless, and none is said about a group that a model does not hold.
"""

from __future__ import annotations

from typing import Final

from fieldmark.models.guides.living_groups import BIRDS, FUNGI, INSECTS, PLANTS, SNAKES

NEXT_PHOTOS: Final = {
    FUNGI: (
        "the underside of the cap (gills, pores or teeth)",
        "the whole stem with its base, dug out and not cut off",
        "the cap from above, a young one and an old one",
        "a specimen cut lengthwise, again after a minute",
        "what it grows on, and the trees around",
    ),
    SNAKES: (
        "the whole animal from a safe distance; do not come closer for a photo",
        "the head from the side and from above, with zoom",
        "the middle of the back, for the rows of scales and the pattern",
    ),
    PLANTS: (
        "a flower from the front and from the side",
        "a leaf from above and from below",
        "the whole plant, with the stem",
        "fruit or bark, where there is some",
    ),
    BIRDS: ("the bird from the side", "wing and tail", "bill and face"),
    INSECTS: ("the animal from above", "from the side", "the head from the front"),
}
POISON_CENTER: Final = (
    "If anyone has eaten some of it: call a poison center or the emergency number at once, before symptoms appear, "
    "and keep what is left."
)
SNAKEBITE: Final = (
    "After a bite: call the emergency number at once, stay calm and keep the limb still; do not cut, suck or tie off "
    "the bite, and do not try to catch the snake."
)
DANGER_ADVICE: Final = {
    FUNGI: (
        "This is not advice on eating: nothing here means that a mushroom can be eaten.",
        "Show it to an expert in person before you do anything else with it.",
        POISON_CENTER,
    ),
    SNAKES: ("Treat it as venomous and keep at least two meters away.", SNAKEBITE),
}
OTHER_ADVICE: Final = ("Do not touch or taste it on the strength of an answer here.", POISON_CENTER)
SINGULAR: Final = {FUNGI: "a fungus", SNAKES: "a snake"}
WHAT_IS_FEARED: Final = {FUNGI: "poisonous", SNAKES: "venomous"}


def danger_word(group: str) -> str:
    """What is feared of a group.

    >>> danger_word("snakes"), danger_word("plants")
    ('venomous', 'poisonous or venomous')
    """
    return WHAT_IS_FEARED.get(group, "poisonous or venomous")


def advice_for(group: str) -> tuple[str, ...]:
    """What to do and not to do about a dangerous specimen of a group."""
    return DANGER_ADVICE.get(group, OTHER_ADVICE)


def next_photos(group: str) -> tuple[str, ...]:
    """Photos that help to tell the species of a group."""
    return NEXT_PHOTOS.get(group, ())
