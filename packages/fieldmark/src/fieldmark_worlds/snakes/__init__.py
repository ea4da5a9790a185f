"""Invented snakes: what they look like, where they live, who imitates whom, and their photos."""
