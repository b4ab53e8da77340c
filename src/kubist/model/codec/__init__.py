"""Representations of an object: JSON, YAML, protobuf, Table, PartialObjectMetadata, and content negotiation."""
