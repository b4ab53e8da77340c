"""Kinds of metrics.k8s.io, which a server with simulated pods has."""
