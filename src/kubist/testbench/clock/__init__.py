"""Clock of a server that a test moves."""
