"""Policies in CEL: the values that expressions see, parameters, bindings, and mutations."""
