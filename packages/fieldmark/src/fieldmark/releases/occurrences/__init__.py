"""Tables of occurrences, whatever program wrote them: opened as a release, and checked."""
