"""Encryption at rest: a store around the store, with kube-apiserver's configuration file and stored forms."""
