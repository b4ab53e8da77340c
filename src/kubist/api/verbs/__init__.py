"""Verbs, one module each. A verb never knows a kind by name."""
