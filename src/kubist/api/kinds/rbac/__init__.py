"""Kinds of rbac.authorization.k8s.io. The authorizer that evaluates them is in `kubist.api.filters`."""
