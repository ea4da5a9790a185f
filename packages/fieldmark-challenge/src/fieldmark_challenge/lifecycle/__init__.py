"""Running a challenge: making it, its settings and standings, and the pages and routes of its organizers."""
