"""HTTP/1.1 (RFC 9112): connections, requests, heads of responses, and streams."""
