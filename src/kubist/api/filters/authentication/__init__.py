"""Authentication: client certificates, tokens, OpenID Connect, front proxies."""
