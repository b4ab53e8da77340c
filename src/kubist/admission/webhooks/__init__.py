"""Admission webhooks: which are called for a request, what they are sent, and what becomes of their answers."""
