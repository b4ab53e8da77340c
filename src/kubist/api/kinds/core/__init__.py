"""Kinds of the core group (v1)."""
