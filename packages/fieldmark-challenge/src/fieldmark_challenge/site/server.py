"""Starting the platform: what it is made of, its first account, and the server itself."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from fieldmark.errors import InputError, MisuseError
from fieldmark.sandbox.bubblewrap import require_walls
from fieldmark.web.identify_answers import PageAnswers
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.operations.shutdown import GRACE_S, Stopping
from fieldmark_challenge.people import accounts
from fieldmark_challenge.people.rights import manages
from fieldmark_challenge.programs.cgroups import collect_groups
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.orphans import collect_orphans
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.records.scratch import collect_leftovers
from fieldmark_challenge.records.server_address import checked_public_url, listening_address, note_address
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.scoring_process import Limits
from fieldmark_challenge.site.settings_file import PlatformSettings
from fieldmark_challenge.submissions.partial_uploads import collect_expired

log = logging.getLogger(__name__)

DATABASE_FILE, FILES_FOLDER = "platform.sqlite", "files"


@dataclass(frozen=True)
class Safety:
    """What processes that read runs may use, and whether they must be walled in.

    Args:
        walled: Whether nothing is scored without bubblewrap; None asks for it where it is installed.
        memory_mb, seconds: What scoring one run may use.
        check_memory_mb, check_s: What checking one may use.
    """

    walled: bool | None = None
    memory_mb: int = 8192
    seconds: int = 900
    check_memory_mb: int = 4096
    check_s: int = 300

    @property
    def limits(self) -> Limits:
        """Those of scoring."""
        return Limits(memory_mb=self.memory_mb, cpu_s=self.seconds, wall_s=float(self.seconds))


SAFETY = Safety()
NO_SETTINGS = PlatformSettings()


@dataclass(frozen=True)
class Operation:
    """How a server is looked after.

    Args:
        access_log: Whether each request leaves a line in the log.
        metrics_token: Who knows it may read `/metrics` from elsewhere.
        grace_s: How long requests and runs may go on after a signal to end.
    """

    access_log: bool = False
    metrics_token: str | None = None
    grace_s: float = GRACE_S


OPERATION = Operation()


@dataclass(frozen=True)
class Platform:
    """The two things that all processes of a platform share."""

    database: Database
    storage: Storage

    def challenge(self, slug: str) -> Challenge:
        """A challenge by its short name.

        Raises:
            MisuseError: When there is none.
        """
        with self.database.read() as session:
            hosted = session.scalars(select(Challenge).where(Challenge.slug == slug)).one_or_none()
            slugs = ", ".join(session.scalars(select(Challenge.slug).order_by(Challenge.slug))) or "none yet"
        if hosted is None:
            raise MisuseError(f"There is no challenge called {slug!r}. Known: {slugs}.")
        return hosted

    def account(self, who: str | None) -> User:
        """An account by its name or address; the first admin where none is named."""
        with self.database.read() as session:
            if who is None:
                query = select(User).where(User.role == "admin", User.disabled_at.is_(None)).order_by(User.id)
                user = session.scalars(query).first()
            else:
                user = accounts.find_user(session, who)
        if user is None:
            raise MisuseError(f"There is no account called {who!r}." if who else "There is no admin yet.")
        return user

    def organizer(self, who: str | None, challenge: Challenge) -> User:
        """An account that may run a challenge."""
        user = self.account(who)
        with self.database.read() as session:
            if not manages(session, user, challenge):
                raise MisuseError(f"{user.name} does not run {challenge.slug}.")
        return user


@contextmanager
def open_platform(
    folder: Path, database: str | None = None, files: str | None = None, *, new: bool = False
) -> Iterator[Platform]:
    """Opens a platform, its tables brought up to date.

    Args:
        folder: Where the database and the files are kept if nothing else is said.
        database: The address of the database.
        files: The address of the file store.
        new: Whether to make one where there is none.

    Raises:
        InputError: When there is none.
    """
    if not new and database is None and not (folder / DATABASE_FILE).is_file():
        hint = "Say where it is with --folder or --database."
        raise InputError(folder, found="no platform", expected="the folder of `fieldmark serve`", hint=hint)
    # The truth and the accounts are for the server alone, whoever else works on the machine.
    if (database is None or files is None) and not folder.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    if database is None:
        (folder / DATABASE_FILE).touch(mode=0o600)  # SQLite gives its other files the same rights
        (folder / DATABASE_FILE).chmod(0o600)
    if files is None:
        (folder / FILES_FOLDER).mkdir(exist_ok=True)
        (folder / FILES_FOLDER).chmod(0o700)
    opened = Database(database or f"sqlite:///{(folder / DATABASE_FILE).resolve()}")
    try:
        opened.migrate()
        yield Platform(opened, Storage(files or (folder / FILES_FOLDER).resolve()))
    finally:
        opened.close()


def first_admin(database: Database) -> str | None:
    """Makes an admin on a platform without accounts; returns the secret of the link that sets the password."""
    with database.read() as session:
        if session.scalars(select(User.id).where(User.role == "admin").limit(1)).first() is not None:
            return None
    try:
        accounts.register(database, "admin", "admin@localhost", secrets.token_urlsafe(32), role="admin")
    except RefusalError:  # another server has just done so
        return None
    return accounts.make_reset(database, "admin")


def serve(
    platform: Platform,
    *,
    host: str,
    port: int,
    public_url: str | None,
    workers: int,
    trusted_proxies: str | None,
    namer: PageAnswers | None = None,
    safety: Safety = SAFETY,
    operation: Operation = OPERATION,
    code_workers: int = 0,
    settings: PlatformSettings = NO_SETTINGS,
) -> None:
    """Serves pages and API until it is stopped.

    Raises:
        MisuseError: When links could not lead to the public address, or something needs one that is not given.
    """
    import uvicorn

    from fieldmark.web.patience import PatientProtocol
    from fieldmark_challenge.operations.web_server import WebServer
    from fieldmark_challenge.site.app import create_app
    from fieldmark_challenge.submissions import uploads

    if public_url is None and (settings.mail is not None or settings.providers):
        raise MisuseError("Mails and providers lead people back: say with --public-url by which address they know us.")
    public_url = None if public_url is None else checked_public_url(public_url)
    note_address(platform.database, public_url or listening_address(host, port))
    walled = require_walls(safety.walled)
    tidy_up(platform)
    uploads.CHECK_LIMITS = replace(
        uploads.CHECK_LIMITS, memory_mb=safety.check_memory_mb, cpu_s=safety.check_s, wall_s=float(safety.check_s)
    )
    threading.Thread(target=uploads.CHECKERS.warm_up, daemon=True).start()
    threading.Thread(target=warm_boards, args=(platform.database,), daemon=True).start()
    stopping = Stopping(operation.grace_s)
    app = create_app(
        platform.database,
        platform.storage,
        public_url=public_url,
        workers=workers,
        namer=namer,
        limits=safety.limits,
        walled=walled,
        access_log=operation.access_log,
        metrics_token=operation.metrics_token,
        stopping=stopping,
        mail=settings.mail,
        providers=settings.providers,
    )
    programs = _program_workers(platform, stopping, code_workers)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,  # its lines are among ours
        access_log=False,
        http=PatientProtocol,
        server_header=False,
        proxy_headers=trusted_proxies is not None,
        forwarded_allow_ips=trusted_proxies,
        timeout_graceful_shutdown=int(operation.grace_s),
    )
    WebServer(config, stopping).run()
    stopping.wait_for(programs)


def _program_workers(platform: Platform, stopping: Stopping, jobs: int) -> list[threading.Thread]:
    """Starts what runs programs of participants; nothing where their walls do not hold."""
    if not jobs:
        return []
    from fieldmark_challenge.programs.program_worker import start_program_workers

    try:
        return start_program_workers(platform.database, platform.storage, stopping, jobs=jobs)
    except MisuseError as error:  # pages say so, and phases that require programs do not open
        log.error("%s", error)
        return []


def work(
    platform: Platform,
    *,
    jobs: int,
    lease_s: float,
    until_idle: bool,
    safety: Safety = SAFETY,
    grace_s: float = GRACE_S,
) -> None:
    """Scores submissions until it is stopped, or until none waits."""
    from fieldmark_challenge.scoring.worker import start_workers

    walled = require_walls(safety.walled)
    tidy_up(platform)
    stopping = Stopping(grace_s)
    stopping.listen()
    threads = start_workers(
        platform.database,
        platform.storage,
        stopping,
        jobs=jobs,
        lease_s=lease_s,
        limits=safety.limits,
        walled=walled,
        until_idle=until_idle,
    )
    while any(thread.is_alive() for thread in threads) and not stopping.begun.wait(0.2):
        pass
    stopping.wait_for(threads)


def run_programs(
    platform: Platform,
    *,
    jobs: int,
    lease_s: float,
    until_idle: bool,
    podman: str | None = None,
    grace_s: float = GRACE_S,
) -> None:
    """Runs programs until it is stopped, or until none waits.

    Raises:
        MisuseError: When the walls of this machine do not hold; which organizers are told.
    """
    from fieldmark_challenge.programs.program_worker import start_program_workers
    from fieldmark_challenge.programs.runners import make_runner

    tidy_up(platform)
    stopping = Stopping(grace_s)
    stopping.listen()
    threads = start_program_workers(
        platform.database,
        platform.storage,
        stopping,
        jobs=jobs,
        lease_s=lease_s,
        runner=make_runner(podman),
        until_idle=until_idle,
    )
    while any(thread.is_alive() for thread in threads) and not stopping.begun.wait(0.2):
        pass
    stopping.wait_for(threads)


def warm_boards(database: Database) -> int:
    """Computes the boards that visitors see before anybody asks for them; the first one of a process takes longest.

    Returns:
        How many there are.
    """
    from fieldmark_challenge.boards import visibility

    done = 0
    with database.read() as session:
        for challenge in session.scalars(select(Challenge).where(Challenge.published_at.is_not(None))):
            try:
                visibility.board_of(session, visibility.look(challenge, None, manages=False))
                done += 1
            except Exception:  # whoever asks for it is told
                log.exception("the board of %s could not be computed", challenge.slug)
    return done


def tidy_up(platform: Platform) -> None:
    """Removes what ended processes left behind."""
    collect_leftovers()
    collect_groups()
    collect_expired(platform.database, platform.storage)
    collect_orphans(platform.database, platform.storage)
