"""What everything stands on: files, progress, registries, settings, batch work, run lengths, times."""
