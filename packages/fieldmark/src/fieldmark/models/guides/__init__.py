"""What a model keeps to answer people: how sure is sure enough, what is strange, from when on to warn, short lists."""

from __future__ import annotations

from fieldmark.models.guides.guide import Guide, load_guide

__all__ = ["Guide", "load_guide"]
