"""Task + run + truth -> scorecard: the same for the command line, the library and the server."""

from __future__ import annotations

from fieldmark.scoring.measurement import LEVEL, measure, score_predictions
from fieldmark.scoring.scorecard import SCORECARD_FILE, Score, Scorecard, cautions, scores_of

__all__ = ["LEVEL", "SCORECARD_FILE", "Score", "Scorecard", "cautions", "measure", "score_predictions", "scores_of"]
