"""Signing in through somebody else: OpenID Connect (ORCID and others) and GitHub."""
