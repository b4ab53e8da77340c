"""TLS: contexts of servers and clients, certificates, cipher suites."""
