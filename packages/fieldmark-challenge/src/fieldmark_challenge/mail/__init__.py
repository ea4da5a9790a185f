"""E-mail: what is written to whom, the outbox it waits in, and the way to the mail server."""
