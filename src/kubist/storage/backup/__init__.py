"""Backups and snapshot files: writing, checking and restoring."""
