"""SnakeCLEF 2020, and the tables of 2021 in the same way: metadata, presence by country, checks."""
