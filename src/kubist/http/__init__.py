"""TLS, HTTP/1.1 and HTTP/2: bytes to requests and answers to bytes. Knows nothing about Kubernetes."""
