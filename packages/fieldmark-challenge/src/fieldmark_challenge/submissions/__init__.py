"""Taking part: the pages of a challenge, uploads, submissions and what became of them."""
