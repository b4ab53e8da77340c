"""Validation and helpers that several kinds share."""
