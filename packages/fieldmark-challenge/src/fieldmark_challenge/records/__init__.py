"""What the platform records: tables, files, the audit log, and backups of all of it."""
