"""Stored objects of every resource: read from the cache, written to the store by compare-and-swap."""
