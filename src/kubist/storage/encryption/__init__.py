"""Encryption at rest: a `Store` that wraps another store, with kube-apiserver's configuration file and storage
formats."""
