"""Webhooks: the client that posts reviews, and the validation of a clientConfig."""
