"""Rules of admission webhooks from short names: `pods`, `deployments.apps`, `pods/exec`, `*`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubist.api.resources.resource import Resources
from kubist.base.hints import did_you_mean
from kubist.model.meta.object import Object
from kubist.testing import references

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
CONNECTED = ("exec", "attach", "portforward", "proxy")
"""Subresources whose only operation is CONNECT."""


def make_rules(
    names: Sequence[Any],
    operations: Sequence[str] | None,
    versions: Sequence[str],
    scope: str,
    resources: Resources,
) -> list[Object]:
    """One rule for each API group of the named resources."""
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError('a webhook needs resources by name, such as @cluster.validating_webhook("pods")')
    groups: dict[str, list[str]] = {}
    for name in names:
        group, resource = resolve(name, resources)
        groups.setdefault(group, []).append(resource)
    return [
        {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": found,
            "operations": _operations(operations, found),
            "scope": scope,
        }
        for group, found in groups.items()
    ]


def resolve(name: str, resources: Resources) -> tuple[str, str]:
    """Group and resource (with its subresource) of a name. Groups of CRDs that are not served yet are allowed."""
    parent, slash, subresource = name.partition("/")
    if parent == "*":
        return "*", name
    plain, dot, group = parent.partition(".")
    if plain == "*":
        return group, f"*{slash}{subresource}"
    try:
        found = references.resource_of(resources, parent)
    except LookupError:
        if dot and "." in group and not group.endswith("k8s.io"):
            return group, f"{plain}{slash}{subresource}"
        raise
    if slash and subresource != "*" and subresource not in found.subresources:
        hint = did_you_mean(subresource, found.subresources)
        raise LookupError(f'{found.resource} has no subresource "{subresource}"{hint}')
    return found.group, f"{found.resource}{slash}{subresource}"


def _operations(given: Iterable[str] | None, resources: Sequence[str]) -> list[str]:
    if given is None:
        connects = [resource.partition("/")[2] in CONNECTED for resource in resources]
        found = [] if all(connects) else ["CREATE", "UPDATE"]
        return found + (["CONNECT"] if any(connects) else [])
    operations = [given] if isinstance(given, str) else list(given)
    for operation in operations:
        if operation not in (*OPERATIONS, "*"):
            hint = did_you_mean(operation, OPERATIONS)
            raise ValueError(f'there is no operation "{operation}"{hint}')
    return operations
