"""Recordings of requests and of the changes that they made."""
