"""What happens to a request: the handler chain, the verbs, admission, and the rules of every kind."""
