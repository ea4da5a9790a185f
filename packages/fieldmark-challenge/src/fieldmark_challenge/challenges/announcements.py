"""What organizers tell everybody who sees a challenge: on its page, in the API, as a feed, by mail."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges.limits import LONGEST_TEXT, LONGEST_TITLE
from fieldmark_challenge.people.names import clean_text
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import Announcement
from fieldmark_challenge.records.schema import Challenge, User

ATOM = "http://www.w3.org/2005/Atom"


def announce(database: Database, actor: User, challenge: Challenge, title: str, text: str) -> Announcement:
    """Announces something; those who take part get it by mail where mail is on (`mail.notices` looks for it)."""
    heading = clean_text(title, LONGEST_TITLE, "title").replace("\n", " ")
    if not heading:
        raise RefusalError("An announcement needs a title.")
    with database.write() as session:
        said = clean_text(text, LONGEST_TEXT, "text")
        row = Announcement(challenge_id=challenge.id, author_id=actor.id, title=heading, text=said)
        session.add(row)
        session.flush()
        audit.note(session, actor, "announcement.make", challenge=challenge, subject=heading)
    return row


def remove(database: Database, actor: User, challenge: Challenge, announcement_id: int) -> None:
    """Takes an announcement back; what was mailed or read is out."""
    with database.write() as session:
        row = session.get(Announcement, announcement_id)
        if row is None or row.challenge_id != challenge.id:
            raise NotThereError
        audit.note(session, actor, "announcement.remove", challenge=challenge, subject=row.title, text=row.text[:500])
        session.delete(row)


def announcements_of(session: Session, challenge: Challenge) -> list[Announcement]:
    """The announcements of a challenge, newest first."""
    query = select(Announcement).where(Announcement.challenge_id == challenge.id).order_by(Announcement.id.desc())
    return list(session.scalars(query))


def as_feed(challenge: Challenge, rows: list[Announcement], address: str) -> bytes:
    """The announcements as an Atom feed.

    Args:
        challenge: The challenge.
        rows: Its announcements, newest first.
        address: Of its page.
    """
    feed = ET.Element("feed", xmlns=ATOM)
    newest = rows[0].created_at if rows else challenge.created_at
    for name, value in (("id", address), ("title", challenge.title), ("updated", newest.isoformat())):
        ET.SubElement(feed, name).text = value
    ET.SubElement(ET.SubElement(feed, "author"), "name").text = challenge.title
    ET.SubElement(feed, "link", href=address)
    ET.SubElement(feed, "link", rel="self", href=f"{address}/announcements.atom")
    for row in rows:
        entry = ET.SubElement(feed, "entry")
        place = f"{address}#announcement-{row.id}"
        for name, value in (("id", place), ("title", row.title), ("updated", row.created_at.isoformat())):
            ET.SubElement(entry, name).text = value
        ET.SubElement(entry, "link", href=place)
        ET.SubElement(entry, "content", type="text").text = row.text
    written: str = ET.tostring(feed, encoding="unicode")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + written.encode()
