"""Boards: who is ahead, who may see it, and how it is drawn."""
