"""Charts as parts of a page."""
