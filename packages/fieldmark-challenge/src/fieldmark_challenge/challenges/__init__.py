"""A challenge and its rules: phases, stages, who is admitted, what is offered and announced, what counts in the end."""
