"""The versions of the tables, brought up to date by `Database.migrate`."""
