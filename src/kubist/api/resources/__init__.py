"""Resources: names and paths, the strategy of each kind, and the context of a request."""
