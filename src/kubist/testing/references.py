"""References to objects in kubectl's forms: `pod/web`, `deployments.apps/web`, `deploy/web`."""

from __future__ import annotations

from kubist.hints import did_you_mean
from kubist.resources.paths import path_of as path_of
from kubist.resources.resource import Resource, Resources

__tracebackhide__ = True


def resource_of(resources: Resources, name: str) -> Resource:
    """Resource of a name in any of kubectl's forms. Core resources win over others."""
    plain, _, group = name.lower().partition(".")
    matches = [
        resource
        for resource in resources
        if plain in (resource.resource, resource.singular, resource.kind.lower(), *resource.short_names)
        and (not group or resource.group == group)
    ]
    if not matches:
        if "/" in name:
            hint = f'; did you mean get("{name}")?'
        else:
            known = {word for held in resources for word in (held.resource, held.singular, held.kind.lower())}
            hint = did_you_mean(plain, known)
        raise LookupError(f'there is no resource "{name}"{hint}')
    return min(matches, key=lambda resource: (bool(resource.group), not resource.preferred))


def split(reference: str) -> tuple[str, str]:
    """`pod/web` as (`pod`, `web`)."""
    kind, slash, name = reference.partition("/")
    if not slash or not name:
        raise ValueError(f"{reference!r} is not of the form kind/name, such as pod/web")
    return kind, name
