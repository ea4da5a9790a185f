"""Who may use each route. A route without a line here fails the tests."""

from __future__ import annotations

from typing import Literal

Role = Literal["anonymous", "stranger", "former", "rival", "member", "elsewhere", "organizer", "admin"]
# A stranger has no team; a former member left it; a rival has another team; a member has the team whose objects are
# tried; somebody runs a challenge elsewhere; the organizer and the admin run this one.
ROLES: tuple[Role, ...] = ("anonymous", "stranger", "former", "rival", "member", "elsewhere", "organizer", "admin")

PUBLIC = frozenset(ROLES)
NOBODY: frozenset[str] = frozenset()
SIGNED_IN = PUBLIC - {"anonymous"}
READERS = frozenset({"member", "organizer", "admin"})
MEMBER = frozenset({"member"})
WITH_TEAM = frozenset({"member", "rival"})
MANAGERS = frozenset({"organizer", "admin"})
ORGANIZERS = frozenset({"elsewhere", "organizer", "admin"})
ADMIN = frozenset({"admin"})

TABLE: dict[str, frozenset[str]] = {
    "GET /": PUBLIC,
    "GET /api/openapi.json": PUBLIC,
    "GET /docs": PUBLIC,
    "GET /healthz": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": NOBODY,  # but the machine itself, and those who know its token
    "GET /register": PUBLIC,
    "POST /register": PUBLIC,
    "GET /login": PUBLIC,
    "POST /login": PUBLIC,
    "POST /logout": PUBLIC,
    "GET /reset": PUBLIC,
    "POST /reset": PUBLIC,
    "GET /reset/{token}": PUBLIC,
    "POST /reset/{token}": PUBLIC,
    "GET /account": SIGNED_IN,
    "POST /account/password": SIGNED_IN,
    "POST /account/tokens": SIGNED_IN,
    "POST /account/tokens/{token_id}/revoke": MEMBER,
    "POST /account/sessions/end": SIGNED_IN,
    "GET /admin/users": ADMIN,
    "POST /admin/users/{user_id}/role": ADMIN,
    "POST /admin/users/{user_id}/reset-link": ADMIN,
    "POST /admin/users/{user_id}/disable": ADMIN,
    "GET /c/{slug}": PUBLIC,
    "POST /c/{slug}/rules": SIGNED_IN,
    "GET /c/{slug}/data": PUBLIC,
    "GET /c/{slug}/data/{file_id}": SIGNED_IN,
    "GET /c/{slug}/starter-kit.zip": SIGNED_IN,
    "GET /c/{slug}/team": SIGNED_IN,
    "POST /c/{slug}/team": SIGNED_IN,
    "POST /c/{slug}/team/invite": WITH_TEAM,
    "POST /c/{slug}/team/invitations/{invitation_id}/revoke": MEMBER,
    "POST /c/{slug}/team/leave": WITH_TEAM,
    "GET /join/{token}": SIGNED_IN,
    "POST /join/{token}": SIGNED_IN,
    "GET /c/{slug}/submit": SIGNED_IN,
    "POST /c/{slug}/submit": SIGNED_IN,
    "GET /c/{slug}/submissions": SIGNED_IN,
    "GET /c/{slug}/submissions/{submission_id}": READERS,
    "GET /c/{slug}/submissions/{submission_id}/status": READERS,
    "GET /c/{slug}/submissions/{submission_id}/file": READERS,
    "POST /c/{slug}/submissions/{submission_id}/select": MEMBER,
    "GET /c/{slug}/submissions/{number}/receipt.json": READERS,
    "GET /c/{slug}/board": PUBLIC,
    "GET /c/{slug}/board.csv": PUBLIC,
    "GET /c/{slug}/board.json": PUBLIC,
    "GET /c/{slug}/entries/{entry}": PUBLIC,
    "GET /c/{slug}/compare": PUBLIC,
    "GET /receipt-key.txt": PUBLIC,
    "GET /organize/plan": ORGANIZERS,
    "GET /organize/new": ORGANIZERS,
    "POST /organize/new": ORGANIZERS,
    "GET /c/{slug}/organize": MANAGERS,
    "GET /c/{slug}/organize/plan": MANAGERS,
    "GET /c/{slug}/organize/truth/{table}": MANAGERS,
    "POST /c/{slug}/organize/settings": MANAGERS,
    "POST /c/{slug}/organize/phases": MANAGERS,
    "POST /c/{slug}/organize/phases/{phase_id}": MANAGERS,
    "POST /c/{slug}/organize/phases/{phase_id}/remove": MANAGERS,
    "POST /c/{slug}/organize/publish": MANAGERS,
    "POST /c/{slug}/organize/freeze": MANAGERS,
    "POST /c/{slug}/organize/unfreeze": MANAGERS,
    "POST /c/{slug}/organize/reveal": MANAGERS,
    "POST /c/{slug}/organize/rescore": MANAGERS,
    "POST /c/{slug}/organize/baselines": MANAGERS,
    "POST /c/{slug}/organize/data": MANAGERS,
    "POST /c/{slug}/organize/data/{file_id}/delete": MANAGERS,
    "POST /c/{slug}/organize/organizers": MANAGERS,
    "POST /c/{slug}/organize/organizers/{user_id}/remove": MANAGERS,
    "GET /c/{slug}/organize/submissions": MANAGERS,
    "POST /c/{slug}/organize/submissions/{submission_id}/refund": MANAGERS,
    "POST /c/{slug}/organize/submissions/{submission_id}/retry": MANAGERS,
    "GET /c/{slug}/organize/audit": MANAGERS,
    "GET /c/{slug}/organize/export.csv": MANAGERS,
    "GET /c/{slug}/organize/export.json": MANAGERS,
    "GET /api/v1/me": SIGNED_IN,
    "GET /api/v1/challenges": SIGNED_IN,
    "GET /api/v1/challenges/{slug}": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/data": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/data/{file_id}": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/quota": WITH_TEAM,
    "GET /api/v1/challenges/{slug}/submissions": SIGNED_IN,
    "POST /api/v1/challenges/{slug}/submissions": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/submissions/{submission_id}": READERS,
    "POST /api/v1/challenges/{slug}/submissions/{submission_id}/select": MEMBER,
    "POST /api/v1/challenges": ORGANIZERS,
    "GET /api/v1/challenges/{slug}/organize": MANAGERS,
    "POST /api/v1/challenges/{slug}/settings": MANAGERS,
    "POST /api/v1/challenges/{slug}/phases": MANAGERS,
    "POST /api/v1/challenges/{slug}/phases/{phase_id}": MANAGERS,
    "DELETE /api/v1/challenges/{slug}/phases/{phase_id}": MANAGERS,
    "POST /api/v1/challenges/{slug}/publish": MANAGERS,
    "POST /api/v1/challenges/{slug}/baselines": MANAGERS,
    "POST /api/v1/challenges/{slug}/data": MANAGERS,
    "DELETE /api/v1/challenges/{slug}/data/{file_id}": MANAGERS,
    "POST /api/v1/challenges/{slug}/organizers": MANAGERS,
    "DELETE /api/v1/challenges/{slug}/organizers/{user_id}": MANAGERS,
    "GET /api/v1/challenges/{slug}/queue": MANAGERS,
    "POST /api/v1/challenges/{slug}/submissions/{submission_id}/retry": MANAGERS,
    "POST /api/v1/challenges/{slug}/submissions/{submission_id}/refund": MANAGERS,
    "POST /api/v1/challenges/{slug}/freeze": MANAGERS,
    "POST /api/v1/challenges/{slug}/reveal": MANAGERS,
    "POST /api/v1/challenges/{slug}/rescore": MANAGERS,
    "GET /api/v1/challenges/{slug}/export": MANAGERS,
    "GET /api/v1/challenges/{slug}/audit": MANAGERS,
    "GET /api/v1/challenges/{slug}/board": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/entries/{entry}": SIGNED_IN,
    "GET /api/v1/challenges/{slug}/compare": SIGNED_IN,
}

# What takes away from those who do it what they need for the others, or from the others: tried after everything else.
LAST = (
    "DELETE /api/v1/challenges/{slug}/data/{file_id}",
    "DELETE /api/v1/challenges/{slug}/organizers/{user_id}",
    "POST /c/{slug}/organize/data/{file_id}/delete",
    "POST /c/{slug}/team/leave",
    "POST /c/{slug}/organize/organizers/{user_id}/remove",
    "POST /account/tokens/{token_id}/revoke",
    "POST /logout",
)
