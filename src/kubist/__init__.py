"""Kubist: the Kubernetes API server as a Python package."""

__version__ = "0.1.0"
