"""People: accounts, teams, who may do what and how often."""
