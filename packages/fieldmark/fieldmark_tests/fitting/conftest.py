"""The package of cheating methods is as if installed, and no module of tests."""

collect_ignore = ["packages"]
