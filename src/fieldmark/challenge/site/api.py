"""The REST interface, described by OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter


@cache
def make_router() -> APIRouter:
    """All routes of the API, below `/api/v1`; made once, for whatever applications there are in a process."""
    from fieldmark.challenge.boards import api as boards_api
    from fieldmark.challenge.coding import api as coding_api
    from fieldmark.challenge.coding import git_api
    from fieldmark.challenge.mailing import api as mailing_api
    from fieldmark.challenge.people import admission_api
    from fieldmark.challenge.people import api as people_api
    from fieldmark.challenge.running import api as running_api
    from fieldmark.challenge.running import people_api as running_people_api
    from fieldmark.challenge.signing_on import api as signing_on_api
    from fieldmark.challenge.submitting import api as submitting_api
    from fieldmark.challenge.submitting import resuming_api

    router = APIRouter(prefix="/api/v1")
    router.include_router(people_api.router)
    router.include_router(mailing_api.router)
    router.include_router(admission_api.router)
    router.include_router(signing_on_api.router)
    router.include_router(submitting_api.router)
    router.include_router(resuming_api.router)
    router.include_router(boards_api.router)
    router.include_router(running_api.router)
    router.include_router(coding_api.router)
    router.include_router(git_api.router)
    router.include_router(running_people_api.router)
    return router
