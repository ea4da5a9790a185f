"""The pages by area; every route asks `rights` who may see it."""
