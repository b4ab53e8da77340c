"""Admission policies in CEL: values of expressions, bindings and parameters."""
