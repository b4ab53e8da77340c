"""Suggestions for kinds that are not served."""

from __future__ import annotations

from kubist.api.resources.resource import Resources
from kubist.base.hints import did_you_mean


def suggest_version(kind: str, resources: Resources) -> str:
    """`; did you mean "apps/v1"?` for an object without apiVersion, or an empty string."""
    served = [resource for resource in resources if resource.kind == kind]
    served.sort(key=lambda resource: (bool(resource.group), not resource.preferred))
    return f'; did you mean "{served[0].api_version}"?' if served else ""


def suggest_kind(api_version: str, kind: str, resources: Resources) -> str:
    """`; did you mean "apps/v1 Deployment"?` for a kind that is not served, or an empty string."""
    known = [f"{resource.api_version} {resource.kind}" for resource in resources]
    same = [entry for entry in known if entry.split()[1] == kind]
    return f'; did you mean "{same[0]}"?' if same else did_you_mean(f"{api_version} {kind}", known)
