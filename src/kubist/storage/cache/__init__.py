"""Watch cache: collections of entries with their recent changes."""
