"""Batch work: blocks here or on a Ray cluster, progress, and arrays larger than memory."""
