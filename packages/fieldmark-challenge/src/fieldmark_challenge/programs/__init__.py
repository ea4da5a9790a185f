"""Programs of participants: taken as archives, run within walls, and never by the process that scores."""
