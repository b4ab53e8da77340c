"""Objects against the schema of their definition."""
