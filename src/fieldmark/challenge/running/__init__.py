"""Running a challenge: making it, its phases and texts, exports; and starting the platform."""
