"""HTTP/2 (RFC 9113): connections, frames, header compression, and streams."""
