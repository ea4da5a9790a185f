"""Scoring: the queue, workers, the sandbox, the parts of the truth, and receipts."""
