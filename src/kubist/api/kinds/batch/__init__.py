"""Kinds of batch: work that runs to completion, once or on a schedule."""
