"""The review page: one observation after the other, by mouse, finger or keyboard."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from fieldmark.errors import FieldmarkError
from fieldmark.features.photos import PhotoError
from fieldmark.identification.review.answer_folders import AnsweredEntry
from fieldmark.identification.review.session import Review
from fieldmark.tables.media import PHOTO
from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.pictures import as_jpeg
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import POLICY_WITH_SCRIPT

router = APIRouter()
SHOWN_PX = 1280
# More names make a page that takes long to load; they are typed then.
MOST_OFFERED = 3000
# Somebody went for coffee.
LONGEST_LOOK_S = 300.0


def get_review(request: Request) -> Review:
    """The review that is going on."""
    review: Review | None = getattr(request.app.state, "review", None)
    if review is None:
        raise NotThereError
    return review


ReviewOf = Annotated[Review, Depends(get_review)]


@router.get("/review")
def review_page(request: Request, review: ReviewOf, entry: str | None = None) -> Response:
    """The next observation, or one that was looked at before."""
    if entry is not None and entry not in review.answers:
        raise NotThereError
    shown = review.next() if entry is None else (review.answers[entry], None)
    last = review.last()
    page = render(
        request,
        "review.html",
        review=review,
        entry=None if shown is None else shown[0],
        drawn=None if shown is None else shown[1],
        said=None if shown is None else review.looks.get(shown[0].observation_id),
        choices=[] if shown is None else _choices(shown[0]),
        progress=review.progress(),
        names=review.answers.names if len(review.answers.names) <= MOST_OFFERED else (),
        common={taxon["label"]: taxon.get("common_name") for taxon in review.answers.taxa},
        previous=last
        if last is not None and (shown is None or last.observation_id != shown[0].observation_id)
        else None,
        photos=[] if shown is None else [PHOTO.owns(file) for file in shown[0].files],
    )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT
    return page


def _choices(entry: AnsweredEntry) -> list[tuple[str, float | None]]:
    """The names that one key chooses: what stands in the list first, then the likeliest."""
    chance = dict(zip(entry.names, entry.probabilities, strict=True))
    listed = [(entry.given or "", chance.get(entry.given or "")), (entry.name, entry.probability), *chance.items()]
    choices: dict[str, float | None] = {}
    for name, value in listed:
        if name:
            choices.setdefault(name, value)
    return list(choices.items())[:9]


@router.post("/review")
def decide(request: Request, review: ReviewOf, form: FormOf) -> Response:
    """Takes what the person says and shows the next."""
    name = str(form.get("name") or "").strip() or str(form.get("choice") or "").strip()
    if form.get("untold"):
        name = ""
    elif not name:
        raise RefusalError("Choose a name, type one, or say that it cannot be told.")
    try:
        review.decide(str(form.get("observation", "")), name, seconds=_seconds(form.get("seconds")))
    except FieldmarkError as error:
        raise RefusalError(str(error)) from error
    return go("/review")


def _seconds(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if 0 < value <= LONGEST_LOOK_S else None


@router.get("/review/file/{number}")
def file_of(review: ReviewOf, number: int, entry: str) -> Response:
    """A photo of an observation, or its recording; nothing else on the machine can be asked for."""
    files = review.answers[entry].files if entry in review.answers else ()
    if not 0 <= number < len(files):
        raise NotThereError
    path = review.answers.path_of(files[number])
    if not path.is_file():
        raise NotThereError
    if not PHOTO.owns(path):
        return FileResponse(path)
    try:
        return Response(as_jpeg(path.read_bytes(), SHOWN_PX), media_type="image/jpeg")
    except PhotoError as error:
        raise RefusalError(f"{path.name} cannot be shown: {error}.") from error


def _download(table: Any, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(table.write_csv(), media_type="text/csv", headers=headers)


@router.get("/review/finished.csv")
def finished(review: ReviewOf) -> Response:
    """The list as it stands."""
    return _download(review.finished(), "finished.csv")


@router.get("/review/checked.csv")
def checked(review: ReviewOf) -> Response:
    """What was looked at."""
    return _download(review.checked(), "checked.csv")
