"""The XML file that lies beside each picture of PlantCLEF: one element per fact.

```
<Image>
  <ObservationId>4242</ObservationId> <MediaId>1</MediaId> <ClassId>106461</ClassId> <PhotoType>Herbarium</PhotoType>
  <Species>Costus scaber Ruiz & Pav.</Species> <Date>1987-03-02</Date> <Latitude>4.6</Latitude> ...
</Image>
```

Quirks:

- Authors of names are joined by an ampersand that is not escaped, which no XML reader takes. Every `&` that begins
  none of XML's own entities is escaped first, so that an entity that a file declares itself is never expanded either.
- Files are UTF-8 or, older ones, Windows-1252, whatever they say themselves.
- Tags are not documented and their case differs between years: they are compared without case and underscores.
"""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

from fieldmark.tables.numbers import parse_float

LOOSE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);)")
DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
# More than a fact about a picture can need; anything longer is no such file.
MOST_BYTES = 1 << 20
DATE = re.compile(r"^([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")


class BrokenXmlError(ValueError):
    """A file that is no XML even after its ampersands are escaped; the message says what is wrong with it."""


@dataclass(frozen=True)
class PlantFacts:
    """What an XML file says.

    Args:
        values: Text by tag, tags in lower case without underscores; empty elements are left out.
        repaired: Whether ampersands had to be escaped.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    repaired: bool = False

    def text(self, *tags: str) -> str | None:
        """The first of some tags that says anything."""
        return next((self.values[tag] for tag in tags if tag in self.values), None)

    def number(self, *tags: str, at_most: float) -> float | None:
        """The same as a number between -`at_most` and `at_most`; None for anything else."""
        try:
            value = parse_float(self.text(*tags) or "")
        except ValueError:
            return None
        return value if abs(value) <= at_most else None

    @property
    def date(self) -> datetime.date | None:
        """The day; sheets often bear a year alone, which is none."""
        match = DATE.match(self.text("date", "eventdate") or "")
        try:
            return datetime.date(*(int(part) for part in match.groups())) if match else None
        except ValueError:
            return None


def read_facts(data: bytes) -> PlantFacts:
    """Reads one file.

    >>> read_facts(b"<Image><Species>Costus scaber Ruiz & Pav.</Species><Date/></Image>")
    PlantFacts(values={'species': 'Costus scaber Ruiz & Pav.'}, repaired=True)

    Raises:
        BrokenXmlError: When it is no XML, for another reason than loose ampersands.
    """
    if not data.strip():
        raise BrokenXmlError("an empty file")
    if len(data) > MOST_BYTES:
        raise BrokenXmlError(f"{len(data):,} bytes, too many for facts about one picture")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    escaped, times = LOOSE_AMPERSAND.subn("&amp;", DECLARATION.sub("", text))
    try:
        root = ElementTree.fromstring(escaped)
    except ElementTree.ParseError as error:
        raise BrokenXmlError(f"no XML ({error})") from error
    values: dict[str, str] = {}
    for element in root.iter():
        said = " ".join(html.unescape(element.text or "").split())
        if said and len(element) == 0:
            values.setdefault(element.tag.rpartition("}")[2].lower().replace("_", ""), said)
    return PlantFacts(values, times > 0)
