"""Well-known names of objects."""

from __future__ import annotations

NODE_LEASES = "kube-node-lease"
"""Namespace of the leases that kubelets renew."""
