"""JSON text: parsing, encoding, syntax errors in Go's words, and complaints about unknown and duplicate fields."""
