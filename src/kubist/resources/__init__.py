"""Resources: their names and paths, the strategy of each kind, and the context that a strategy gets."""
