"""Admission policies in CEL: values of expressions, parameters, bindings and mutations."""
