"""Audit: policy, events, log file and webhook."""
