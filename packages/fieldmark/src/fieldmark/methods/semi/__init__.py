"""Learning from unlabeled photos on frozen features: heads with labels that are given, guessed or spread."""
