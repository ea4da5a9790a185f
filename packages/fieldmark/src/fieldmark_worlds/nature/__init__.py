"""Species of an invented kingdom: their tree, names, lives and traits, and who observes them."""
