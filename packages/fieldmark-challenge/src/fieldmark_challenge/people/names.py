"""Names of people and teams: readable, and no two that look alike."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.records.name_looks import look_of
from fieldmark_challenge.records.schema import Team, User

MAX_NAME, MAX_KEY = 64, 128
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
EMAIL = re.compile(r"[^@\s\"'<>(),;:\\\[\]]{1,64}@[A-Za-z0-9.-]{1,189}")
# Scripts with letters that look like those of another one.
LOOKALIKES = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def clean_name(text: str, what: str = "name") -> tuple[str, str]:
    """Returns a name as it is shown and the key by which it is one of a kind.

    Control characters, changes of writing direction and mixtures of scripts with lookalike letters are refused, so
    that nobody can pass for somebody else.

    >>> clean_name("  Field   Mark ")
    ('Field Mark', 'field mark')

    Raises:
        RefusalError: Says what is wrong with it.
    """
    shown = " ".join(unicodedata.normalize("NFKC", text).split())
    if not 2 <= len(shown) <= MAX_NAME:
        raise RefusalError(f"A {what} has 2 to {MAX_NAME} characters; this one has {len(shown)}.")
    for character in shown:
        if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"):
            raise RefusalError(f"A {what} cannot hold the character U+{ord(character):04X}, which does not show.")
    if not any(character.isalnum() for character in shown):
        raise RefusalError(f"A {what} needs at least one letter or digit.")
    scripts = {unicodedata.name(c, "").split(" ")[0] for c in shown if c.isalpha()} & set(LOOKALIKES)
    if len(scripts) > 1:
        listed = " and ".join(sorted(script.capitalize() for script in scripts))
        raise RefusalError(f"A {what} cannot mix letters of {listed}, which look alike.")
    key = shown.casefold()
    if len(key) > MAX_KEY:  # some letters become three of them
        raise RefusalError(f"This {what} takes too much room when capitals no longer count: choose a shorter one.")
    return shown, key


def clean_email(text: str) -> str:
    """An address in the form in which it is compared.

    >>> clean_email(" Ada@Example.org ")
    'ada@example.org'
    """
    address = unicodedata.normalize("NFKC", text).strip().casefold()
    if not EMAIL.fullmatch(address) or len(address) > 254:
        raise RefusalError("That is not an e-mail address; expected something like name@example.org.")
    return address


def clean_slug(text: str) -> str:
    """The short name of a challenge, as it stands in addresses.

    >>> clean_slug("fungi-2026")
    'fungi-2026'
    """
    slug = text.strip().lower()
    if not SLUG.fullmatch(slug):
        raise RefusalError(
            f"The short name {text!r} is not one: expected small letters, digits and hyphens, such as fungi-2026."
        )
    return slug


def clean_filename(text: str) -> str:
    r"""The name of an uploaded file without folders or anything that does not show.

    >>> clean_filename("..\\..\\etc/pass wd.csv")
    'pass_wd.csv'
    """
    last = unicodedata.normalize("NFKC", text).replace("\\", "/").rpartition("/")[2]
    safe = re.sub(r"[^\w.-]+", "_", last, flags=re.ASCII).lstrip(".")
    return safe[-120:] or "file"


def clean_text(text: str, limit: int, what: str) -> str:
    """Free text: line ends made one kind, what does not show dropped, refused when too long."""
    kept = "".join(
        c for c in text.replace("\r\n", "\n").replace("\r", "\n") if c in "\n\t" or unicodedata.category(c)[0] != "C"
    ).strip()
    if len(kept) > limit:
        raise RefusalError(f"The {what} has {len(kept)} characters; at most {limit} fit.")
    return kept


def look_of_account(session: Session, name: str) -> str:
    """The look of the name of a new account.

    Raises:
        ConflictError: When another account has a name that looks the same.
    """
    look = _alone(session, f"account {look_of(name)}", look_of(name))
    if session.scalars(select(User.id).where(User.name_look == look).limit(1)).first() is not None:
        raise ConflictError("An account with that name, or one that looks like it, exists. Choose another.")
    return look


def look_of_team(session: Session, challenge_id: int, name: str) -> str:
    """The look of the name of a new team or baseline.

    Raises:
        ConflictError: When another one of the challenge has a name that looks the same.
    """
    look = _alone(session, f"team {challenge_id} {look_of(name)}", look_of(name))
    same = select(Team.id).where(Team.challenge_id == challenge_id, Team.name_look == look)
    if session.scalars(same.limit(1)).first() is not None:
        raise ConflictError(f"There is a team or a baseline called {name!r} already, or by a name that looks like it.")
    return look


def _alone(session: Session, what: str, look: str) -> str:
    """Has transactions about the same look follow each other; on SQLite all do."""
    if session.get_bind().dialect.name == "postgresql":
        number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big", signed=True)
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
    return look
