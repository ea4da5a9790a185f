"""What those who run the server need: logs, health, measurements, and an orderly end."""
