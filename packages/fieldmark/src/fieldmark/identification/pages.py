"""An answer as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import io
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from fieldmark.identification.advice import danger_word
from fieldmark.identification.photo_answers import DangerNotice, Name, PhotoAnswer
from fieldmark.identification.results import Detection, Timeline
from fieldmark.identification.text import confidence_word, full_name, headline, percent, removed_line, sentences
from fieldmark.registry import require
from fieldmark.storage.files import appearing_file
from fieldmark.storage.picture_files import open_picture
from fieldmark.tables.timecodes import clock
from fieldmark.version import __version__

SIDE_PX, BAR_PX = 320, 240
# A recording is shown in parts of this length, the first so many of them.
PART_S, MOST_PARTS = 60.0, 10
WIDTH_PX, HEIGHT_PX = 1100, 180
# Names in the title of a recording; numbers along its spectrogram.
SHOWN, TICKS = 5, 4


def write_answer_page(answer: PhotoAnswer | Timeline, out: Path) -> None:
    """Writes an answer as one HTML file."""
    with appearing_file(out) as partial:
        partial.write_text(answer_page(answer), encoding="utf-8")


def answer_page(answer: PhotoAnswer | Timeline) -> str:
    """The page of an answer."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    page: str = markup.render("answer.html.j2", style=Markup(style), version=__version__, **page_values(answer))
    return page


def page_values(answer: PhotoAnswer | Timeline) -> dict[str, Any]:
    """What a page shows of an answer, pictures and sound as data URIs; its files must still be there."""
    values = _of_photos(answer) if isinstance(answer, PhotoAnswer) else _of_recording(answer)
    return {"danger": None, "photos": (), "names": (), "sound": None, "nearest": (), "next_photos": (), **values}


def _of_photos(answer: PhotoAnswer) -> dict[str, Any]:
    overlay = None if answer.overlay is None else _uri(answer.overlay, "png")
    photos = [
        {"name": photo.name, "picture": _picture(photo), "overlay": overlay if number == 0 else None}
        for number, photo in enumerate(answer.photos)
    ]
    return {
        "title": headline(answer),
        "lead": [answer.verdict.because] if answer.verdict.because else [],
        "simulated": answer.simulated,
        "danger": None if answer.danger is None else _danger(answer.danger),
        "photos": photos,
        "names": [_name(name, answer.group) for name in answer.names],
        "nearest": [
            {"name": one.shown, "likeness": f"{one.likeness:.2f}", "picture": _picture(one.photo)}
            for one in answer.nearest
        ],
        "next_photos": answer.next_photos,
        "sentences": [
            line[:1].upper() + line[1:]
            for line in (*list(sentences(answer, of_photos=False))[bool(answer.verdict.because) :], *answer.remarks)
        ],
    }


def _name(name: Name, group: str) -> dict[str, Any]:
    return {
        "name": full_name(name),
        "probability": percent(name.probability),
        "word": confidence_word(name.probability),
        "width": round(BAR_PX * name.probability),
        "danger": danger_word(group) if name.poisonous else "",
    }


def _danger(danger: DangerNotice) -> dict[str, Any]:
    return {
        "brief": danger.brief,
        "because": danger.because,
        "advice": danger.advice,
        "look_alikes": [
            {
                "name": full_name(one.name),
                "probability": percent(one.name.probability),
                "pictures": [picture for photo in one.photos if (picture := _picture(photo))],
            }
            for one in danger.look_alikes
        ],
    }


def _picture(photo: Path | None) -> str | None:
    """The middle square of a photo, which is what networks see, without anything else that its file tells."""
    if photo is None:
        return None
    try:
        with open_picture(photo.read_bytes()) as opened:
            opened.draft("RGB", (2 * SIDE_PX, 2 * SIDE_PX))
            upright = ImageOps.exif_transpose(opened).convert("RGB")
    except OSError:
        return None
    square = ImageOps.fit(upright, (SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
    data = io.BytesIO()
    square.save(data, "JPEG", quality=85)
    return _uri(data.getvalue(), "jpeg")


def _uri(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _of_recording(answer: Timeline) -> dict[str, Any]:
    found = answer.detections
    names = sorted({one.shown for one in found}, key=lambda name: -max(o.score for o in found if o.shown == name))
    more = " and others" if len(names) > SHOWN else ""
    number = "1 species" if len(names) == 1 else f"{len(names)} species"
    heard = f"{number} heard: {', '.join(names[:SHOWN])}{more}" if names else "No species scores high enough"
    if answer.removed and not names:
        heard = "No voice that is expected at this place and date"
    return {
        "title": heard,
        "lead": [f"{answer.file.name}, {answer.seconds:.1f} s; names from a score of {answer.at_least:g} on."],
        "simulated": answer.simulated,
        "sound": _sound(answer, names),
        "sentences": [*answer.ignored, *([removed_line(answer)] if answer.removed else []), *answer.remarks],
    }


def _sound(answer: Timeline, names: list[str]) -> dict[str, Any]:
    sounds: Any = require("fieldmark.reports.pages.sounds", "A page about a recording")
    parts: list[dict[str, Any]] = []
    start = 0.0
    while start < answer.seconds and len(parts) < MOST_PARTS:
        end = min(start + PART_S, answer.seconds)
        with answer.file.open("rb") as file:
            stretch = sounds.read_stretch(file, start, end - start)
        parts.append(
            {
                "picture": sounds.picture_uri(stretch, width=WIDTH_PX, height=HEIGHT_PX),
                "clip": sounds.clip_uri(stretch),
                "start": clock(int(start)),
                "end": clock(round(end)),
                "kilohertz": _kilohertz(sounds.highest_hz(stretch)),
                "times": [_moment(start + share * (end - start)) for share in np.linspace(0, 1, TICKS + 1)],
                "tracks": [track for name in names if (track := _track(answer, name, start, end))],
            }
        )
        start = end
    notes = []
    if start < answer.seconds:
        notes.append(f"The page shows the first {clock(int(start))}; the timeline (`--format csv`) has all of it.")
    return {"parts": parts, "notes": notes}


def _kilohertz(highest_hz: float) -> list[str]:
    """The numbers beside a spectrogram, from its upper edge to the lower.

    >>> _kilohertz(12_000)
    ['12 kHz', '9', '6', '3', '0']
    """
    top, *below = (f"{highest_hz / 1000 * share:.3g}" for share in np.linspace(1, 0, TICKS + 1))
    return [f"{top} kHz", *below]


def _moment(seconds: float) -> str:
    """A moment below a spectrogram.

    >>> _moment(2.5), _moment(75)
    ('2.5 s', '00:01:15')
    """
    return f"{seconds:.1f} s" if seconds < 60 else clock(round(seconds))


def _track(answer: Timeline, name: str, start: float, end: float) -> dict[str, Any] | None:
    own = [one for one in answer.detections if one.shown == name and one.end_s > start and one.start_s < end]
    if not own:
        return None
    best: Detection = max(own, key=lambda one: one.score)
    spans = [
        {
            "left": round(100 * (max(one.start_s, start) - start) / (end - start), 2),
            "width": round(100 * (min(one.end_s, end) - max(one.start_s, start)) / (end - start), 2),
        }
        for one in own
    ]
    times = ", ".join(f"{clock(int(one.start_s))} to {clock(round(one.end_s))}" for one in own)
    species = f" ({best.species})" if best.species not in (None, name) else ""
    return {"name": f"{name}{species}, {best.score:.2f}", "label": f"{name}: {times}", "spans": spans}
