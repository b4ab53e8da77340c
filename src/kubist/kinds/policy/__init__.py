"""Kinds of policy: how many pods may be disrupted at once."""
