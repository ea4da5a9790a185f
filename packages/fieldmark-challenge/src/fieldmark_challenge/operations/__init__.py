"""What keeps processes running: leases, heartbeats, logs, and an orderly end."""
