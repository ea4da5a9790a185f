"""Verbs of the shell: the options that all of them take, and those made from the requests of actions.

A verb is a function that returns what is to be said, or says it itself. What it takes first is what it works on: an
`ActingOrganizer` (a challenge, and an account that runs it), an `Admin`, or a `Shell` (the platform). The options that
belong to these are added here, as are those of a request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.actions.declarations import Acting, ActingOrganizer, Action, Admin, Request, Told, taken_types
from fieldmark_challenge.cli import options
from fieldmark_challenge.cli.fields import field_options, read_options
from fieldmark_challenge.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark_challenge.records.schema import User
    from fieldmark_challenge.site.server import Platform

F = TypeVar("F", bound=Callable[..., Any])
EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Shell:
    """The platform that a verb is about, and whether a program asks."""

    platform: Platform
    folder: Path
    as_json: bool


@dataclass(frozen=True)
class Nowhere:
    """No platform: the verb is about this machine."""

    as_json: bool


class Verbs:
    """The verbs of a module: those made from actions, and those that are added.

    Args:
        actions: What to make verbs of, where they have an example.
    """

    def __init__(self, actions: Iterable[Action] = ()) -> None:
        self._added = [(action.verb, action.function, {"links": action.links}) for action in actions if action.verb]

    def add(self, example: str, **how: bool) -> Callable[[F], F]:
        """Adds a function; the example begins with the name of the verb, and `_Verb` says how else it may be."""

        def added(function: F) -> F:
            self._added.append((example, function, how))
            return function

        return added

    def add_to(self, group: typer.Typer) -> None:
        """Adds the verbs to a group, with their examples."""
        for example, function, how in self._added:
            epilog = f"Example: `fieldmark challenge {example}" + ("" if "`" in example else "`")
            group.command(example.split()[0], epilog=epilog)(_Verb(function, **how).command())


@dataclass(frozen=True)
class _Verb:
    """A function as a command.

    Args:
        function: What it does.
        as_json: Whether it can answer programs.
        links: Whether it makes links, whose beginning may be given.
        new: Whether it makes a platform where there is none.
    """

    function: Callable[..., Told[Any] | None]
    as_json: bool = True
    links: bool = False
    new: bool = False

    def command(self) -> Callable[..., None]:
        """What typer calls."""
        types = taken_types(self.function)
        (_, right), *others = types.items()
        request = next((kind for _, kind in others if inspect.isclass(kind) and issubclass(kind, Request)), None)

        def run(**typed: Any) -> None:
            as_json = typed.pop("as_json", False)
            given = {} if request is None else {"given": read_options(request, typed)}
            with self._acting(right, typed, as_json) as (by, slug), _in_words(slug, typed, given):
                told = self.function(by, **_rows(typed), **given)
            if told is not None:
                say(told, as_json=as_json)

        taken = list(self._options(right, request, {name: kind for name, kind in others if name != "given"}))
        run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in taken}
        run.__doc__, run.__name__ = inspect.getdoc(self.function), self.function.__name__
        return run

    def _options(
        self, right: type[Any], request: type[Request] | None, others: Mapping[str, Any]
    ) -> Iterator[inspect.Parameter]:
        if right is ActingOrganizer:
            yield _option("name", options.Name)
        own = inspect.signature(self.function).parameters
        for name, kind in others.items():
            yield _option(*ROWS[name]) if name in ROWS else _option(name, kind, own[name].default)
        yield from () if request is None else field_options(request)
        if self.links:
            yield _option("address", options.Address, None)
        if right in (ActingOrganizer, Admin):
            yield _option("actor", options.Actor, None)
        if right is not Nowhere:
            yield _option("folder", Folder, DEFAULT_FOLDER)
            yield _option("database", DatabaseUrl, None)
            yield _option("files", FilesUrl, None)
        if self.as_json:
            yield _option("as_json", options.Json, False)

    @contextmanager
    def _acting(
        self, right: type[Any], typed: dict[str, Any], as_json: bool
    ) -> Iterator[tuple[Acting | Shell | Nowhere, str]]:
        """Whom a verb works for, with what was typed about that taken out."""
        from fieldmark_challenge.records.schema import Challenge
        from fieldmark_challenge.site.server import open_platform
        from fieldmark_challenge.submissions.uploads import SERVER_MB

        if right is Nowhere:
            yield Nowhere(as_json), ""
            return
        folder, database, files = (typed.pop(name) for name in ("folder", "database", "files"))
        with open_platform(folder, database, files, new=self.new) as platform:
            if right is Shell:
                yield Shell(platform, folder, as_json), ""
                return
            actor, base = typed.pop("actor"), options.link_base(platform, typed.pop("address", None))
            if right is ActingOrganizer:
                hosted = platform.challenge(typed.pop("name"))
                user = platform.organizer(actor, hosted)
                with platform.database.read() as session:
                    challenge = session.get_one(Challenge, hosted.id)
                    challenge.phases  # noqa: B018  (loaded while there is a session)
                yield (
                    ActingOrganizer(platform.database, platform.storage, user, SERVER_MB, base, challenge),
                    challenge.slug,
                )
                return
            user = platform.account(actor)
            if user.role != "admin":
                raise MisuseError(f"{user.name} is no admin, and this is for those who run the server.")
            yield Admin(platform.database, platform.storage, user, SERVER_MB, base), ""


Who = Annotated[str, typer.Argument(help="The name or address of the account.")]
# What the numbers of rows that actions take are called in the shell.
ROWS = {"submission_id": ("submission", options.Number)}


def account_called(by: Acting, who: str) -> User:
    """An account by its name or address.

    Raises:
        MisuseError: When there is none.
    """
    from fieldmark_challenge.site.server import Platform

    return Platform(by.database, by.storage).account(who)


def _option(name: str, kind: Any, default: Any = EMPTY) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _rows(typed: dict[str, Any]) -> dict[str, Any]:
    """What was typed, with the numbers of rows that it names."""
    names = {shown: name for name, (shown, _) in ROWS.items()}
    return {names.get(name, name): value for name, value in typed.items()}


@contextmanager
def _in_words(slug: str, typed: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[None]:
    """Says in words of the shell what a challenge lacks, and the mistakes of a run with its path."""
    from fieldmark.web.run_problems import in_lines
    from fieldmark_challenge.submissions.run_files import RunRefusedError

    try:
        yield
    except NotThereError as error:
        if "submission" not in typed:
            raise
        raise MisuseError(f"{slug} has no submission {typed['submission']}.") from error
    except RunRefusedError as error:
        run = getattr(given.get("given"), "run", None)
        path = "the run" if run is None else str(run.source)
        raise FieldmarkError(in_lines("The run file has mistakes:", error.problems, path)) from error


def say(told: Told[Any], *, as_json: bool) -> None:
    """Says what was done, to a program or to a person."""
    from fieldmark.cli.output import print_json, print_table

    for line in told.notes:
        typer.echo(line, err=True)
    if as_json:
        print_json(told.data if told.data is not None else dumped(told.reply))
    elif told.table is not None:
        print_table(*told.table, numbers=False)
    else:
        print(told.text)


def dumped(reply: Any) -> Any:
    """A reply of the API, or a list of them, as JSON writes it."""
    return [dumped(one) for one in reply] if isinstance(reply, list) else reply.model_dump(mode="json")
