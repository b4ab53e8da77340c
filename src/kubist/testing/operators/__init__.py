"""Operators under test: runs kopf operators against a cluster, in the test process or as processes of their own."""
