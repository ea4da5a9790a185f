"""Studies that take minutes; each writes `docs/results/<name>.json`, and `docs/results.md` is made from those."""
