"""Patch types: JSON Patch, JSON merge patch, strategic merge patch and server-side apply. Each takes an object
and a patch and returns an object."""
