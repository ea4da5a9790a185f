"""The REST interface, described by OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

from fastapi import APIRouter


def make_router() -> APIRouter:
    """All routes of the API, below `/api/v1`."""
    from fieldmark.challenge.api import boards, challenges, organizing

    router = APIRouter(prefix="/api/v1")
    router.include_router(challenges.router)
    router.include_router(boards.router)
    router.include_router(organizing.router)
    return router
