"""Aggregation: group-versions that another server serves, reached through this one."""
