"""Replay of a recording or audit log against another server."""
