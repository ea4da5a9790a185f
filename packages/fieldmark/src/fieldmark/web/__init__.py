"""Local pages of identify and review, and the client that submits to a challenge."""
