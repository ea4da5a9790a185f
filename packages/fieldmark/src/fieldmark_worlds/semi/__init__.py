"""Organisms of three kingdoms for worlds with few labels."""
