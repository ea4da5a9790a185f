"""Which ways of signing in a platform offers besides its own passwords."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from fieldmark_challenge.openid.provider_client import Asker
from fieldmark_challenge.openid.providers import Provider
from fieldmark_challenge.web.lanes import UploadLane


@dataclass(frozen=True)
class SignOn:
    """The providers of a platform, each with what asks it, and a lane of their own: one that is slow stalls no page."""

    askers: dict[str, Asker]
    lane: UploadLane


def make_sign_on(providers: Sequence[Provider], public_url: str | None) -> SignOn | None:
    """What a platform offers; nothing without a public address, which providers send people back to."""
    if not providers or public_url is None:
        return None
    base = public_url.rstrip("/")
    askers = {one.name: Asker(one, f"{base}/sign-on/{one.name}/callback") for one in providers}
    return SignOn(askers, UploadLane())


def offered(request: Request) -> list[Provider]:
    """The providers that the pages of an application show."""
    sign_on: SignOn | None = getattr(request.app.state, "sign_on", None)
    return [asker.provider for asker in sign_on.askers.values()] if sign_on else []
