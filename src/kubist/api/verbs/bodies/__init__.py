"""Request bodies: decoding, the kinds that schemes know, and empty values that a body has."""
