"""The page and what it shows besides charts: photos, sounds, cards of observations."""
