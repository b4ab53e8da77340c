"""JSON text: bytes to values and back, syntax errors in the words of Go, and complaints about single fields."""
