"""Stored objects of every resource: reads from the watch cache, compare-and-swap writes to the store."""
