"""An action: a function with a typed request and the right it needs.

    class PublishIn(Request):
        published: Annotated[bool, FieldShown(undo="Show it to its organizers only.")] = True

    @actions.add(api="POST /publish", page="/publish", verb="publish birds")
    def publish(by: ActingOrganizer, given: PublishIn) -> Told[Done]:
        \"\"\"Publish a challenge; its phases say when runs are accepted.\"\"\"

The right is the type of `by`, the request is that of `given`, and what else the function takes are numbers of rows in
the address. Its docstring describes it to those who call the API and to those who ask the shell for help.

Modules of actions import the domain inside their functions: the shell reads them all to show its help, which must not
wait for a database library.
"""

from __future__ import annotations

import datetime as dt
import inspect
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import (
    IO,
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from fieldmark.web.refusals import RefusalError

if TYPE_CHECKING:
    from fieldmark_challenge.records.database import Database
    from fieldmark_challenge.records.schema import Challenge, User
    from fieldmark_challenge.records.storage import Storage

CHUNK = 1 << 20  # of what is copied at a time
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., "Told[Any]"])


def in_utc(moment: dt.datetime) -> dt.datetime:
    """A moment with its time zone; one without is in UTC.

    Raises:
        ValueError: When it is not within the years 1 to 9999 there.
    """
    try:
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("expected a moment of the years 1 to 9999") from error


Moment = Annotated[dt.datetime, AfterValidator(in_utc)]


@dataclass(frozen=True)
class FieldShown:
    """How people meet a field of a request.

    Args:
        label: What forms call it, and sentences about what is wrong with it.
        help: What the shell says about it, where that is not what the API says.
        form: Its name in forms, where that is another.
        shell: Its option in the shell, where that is not made of its name (`--on/--off` for yes and no).
        hint: What forms say about it.
        least: The smallest number, or the shortest text, that forms and the shell let through; the domain decides.
        rows: The height of a long text in forms.
        beside: Whether forms show it beside the field before.
        argument: Whether the shell takes it as an argument.
        from_file: Whether the shell reads it from a file, and what that holds.
        undo: What the shell says about `--undo`, by which a field that is usually true is made false.
        no: What a form sends for no.
        choices: The values that a form offers, with their labels.
        in_shell: Whether the shell has an option for it.
    """

    label: str = ""
    help: str = ""
    _: KW_ONLY
    form: str = ""
    shell: str = ""
    hint: str = ""
    least: int | None = None
    rows: int = 0
    beside: bool = False
    argument: bool = False
    from_file: str = ""
    undo: str = ""
    no: str = "no"
    choices: tuple[tuple[str, str], ...] = ()
    in_shell: bool = True


PLAIN = FieldShown()


@dataclass(frozen=True)
class Sent:
    """A file that came with a request: uploaded, or one of the machine that the shell runs on.

    Args:
        name: What its owner calls it.
        source: Where it is: a path, or what can be read of it.
    """

    name: str
    source: Path | IO[bytes]

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its bytes."""
        if isinstance(self.source, Path):
            with self.source.open("rb") as stream:
                yield stream
        else:
            yield self.source

    @contextmanager
    def on_disk(self, name: str) -> Iterator[Path]:
        """Where it lies, for as long as it is needed; an uploaded one is called by a name of ours."""
        from fieldmark_challenge.records.scratch import scratch

        if isinstance(self.source, Path):
            yield self.source
            return
        with scratch("form") as folder:
            with (folder / name).open("wb") as sink:
                shutil.copyfileobj(self.source, sink, CHUNK)
            yield folder / name


class Request(BaseModel):
    """What an action is asked; names that mean nothing are refused rather than passed over."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    whole: ClassVar[bool] = False  # whether the API describes it as an object of its own
    nothing: ClassVar[str] = ""  # what the shell says where nothing is asked, if that makes no sense

    def changes(self) -> dict[str, Any]:
        """The fields that were sent."""
        return {name: getattr(self, name) for name in type(self).model_fields if getattr(self, name) is not None}

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """The request that somebody filled in.

        Raises:
            RefusalError: Says what was found and what is expected.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            label = shown(cls, name).label or name.replace("_", " ").capitalize()
            expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, expected ")
            raise RefusalError(f"{label}: found {str(first['input'])[:40]!r}, expected {expected}.") from error


def taken_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of what a function takes; that of what it returns may be known elsewhere only."""
    kinds = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    return get_type_hints(type("Taken", (), {"__annotations__": kinds}), function.__globals__, include_extras=True)


def kind_of(annotation: Any) -> Any:
    """The type of a field, without what it may lack.

    >>> kind_of(int | None), kind_of(Annotated[dt.datetime, "UTC"] | None), kind_of(Literal["a", "b"])
    (<class 'int'>, <class 'datetime.datetime'>, <class 'str'>)
    """
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return kind_of(next(one for one in get_args(annotation) if one is not type(None)))
    if origin is Annotated:
        return kind_of(get_args(annotation)[0])
    return str if origin is Literal else annotation


def shown(model: type[Request], name: str) -> FieldShown:
    """How people meet a field."""
    return next((one for one in model.model_fields[name].metadata if isinstance(one, FieldShown)), PLAIN)


@dataclass(frozen=True)
class Acting:
    """Who acts, and on what.

    Args:
        database: Of the platform.
        storage: Its files.
        user: Who acts.
        upload_mb: The largest upload that the server takes.
        base: What links begin with.
    """

    database: Database
    storage: Storage
    user: User
    upload_mb: int
    base: str


@dataclass(frozen=True)
class ActingOrganizer(Acting):
    """Somebody who runs a challenge."""

    challenge: Challenge

    @property
    def place(self) -> tuple[Database, User, Challenge]:
        """What functions of the domain begin with."""
        return self.database, self.user, self.challenge

    @property
    def stored_place(self) -> tuple[Database, Storage, User, Challenge]:
        """The same for those that keep files."""
        return self.database, self.storage, self.user, self.challenge


@dataclass(frozen=True)
class Admin(Acting):
    """Somebody who runs the platform."""


@dataclass(frozen=True)
class Told(Generic[R]):
    """What an action answers.

    Args:
        reply: What the API says.
        data: What the shell says to programs; the reply where this is None.
        text: What it says to people.
        done: What the page says afterwards: a key of `site.context.DONE`.
        once: What a page shows this once, in place of being left for a fresh one.
        table: Columns and rows that the shell prints in place of the text.
        notes: What it says besides, apart from what a program reads.
    """

    reply: R
    text: str = ""
    data: Any = None
    done: str = "saved"
    once: Mapping[str, Any] | None = None
    table: tuple[list[str], list[list[str]]] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """An action and where it is offered.

    Args:
        function: What does it.
        api: The method and the path below that of the challenge; empty for none.
        pages: Where its forms are sent to, below the pages of the right it needs, each with fields that are settled.
        on: The page that it is on, below those pages.
        verb: An example of its verb; empty for none.
        status: What the API answers with.
        button: What the button of a form says that the page makes by itself; empty where a template has one.
        bounded: Whether it takes no more than one run of the challenge may hold.
        links: Whether it makes links, whose beginning the shell may be told.
        there: Refuses rows that are not there before a form is read.
    """

    function: Callable[..., Told[Any]]
    api: str = ""
    pages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    on: str = ""
    verb: str = ""
    status: int = 200
    button: str = ""
    bounded: bool = False
    links: bool = False
    there: Callable[..., object] | None = None

    @property
    def name(self) -> str:
        """That of the function."""
        return self.function.__name__

    @property
    def about(self) -> str:
        """The sentence about it."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def right(self) -> type[Acting]:
        """Who may."""
        right: type[Acting] = self._hints["by"]
        return right

    @cached_property
    def request(self) -> type[Request] | None:
        """What it is asked."""
        return self._hints.get("given")

    @cached_property
    def ids(self) -> list[str]:
        """The numbers of rows that it takes."""
        return [name for name in inspect.signature(self.function).parameters if name not in ("by", "given")]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return taken_types(self.function)

    def reply_type(self, known: Mapping[str, Any]) -> Any:
        """What the API answers with, among the known replies."""
        told = get_type_hints(self.function, localns=dict(known))["return"]
        return told.__args__[0]

    def __call__(self, by: Acting, given: Request | None, ids: Mapping[str, int]) -> Told[Any]:
        """Does it."""
        return self.function(by, **({} if given is None else {"given": given}), **ids)


class Actions:
    """The actions of a module, in the order in which they are declared."""

    def __init__(self) -> None:
        self._declared: list[Action] = []

    def __iter__(self) -> Iterator[Action]:
        return iter(self._declared)

    def add(self, *, page: str | Mapping[str, Mapping[str, Any]] = "", **where: Any) -> Callable[[F], F]:
        """Declares a function to be an action; `Action` says where it may be offered."""
        pages: Mapping[str, Mapping[str, Any]] = page if not isinstance(page, str) else {page: {}} if page else {}

        def declare(function: F) -> F:
            self._declared.append(Action(function, pages=pages, **where))
            return function

        return declare
