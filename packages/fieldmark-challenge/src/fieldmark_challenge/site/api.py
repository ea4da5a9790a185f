"""The REST interface, described by OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter

from fieldmark_challenge.actions import ORGANIZING
from fieldmark_challenge.actions import api as actions_api
from fieldmark_challenge.boards import api as boards_api
from fieldmark_challenge.lifecycle import api as running_api
from fieldmark_challenge.programs import api as coding_api
from fieldmark_challenge.programs import git_api
from fieldmark_challenge.site import account_api, admission_api, mail_api, sign_on_api
from fieldmark_challenge.submissions import api as submitting_api
from fieldmark_challenge.submissions import partial_uploads_api

# A path that two of them could take goes to the first.
PARTS = (
    account_api,
    mail_api,
    admission_api,
    sign_on_api,
    submitting_api,
    partial_uploads_api,
    boards_api,
    running_api,
    coding_api,
    git_api,
)


@cache
def make_router() -> APIRouter:
    """All routes of the API, below `/api/v1`; made once, for whatever applications there are in a process."""
    router = APIRouter(prefix="/api/v1")
    for part in PARTS:
        router.include_router(part.router)
    router.include_router(actions_api.make_router(*ORGANIZING))
    return router
