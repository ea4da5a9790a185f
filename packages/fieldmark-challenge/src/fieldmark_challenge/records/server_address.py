"""The address by which people know the platform: checked when a server starts, and noted for the verbs of the shell."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from fieldmark.errors import MisuseError
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Setting

NOTED = "server-address"
UNKNOWN = "http://127.0.0.1:8000"
EXAMPLE = "an address such as https://challenge.example.org, without a path"


def checked_public_url(text: str) -> str:
    """An address that links can begin with.

    >>> checked_public_url("https://challenge.example.org/")
    'https://challenge.example.org'

    Raises:
        MisuseError: When people could not open it, or pages would not lie below it.
    """
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  (reading it checks it)
        host = parts.hostname
    except ValueError:
        host = None
    whole = host and parts.scheme in ("http", "https") and not (parts.path.strip("/") or parts.query or parts.fragment)
    if not whole or "@" in parts.netloc or any(sign.isspace() for sign in text):
        raise MisuseError(f"--public-url {text}: expected {EXAMPLE}.")
    if is_everywhere(str(host)):
        raise MisuseError(f"--public-url {text}: that is no address that people can open; expected {EXAMPLE}.")
    return text.rstrip("/")


def listening_address(host: str, port: int) -> str:
    """Where a server answers on the machine itself.

    >>> listening_address("0.0.0.0", 8000), listening_address("::1", 80)
    ('http://127.0.0.1:8000', 'http://[::1]:80')
    """
    here = "127.0.0.1" if is_everywhere(host) else host
    return f"http://{f'[{here}]' if ':' in here else here}:{port}"


def is_everywhere(host: str) -> bool:
    """Whether a server that listens there listens on all addresses.

    >>> is_everywhere("0.0.0.0"), is_everywhere("::"), is_everywhere("localhost")
    (True, True, False)
    """
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def note_address(database: Database, address: str) -> None:
    """Notes the address of the server that has just started."""
    insert = sqlite_insert if database.is_sqlite else postgresql_insert
    noted = insert(Setting).values(name=NOTED, value=address.encode())
    with database.write() as session:
        session.execute(noted.on_conflict_do_update(index_elements=["name"], set_={"value": noted.excluded.value}))


def noted_address(database: Database) -> str:
    """The address of the server that was started last; that of `fieldmark serve` by itself where none ever was."""
    with database.read() as session:
        kept = session.get(Setting, NOTED)
        return kept.value.decode() if kept else UNKNOWN
