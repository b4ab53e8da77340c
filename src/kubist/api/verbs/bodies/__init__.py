"""Request bodies: decoding, the kinds of each scheme, and the empty values of a body."""
