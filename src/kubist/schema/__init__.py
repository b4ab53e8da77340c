"""One schema tree for everything that must know fields: decoding, defaults, patches, protobuf, OpenAPI."""
