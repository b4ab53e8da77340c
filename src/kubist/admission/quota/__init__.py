"""Quota: what each kind of object uses, which quotas it counts against, and the books that are kept of it."""
