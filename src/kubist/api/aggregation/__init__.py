"""API aggregation: this server proxies group-versions to other API servers (backends)."""
