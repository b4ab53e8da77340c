"""Kinds of policy: PodDisruptionBudget."""
