"""Kinds of authentication.k8s.io: reviews of a user's identity. They are computed and not stored."""
