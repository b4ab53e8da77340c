"""Kinds of authorization.k8s.io: reviews of a user's permissions. They are computed and not stored."""
