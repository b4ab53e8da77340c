"""Kinds of admissionregistration.k8s.io. What they do to requests is in the admission room."""
