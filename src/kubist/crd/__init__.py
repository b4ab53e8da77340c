"""Custom resources: definitions, structural schemas, CEL, conversion."""
