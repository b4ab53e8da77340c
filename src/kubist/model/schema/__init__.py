"""Schema tree of all types, for decoding, defaulting, patches, protobuf and OpenAPI."""
