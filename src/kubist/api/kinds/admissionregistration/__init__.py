"""Kinds of admissionregistration.k8s.io. The plugins that enforce them are in `kubist.api.admission`."""
