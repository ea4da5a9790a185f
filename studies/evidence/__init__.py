"""Studies that take minutes; each writes `studies/results/<name>.json`, and `docs/results.md` is made from those."""
