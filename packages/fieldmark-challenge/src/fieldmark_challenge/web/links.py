"""Whole addresses, for what leaves the browser: links to send, feeds, starter kits, commands, git remotes."""

from __future__ import annotations

from starlette.requests import Request


def address_of(request: Request, path: str) -> str:
    """A path as a whole address, for the eyes of the person who asked for it.

    It is that of the settings (`--public-url`). Where they name none, it is the one by which the person asked: a server
    knows no other name of itself. Nothing that somebody else reads is made from it: mails name the address of the
    settings, and none are sent without one.
    """
    base: str = request.app.state.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{path}"
