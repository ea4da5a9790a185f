"""The package that the tests install is not ours to collect."""

collect_ignore = ["packages"]
