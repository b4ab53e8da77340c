"""Mutating and validating admission: plugins, webhooks, policies."""
