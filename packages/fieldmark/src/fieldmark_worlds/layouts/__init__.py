"""Worlds as releases: one writer per layout."""
