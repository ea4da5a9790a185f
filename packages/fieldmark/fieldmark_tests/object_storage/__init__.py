"""Releases at addresses read as they do on disk: `memory://` for speed, `s3://` on a server that the tests start."""
