"""How sets are cut: as a release does it, by a rule on any table, into folds, or as a file says."""

from __future__ import annotations

from fieldmark.splits.official import PARTS, Cut, InBlocks, InGroups, Official, Seeded, Together, cut

__all__ = ["PARTS", "Cut", "InBlocks", "InGroups", "Official", "Seeded", "Together", "cut"]
