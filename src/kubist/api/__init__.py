"""The handler chain, the verbs, admission, and the rules of every kind: everything that happens to a request."""
