"""Where species live: an invented country with regions, weather and ground, and the backdrop of photos."""
