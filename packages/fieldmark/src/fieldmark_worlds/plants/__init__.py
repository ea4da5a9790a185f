"""Invented flowering plants: as they grow, and as they are pressed."""
