"""The pytest plugin and helpers for people who test against Kubist."""
