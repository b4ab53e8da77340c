"""Representations of an object: JSON, YAML, protobuf, Table, metadata only, and their negotiation."""
