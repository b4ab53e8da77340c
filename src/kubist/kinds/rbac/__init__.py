"""Kinds of rbac.authorization.k8s.io. What they permit is decided in the authorization filter."""
