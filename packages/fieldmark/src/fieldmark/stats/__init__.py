"""How sure a score is: pseudo-values, intervals and comparisons over independent units."""
