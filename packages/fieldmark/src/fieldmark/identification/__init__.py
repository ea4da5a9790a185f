"""A model answering one photo or one recording: what is it, how sure, and in a recording when."""

from __future__ import annotations

from fieldmark.identification.identify import identify
from fieldmark.identification.photo_answers import PhotoAnswer
from fieldmark.identification.results import Circumstances, Timeline

__all__ = ["Circumstances", "PhotoAnswer", "Timeline", "identify"]
