"""The web platform: host any benchmark as a challenge with teams, quotas, hidden labels and an honest board.

Nothing here loads a web framework or a database before it is asked for: board, planner and receipts are used from the
command line as well.
"""
