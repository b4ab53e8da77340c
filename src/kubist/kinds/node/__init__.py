"""Kinds of node.k8s.io: ways to run containers."""
