"""An answer in words, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from fieldmark.identification.photo_answers import DangerNotice, Name, PhotoAnswer
from fieldmark.identification.results import Timeline

SHOWN_IN_LIST = 8


def headline(answer: PhotoAnswer) -> str:
    """The answer in one sentence.

    Never surer than the model, and nothing in it calls a specimen safe.
    """
    if answer.verdict.known is False:
        return f"Possibly unknown: perhaps none of the {answer.knows:,} names the model knows."
    claim = answer.claim
    if claim is None:
        return "Not sure enough to name it at any rank."
    of = f", one of {len(claim.labels)} names" if len(claim.labels) > 1 else ""
    return f"{claim.name} ({claim.rank}{of}), {percent(claim.probability)} ({confidence_word(claim.probability)})"


def sentences(answer: PhotoAnswer, *, of_photos: bool = True) -> Iterator[str]:
    """Everything about an answer but its names, a line each; pages show the nearest and the next photos themselves."""
    if answer.verdict.because:
        yield answer.verdict.because
    yield from _short_list(answer)
    for source in answer.sources:
        value = f" ({source.value})" if source.value else ""
        moved = f"{percent(source.without)}, with it {percent(source.with_it)}"
        yield f"Without the {called(source.name).lower()}{value} {moved}"
    yield from answer.ignored
    if answer.missing:
        yield f"The model could also use: {', '.join(called(name).lower() for name in answer.missing)}."
    if answer.nearest and of_photos:
        near = ", ".join(f"{one.shown} ({one.likeness:.2f})" for one in answer.nearest)
        yield f"nearest training photos: {near}"
    if answer.microscopic:
        numbers = ", ".join(str(number + 1) for number in answer.microscopic)
        alone = len(answer.microscopic) == len(answer.photos)
        hint = " Add a photo of the whole specimen." if alone else ""
        yield f"Looks like a microscope photo: photo {numbers}.{hint}"
    if answer.next_photos and of_photos:
        yield f"photos that would help: {'; '.join(answer.next_photos)}"


def danger_lines(danger: DangerNotice) -> Iterator[str]:
    """The notice, a line each."""
    if not danger.brief:
        yield "BE CAREFUL"
    yield from danger.because
    for one in danger.look_alikes:
        shown = f"could be {full_name(one.name)}, {percent(one.name.probability)}"
        yield f"{shown}; photos: {', '.join(str(photo) for photo in one.photos)}" if one.photos else shown
    yield from danger.advice


def _short_list(answer: PhotoAnswer) -> Iterator[str]:
    chosen = answer.short_list
    if chosen is None:
        return
    shown = ", ".join(name.shown for name in chosen.names[:SHOWN_IN_LIST])
    more = f" and {len(chosen.names) - SHOWN_IN_LIST} more" if len(chosen.names) > SHOWN_IN_LIST else ""
    if chosen.coverage is None:
        yield f"short list, without a guarantee: {shown}{more}. {chosen.withdrawn}".rstrip()
        return
    yield f"short list that contains the right name for {100 * chosen.coverage:.0f} % of known specimens: {shown}{more}"


def full_name(name: Name) -> str:
    """The common and the scientific name, where both are known."""
    return f"{name.shown} ({name.species})" if name.species not in (None, name.shown) else name.shown


def removed_line(answer: Timeline) -> str:
    """What place and date removed from a timeline, in one sentence."""
    best: dict[str, float] = {}
    for one in answer.removed:
        best[one.shown] = max(one.score, best.get(one.shown, 0.0))
    names = sorted(best, key=lambda name: (-best[name], name))
    more = f" and {len(names) - SHOWN_IN_LIST} more" if len(names) > SHOWN_IN_LIST else ""
    listed = ", ".join(f"{name} ({best[name]:.2f})" for name in names[:SHOWN_IN_LIST])
    return f"Left out as unlikely at this place and date: {listed}{more}."


CALLED = {"photo": "Photo", "date": "Season", "place": "Place", "region": "Country"}


def called(context: str) -> str:
    """What a context is called on a page."""
    return CALLED.get(context, context.capitalize())


# From which probability on each word is used.
CONFIDENCE_WORDS = ((0.95, "almost certainly"), (0.75, "probably"), (0.4, "perhaps"), (0.0, "unsure"))


def confidence_word(probability: float) -> str:
    """How sure an answer is, in a word that goes with the number as it is shown (`percent`).

    >>> [confidence_word(probability) for probability in (0.97, 0.748, 0.5, 0.2)]
    ['almost certainly', 'probably', 'perhaps', 'unsure']
    """
    return next(word for least, word in CONFIDENCE_WORDS if round(probability, 2) >= least)


def percent(share: float) -> str:
    """A share for people; no certainty is stated that nobody has.

    >>> percent(0.123), percent(0.0004), percent(0.999)
    ('12 %', 'under 1 %', 'over 99 %')
    """
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"
