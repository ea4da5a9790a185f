"""Class rooms: addresses behind which many people sit.

Limits on signing in, registering, asking for a new password and asking the identify page are per address, against
guessing and haste from one machine. A class behind one address would run into them. While a class room is open, its
address may do fifty times as much, and what is counted per account stays as it is.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.web.rates import Rate
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.names import clean_text
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import Classroom
from fieldmark_challenge.records.schema import User, utc_now

TIMES = 50
MOST_HOURS = 24 * 31
# The widest network that is one room: 65,536 addresses, and in IPv6 what one site has.
WIDEST = {4: 16, 6: 48}


def count_place(database: Database, rate: Rate, address: str) -> None:
    """Counts a try from an address, which may be that of a class room.

    Raises:
        TooOftenError: When it was tried too often.
    """
    with database.read() as session:
        roomy = any(_holds(room.network, address) for room in open_rooms(session))
    if roomy:
        rate = replace(rate, what=f"{rate.what} (room)", limit=rate.limit * TIMES)
    rates.count(database, rate, address)


def open_rooms(session: Session) -> list[Classroom]:
    """The class rooms that are open now."""
    return list(session.scalars(select(Classroom).where(Classroom.ends_at > utc_now()).order_by(Classroom.id)))


def open_room(database: Database, actor: User, network: str, *, hours: int, note: str = "") -> Classroom:
    """Opens a class room for some hours.

    Raises:
        RefusalError: When that is no address or network, or one that is too wide.
    """
    try:
        parsed = ipaddress.ip_network(network.strip(), strict=False)
    except ValueError as error:
        sentence = f"Found {network[:60]!r}, expected an address or a network such as 203.0.113.7 or 203.0.113.0/24."
        raise RefusalError(sentence) from error
    if parsed.prefixlen < WIDEST[parsed.version]:
        raise RefusalError(f"{parsed} is wider than a class room: at most /{WIDEST[parsed.version]}.")
    if not 1 <= hours <= MOST_HOURS:
        raise RefusalError(f"A class room is open for 1 to {MOST_HOURS} hours.")
    with database.write() as session:
        room = Classroom(
            network=str(parsed),
            note=clean_text(note, 200, "note"),
            created_by=actor.id,
            ends_at=utc_now() + dt.timedelta(hours=hours),
        )
        session.add(room)
        session.flush()
        audit.note(session, actor, "classroom.open", subject=room.network, hours=hours)
    return room


def end_room(database: Database, actor: User, room_id: int) -> None:
    """Closes a class room."""
    with database.write() as session:
        room = session.get(Classroom, room_id)
        if room is None:
            raise NotThereError
        room.ends_at = min(room.ends_at, utc_now())
        audit.note(session, actor, "classroom.end", subject=room.network)


def _holds(network: str, address: str) -> bool:
    """Whether an address lies in a network.

    >>> _holds("203.0.113.0/24", "::ffff:203.0.113.9"), _holds("203.0.113.0/24", "unknown")
    (True, False)
    """
    try:
        place = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = place.ipv4_mapped if isinstance(place, ipaddress.IPv6Address) else None
    return (mapped or place) in ipaddress.ip_network(network)
