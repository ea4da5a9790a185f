"""The pages: rendered on the server, complete without JavaScript."""
