"""A model as a folder of static files: a field guide that answers in a browser, without a network."""
