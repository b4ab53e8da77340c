"""Keys, bytes and revisions: the store contract, its two implementations, and the cache above them."""
