"""A model answering one photo or one recording: what is it, how sure, and in a recording when."""

from __future__ import annotations

from fieldmark.identification.answers import Context, Identified, PhotoAnswer, Timeline
from fieldmark.identification.asking import identify

__all__ = ["Context", "Identified", "PhotoAnswer", "Timeline", "identify"]
