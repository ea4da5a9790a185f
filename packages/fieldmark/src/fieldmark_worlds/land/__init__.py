"""An invented land: terrain, climate, soil, cover, people, and what grows where."""
