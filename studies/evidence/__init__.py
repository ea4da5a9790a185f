"""Studies that take minutes; each writes `studies/results/<name>.json`, and `studies/pages` are made from those."""
