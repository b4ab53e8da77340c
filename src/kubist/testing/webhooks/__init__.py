"""Webhooks of tests: Python functions that a cluster calls over HTTPS for admission, conversion and authorization."""
