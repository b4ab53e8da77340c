"""Kinds of scheduling: which pods come first."""
