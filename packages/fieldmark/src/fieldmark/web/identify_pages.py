"""The identify page: photos or a recording in, one honest answer out."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.identification import Circumstances
from fieldmark.tables.numbers import parse_float
from fieldmark.web.identify_answers import MOST_FILES, MOST_MB, PageAnswers, Question
from fieldmark.web.pages import FormOf, client_of, render
from fieldmark.web.refusals import NotThereError, RefusalError, retry_headers
from fieldmark.web.security import POLICY_WITH_SCRIPT, lower_body_limit
from fieldmark.web.world_outline import HEIGHT, WIDTH, outlines, place_on_map

router = APIRouter()
LONGEST_TEXT = 100


def get_namer(request: Request) -> PageAnswers:
    """What answers."""
    namer: PageAnswers | None = getattr(request.app.state, "namer", None)
    if namer is None:
        raise NotThereError
    return namer


def bounded(request: Request) -> None:
    """Stops an upload as soon as it is larger than a question may be."""
    lower_body_limit(request, MOST_MB, f"That is more than {MOST_MB} MiB, the limit for one question.")


AnsweringOf = Annotated[PageAnswers, Depends(get_namer)]


@router.get("/identify")
def identify_page(request: Request, namer: AnsweringOf) -> Response:
    """The empty form."""
    return _page(request, namer)


@router.post("/identify", dependencies=[Depends(bounded)])
def ask(request: Request, namer: AnsweringOf, form: FormOf) -> Response:
    """Answers, or says in a sentence why not; in both cases the form is there for the next question."""
    files = [(one.filename or "", one.file) for one in form.getlist("files") if isinstance(one, UploadFile)]
    given = {name: _text(form, name) for name in ("date", "lat", "lon", "country", "habitat", "substrate")}
    try:
        _count(request, namer)
        question = Question(
            files,
            _circumstances(given),
            read_notes=bool(form.get("exif")),
            keep=bool(form.get("keep")),
            overlay=bool(form.get("overlay")),
        )
        reply = namer.ask(question)
    except RefusalError as error:
        page = _page(request, namer, status=error.status, error=str(error), given=given)
        page.headers.update(retry_headers(error))
        return page
    place = None
    if reply.context.lat is not None and reply.context.lon is not None:
        place = place_on_map(reply.context.lat, reply.context.lon)
    return _page(request, namer, reply=reply, answer=reply.values, place=place, given=given)


def _count(request: Request, namer: PageAnswers) -> None:
    """Counts a question of an address.

    Only now that it has arrived: a browser whose upload is cut off shows no sentence.

    Raises:
        TooOftenError: When too many came from there.
    """
    request.app.state.count(namer.limits.rate, client_of(request))


def _page(request: Request, namer: PageAnswers, *, status: int = 200, **shown: Any) -> Response:
    usual: dict[str, Any] = {"reply": None, "answer": None, "place": None, "error": "", "given": {}}
    page = render(
        request,
        "identify.html",
        status,
        **{**usual, **shown},
        namer=namer,
        lands=outlines(),
        width=WIDTH,
        height=HEIGHT,
        most_files=MOST_FILES,
        most_mb=MOST_MB,
        most_minutes=f"{namer.limits.sound_s / 60:.3g}",
    )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT
    return page


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""


def _circumstances(given: dict[str, str]) -> Circumstances:
    """What the person says about where and when."""
    lat, lon = (_degrees(given[name], name, most) for name, most in (("lat", 90.0), ("lon", 180.0)))
    if (lat is None) != (lon is None):
        raise RefusalError("Latitude and longitude go together: give both, or none.")
    try:
        date = datetime.date.fromisoformat(given["date"]) if given["date"] else None
    except ValueError as error:
        raise RefusalError(f"{given['date']!r} is no date such as 2021-09-30.") from error
    said = {name: given[name] or None for name in ("country", "habitat", "substrate")}
    return Circumstances(lat=lat, lon=lon, date=date, **said)


def _degrees(text: str, name: str, most: float) -> float | None:
    if not text:
        return None
    called = {"lat": "latitude", "lon": "longitude"}[name]
    try:
        value = parse_float(text.replace(",", "."))
    except ValueError as error:
        raise RefusalError(f"{text!r} is no {called} in degrees.") from error
    if not -most <= value <= most:
        raise RefusalError(f"A {called} lies between -{most:g} and {most:g}: found {text}.")
    return value
