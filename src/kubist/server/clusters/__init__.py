"""Many isolated clusters in one process, below /clusters/NAME: life cycle, routing, credentials, limits."""
