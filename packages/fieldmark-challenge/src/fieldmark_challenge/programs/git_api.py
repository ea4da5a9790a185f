"""The two addresses that `git push` calls: what it may send, and what it sends.

A token of the account page is the password; any name will do.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.storage.files import sha256_of
from fieldmark.web.rates import Rate
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.challenges.code_tasks import asks_for_code
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.accounts import token_user
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.programs import git_push
from fieldmark_challenge.programs.debug_jobs import try_out
from fieldmark_challenge.programs.git_push import DEBUG, FETCHING, MAIN, SERVICE, PushRefusedError
from fieldmark_challenge.programs.hosts import need_walls
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, User, utc_now
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge.submissions.submissions import Entry
from fieldmark_challenge.submissions.uploads import Upload
from fieldmark_challenge.web.dependencies import DatabaseOf, StorageOf, admit_upload, get_database
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.links import address_of
from fieldmark_challenge.web.replies import Refused

router = APIRouter(tags=["programs"], responses={404: {"model": Refused}})
WRONG_TOKEN = Rate("push with a wrong token", 30, 300)
NO_CACHE = {"cache-control": "no-cache"}
NOT_A_PUSH = "Only pushes are taken here: git push ADDRESS HEAD:main submits a program, HEAD:debug tries it out."


def pusher(request: Request) -> User:
    """The owner of the token that git sends as a password, or a program as a bearer."""
    database = get_database(request)
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    secret = sent.strip() if kind.lower() == "bearer" else _password(sent) if kind.lower() == "basic" else ""
    owner = token_user(database, secret) if secret else None
    if owner is None:
        if secret:
            rates.count(database, WRONG_TOKEN, str(request.client.host if request.client else "unknown"))
        headers = {"www-authenticate": 'Basic realm="Fieldmark: a token as the password"'}
        raise HTTPException(401, "A valid token is needed, as the password.", headers=headers)
    user, scopes = owner
    rates.count(database, rates.CALL, str(user.id))
    if "submit" not in scopes:
        raise NotThereError
    user.may_organize = "organize" in scopes
    return user


Pusher = Annotated[User, Depends(pusher)]


@router.get("/challenges/{slug}/program.git/info/refs", response_class=Response)
async def refs(request: Request, slug: str, user: Pusher, database: DatabaseOf, service: str = "") -> Response:
    """What `git push` asks first."""
    body = await lane_of(request).run(user.id, _refs, slug, user, database, service)
    return Response(body, media_type=f"application/x-{service}-advertisement", headers=NO_CACHE)


def _refs(slug: str, user: User, database: Database, service: str) -> bytes:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    if service == FETCHING:
        return git_push.refusal(NOT_A_PUSH, FETCHING)
    if service != SERVICE:
        raise ConflictError(NOT_A_PUSH)
    try:
        most_mb = _allowed(database, user, challenge)
        with scratch("push") as folder:
            git_push.make_repository(folder, most_mb)
            return git_push.advertisement(folder)
    except NotThereError:
        raise
    except RefusalError as error:
        return git_push.refusal(str(error))


@router.post("/challenges/{slug}/program.git/git-receive-pack", response_class=Response)
async def receive(request: Request, slug: str, user: Pusher, database: DatabaseOf, storage: StorageOf) -> Response:
    """What `git push` sends."""
    challenge = await run_in_threadpool(admit_upload, request, user, slug)
    most_mb = await run_in_threadpool(_allowed, database, user, challenge)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RefusalError("Send the push as git sends it, not compressed once more.")
    with scratch("push") as folder:
        with (folder / "request").open("wb") as sink:
            async for piece in request.stream():
                sink.write(piece)
        body = await lane_of(request).run(user.id, _taken, request, folder, challenge, user, database, storage, most_mb)
    return Response(body, media_type=f"application/x-{SERVICE}-result", headers=NO_CACHE)


def _taken(
    request: Request,
    folder: Path,
    challenge: Challenge,
    user: User,
    database: Database,
    storage: Storage,
    most_mb: int,
) -> bytes:
    """Takes a push, and submits what came with it."""
    git_push.make_repository(folder, most_mb)
    answer = git_push.receive(folder, folder / "request", most_mb)
    pushed = git_push.branches(folder)
    if not pushed:  # git tries whether it may push before it sends much; or it has refused everything itself
        return answer
    outcomes = dict.fromkeys(pushed, "push to main to submit, or to debug to try out, one at a time")
    remarks: tuple[str, ...] = ()
    branch = next(iter(pushed))
    if len(pushed) == 1 and branch in (MAIN, DEBUG):
        try:
            commit = git_push.commit_at(folder, branch, pushed[branch], most_mb)
            remarks = _handed_in(request, commit, challenge, user, database, storage, debug=branch == DEBUG)
            outcomes[branch] = ""
        except (RefusalError, PushRefusedError) as error:
            outcomes[branch] = str(error)
    return git_push.remark(*remarks) + git_push.report(answer, outcomes)


def _handed_in(
    request: Request,
    commit: git_push.Commit,
    challenge: Challenge,
    user: User,
    database: Database,
    storage: Storage,
    *,
    debug: bool,
) -> tuple[str, ...]:
    size = commit.archive.stat().st_size
    upload = Upload(commit.archive, f"{commit.number[:12]}.tar.gz", size, sha256_of(commit.archive))
    arrived = request.state.arrived
    base = address_of(request, f"/c/{challenge.slug}")
    if debug:
        program = try_out(database, storage, user, challenge, upload, arrived=arrived)
        return (f"Debug run {program.id} waits for its turn: {base}/debug/{program.id}",)
    external = git_push.declared(commit)
    entry = Entry(commit.title, commit.method, bool(external), external, f"git-{commit.number}"[:64])
    handed_in = submissions.hand_in(database, storage, user, challenge, upload, entry, arrived=arrived)
    earlier = "" if handed_in.accepted_at == arrived else ", submitted before: one commit is one submission"
    return (f"Submission {handed_in.id}{earlier}: {base}/submissions/{handed_in.id}",)


def _allowed(database: Database, user: User, challenge: Challenge) -> int:
    """How large a push may be, for somebody who may submit a program now.

    Raises:
        ConflictError: When they may not: says why.
    """
    with database.read() as session:
        _, phase = submissions.standing(session, user, challenge, utc_now())
        task = asks_for_code(session, phase)
        if task is None:
            raise ConflictError("The open phase accepts runs, not programs.")
        need_walls(session)
    git_push.need_git()
    return task.archive_mb


def _password(sent: str) -> str:
    """The password of a header of the kind Basic; the name where there is no password."""
    try:
        name, _, password = base64.b64decode(sent, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or name
