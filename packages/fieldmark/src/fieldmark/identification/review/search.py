"""Search by example: the photos of a folder that look most like one, by the features of a backbone.

Features come from the store (`features.store`), so that a folder that was identified, fitted or searched before costs
no more than reading its files. All of them are compared: 100,000 photos of 1,280 features take a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.embeddings import unit_rows
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.review.answer_folders import ABOUT_FILE, read_answers
from fieldmark.models import feature_source
from fieldmark.models.supply import FeatureSource
from fieldmark.questions.items import loose_items
from fieldmark.storage.files import check_name
from fieldmark.tables.media import Medium, medium_of
from fieldmark.views.parts import Part, loose_media


@dataclass(frozen=True)
class Found:
    """A file that looks or sounds alike.

    Args:
        file: Where it lies.
        likeness: The cosine between its features and those of the example.
    """

    file: Path
    likeness: float

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"file": str(self.file), "likeness": round(self.likeness, 4)}


def search_like(
    example: Path,
    places: Sequence[Path],
    *,
    top: int = 10,
    settings: FeatureSettings | None = None,
    store: Path | None = None,
) -> list[Found]:
    """The files that are most like an example, the likest first; the example itself is left out.

    Args:
        example: A photo or a recording.
        places: Folders, searched to any depth, files, or folders of answers.
        top: How many.
        settings: Which features; the usual ones for photos if not given, BirdNET's for recordings.
        store: The feature store, if not the user's cache.

    Raises:
        InputError: When a file cannot be read, or there is nothing to search.
        MisuseError: When the backbone is for the other kind of media.
    """
    medium = medium_of(example)
    if not example.is_file() or medium is None:
        found = "no such file" if not example.is_file() else f"a file ending in {example.suffix or 'nothing'}"
        raise InputError(example, found=found, expected="a photo or a recording")
    files = [one for one in _files(places, medium) if not one.samefile(example)]
    if not files:
        raise InputError(
            places[0], found=f"no other {medium.plural}", expected=f"a folder of {medium.plural} to search"
        )
    source = feature_source(settings or FeatureSettings(backbone=medium.likeness), store)
    if source.medium != medium:
        raise MisuseError(f"{source.settings.backbone} looks at {source.medium.plural}; {example} is a {medium}.")
    rows = unit_rows(_features(source, medium, [example, *files]))
    likeness = rows[1:] @ rows[0]
    best = np.argsort(-likeness, kind="stable")[:top]
    return [Found(files[place], float(likeness[place])) for place in best]


def _files(places: Sequence[Path], medium: Medium) -> list[Path]:
    """All files of a medium in some places, each once."""
    files: dict[Path, None] = {}
    for place in places:
        if (place / ABOUT_FILE).is_file():
            answers = read_answers(place)
            found = [answers.path_of(file) for entry in answers.entries() for file in entry.files]
        elif place.is_dir():
            found = sorted(one for one in place.rglob("*") if one.is_file())
        elif place.is_file():
            found = [place]
        else:
            raise InputError(place, found="no such file or folder", expected=f"{medium.plural} to search")
        files |= dict.fromkeys(one for one in found if medium.owns(one) and one.is_file())
    for file in files:
        check_name(file)
    return list(files)


def _features(source: FeatureSource, medium: Medium, files: Sequence[Path]) -> NDArray[np.float32]:
    part = Part(loose_items(files), media=loose_media(medium, files))
    return source.supply(part, "", medium.plural).features[medium.name]
