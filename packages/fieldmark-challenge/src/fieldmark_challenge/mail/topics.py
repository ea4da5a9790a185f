"""Which notices somebody wants: all, until they say otherwise, on their account page or by the link in a mail."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import new_secret
from fieldmark_challenge.mail.messages import TOPICS
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import MutedTopic
from fieldmark_challenge.records.schema import User


def muted_by(session: Session, user_id: int) -> set[str]:
    """The topics somebody does not want to hear of."""
    return set(session.scalars(select(MutedTopic.topic).where(MutedTopic.user_id == user_id)))


def set_wanted(database: Database, user: User, wanted: Collection[str]) -> None:
    """Says which topics somebody wants, and that they do not want the others.

    Raises:
        RefusalError: When there is no such topic.
    """
    if unknown := sorted(set(wanted) - set(TOPICS)):
        raise RefusalError(f"There are no notices called {unknown[0][:40]!r}; expected {', '.join(TOPICS)}.")
    with database.write() as session:
        session.execute(delete(MutedTopic).where(MutedTopic.user_id == user.id))
        session.add_all(MutedTopic(user_id=user.id, topic=topic) for topic in TOPICS if topic not in wanted)
        audit.note(session, user, "account.notices", subject=user.name, wanted=sorted(wanted))


def stop_key(database: Database, user_id: int, topic: str) -> str:
    """The end of a link that turns a topic off for somebody who is not signed in."""
    secret = database.setting("mail-secret", lambda: new_secret().encode())
    told = f"{user_id}-{topic}"
    return f"{told}-{hmac.new(secret, told.encode(), hashlib.sha256).hexdigest()[:40]}"


def read_stop_key(database: Database, key: str) -> tuple[int, str]:
    """Whom and what such a link is about.

    Raises:
        NotThereError: When it is not one of ours.
    """
    number, _, rest = key.partition("-")
    topic = rest.rpartition("-")[0]
    if not (number.isascii() and number.isdigit() and len(number) < 10) or topic not in TOPICS:
        raise NotThereError
    if not hmac.compare_digest(stop_key(database, int(number), topic).encode(), key.encode()):
        raise NotThereError
    return int(number), topic


def stop(database: Database, key: str) -> str:
    """Turns a topic off by the link of a mail; returns which."""
    user_id, topic = read_stop_key(database, key)
    with database.write() as session:
        user = database.lock(session, User, user_id)
        if user is None:
            raise NotThereError
        if session.get(MutedTopic, (user_id, topic)) is None:
            session.add(MutedTopic(user_id=user_id, topic=topic))
            audit.note(session, user, "account.notices", subject=user.name, off=topic)
    return topic
