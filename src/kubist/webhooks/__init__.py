"""Webhooks: the client that posts reviews to them, and the rules of a clientConfig."""
