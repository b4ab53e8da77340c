"""Kinds of apps: workloads that keep pods running, and their history."""
