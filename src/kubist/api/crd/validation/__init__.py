"""Validation of custom resources against the OpenAPI schema of their CRD."""
