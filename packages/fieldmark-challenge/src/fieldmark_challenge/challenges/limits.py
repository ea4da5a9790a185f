"""How long texts of organizers may be, and how far codes reach: known where no database is."""

LONGEST_TITLE, LONGEST_TEXT = 200, 20_000  # of an announcement
LONGEST_REASON = 500
LONGEST_NOTE = 200
MOST_USES, MOST_DAYS, MOST_CODES = 10_000, 365, 100
