"""Representations of stored objects: JSON, YAML, protobuf and metadata only."""
