"""Kinds of autoscaling: who changes the replicas of workloads."""
