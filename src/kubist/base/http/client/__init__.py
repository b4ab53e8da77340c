"""Client for other servers: calls on pooled connections, responses, redirects."""
