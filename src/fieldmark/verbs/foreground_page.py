"""The page of a study of foreground and background."""

from __future__ import annotations

import base64
import io
from importlib import resources
from pathlib import Path
from typing import Any

from PIL import Image

from fieldmark.features.masked_photos import SHOWN
from fieldmark.foundation.files import appearing_file
from fieldmark.foundation.registry import require
from fieldmark.verbs.foreground import BY_PART, ForegroundStudy
from fieldmark.version import __version__

ABOUT = SHOWN | {BY_PART: "the photo, the object and each of its parts side by side"}
SIDE_PX = 160


def write_page(study: ForegroundStudy, out: Path) -> None:
    """Writes the study as one HTML file."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    estimates: Any = require("fieldmark.reports.charts.estimates", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    scores = [row.card.metrics[study.metric] for row in study.rows]
    page = markup.render(
        "foreground.html.j2",
        study=study,
        axis=estimates.Axis.around(scores),
        about=ABOUT,
        pictures={kind: _uri(picture) for kind, picture in study.pictures.items()},
        style=Markup(style),
        version=__version__,
    )
    with appearing_file(out) as partial:
        partial.write_text(page, encoding="utf-8")


def _uri(data: bytes) -> str:
    """A picture as a small JPEG in a data URI."""
    with Image.open(io.BytesIO(data)) as picture:
        small = picture.convert("RGB")
        small.thumbnail((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
