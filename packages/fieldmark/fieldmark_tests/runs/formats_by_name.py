"""The formats of three challenges."""

from __future__ import annotations

from fieldmark.runs.dense import Dense
from fieldmark.runs.scored import Scored
from fieldmark.runs.segments import SegmentLists, segment_name
from fieldmark.tables.labels import Labels

LABELS = Labels(("a", "b", "c"))


PLANTS = Scored(columns=("ObservationId", "ClassId", "Probability", "Rank"), low=0, high=1, at_most=2)


BIRDS = SegmentLists(at_most=2)


SNAKES = Dense(item="hashed_id")


SEGMENTS = [segment_name("PER1", start) for start in (0, 5, 10)]
