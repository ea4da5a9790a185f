"""Predictions, the run files of the challenges, and where a run came from."""
