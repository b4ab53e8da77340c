"""References to objects in kubectl's forms: `pod/web`, `deployments.apps/web`, and `pods -l app=web` for several."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from urllib.parse import urlencode

from kubist.api.resources.resource import Resource, Resources
from kubist.api.resources.resource import path_of as path_of
from kubist.base.hints import did_you_mean
from kubist.model.meta.object import Object

__tracebackhide__ = True

Reference = str | Object
"""`pod/web`, or an object with apiVersion, kind and name."""
OPTIONS = {
    "-l": "label_selector",
    "--selector": "label_selector",
    "--field-selector": "field_selector",
    "-n": "namespace",
    "--namespace": "namespace",
}
"""Options of kubectl with a value."""
EVERYWHERE = ("-A", "--all-namespaces")


@dataclass(slots=True)
class Selection:
    """Objects of a kind, such as `pods -l app=web`."""

    kind: str
    namespace: str | None
    """None: all namespaces."""
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> str:
        """Query of the URL that lists the objects."""
        parameters = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        query = urlencode({name: value for name, value in parameters.items() if value})
        return f"?{query}" if query else ""


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
            known = {word for each in resources for word in (each.resource, each.singular, each.kind.lower())}
            hint = did_you_mean(plain, known)
        raise LookupError(f'there is no resource "{name}"{hint}')
    return min(matches, key=lambda resource: (bool(resource.group), not resource.preferred))


def split(reference: str) -> tuple[str, str]:
    """`pod/web` as (`pod`, `web`)."""
    kind, slash, name = reference.partition("/")
    if not slash or not name:
        raise ValueError(f"{reference!r} is not of the form kind/name, such as pod/web")
    return kind, name


def locate(resources: Resources, reference: Reference, namespace: str) -> tuple[Resource, str, str]:
    """Resource, namespace and name of an object. The namespace of an object wins over the given one."""
    if isinstance(reference, str):
        kind, name = split(reference)
        return resource_of(resources, kind), namespace, name
    version, kind = reference.get("apiVersion"), reference.get("kind", "")
    metadata = reference.get("metadata") or {}
    if not version or not kind or not metadata.get("name"):
        raise ValueError("an object that stands for its name needs apiVersion, kind and metadata.name")
    for resource in resources:
        if resource.api_version == version and resource.kind == kind:
            return resource, metadata.get("namespace") or namespace, metadata["name"]
    raise LookupError(f"{version} {kind} is not served")


def is_selection(reference: Reference) -> bool:
    """Whether a reference is for several objects: it names no object, or has options."""
    return isinstance(reference, str) and ("/" not in reference or " " in reference.strip())


def select(reference: str, namespace: str | None) -> Selection:
    """`pods -l app=web` as a selection. Options in the text win over the given namespace."""
    kind, *words = shlex.split(reference) or [""]
    selection = Selection(kind, namespace)
    while words:
        word = words.pop(0)
        if word in EVERYWHERE:
            selection.namespace = None
            continue
        name, equals, value = word.partition("=")
        if name.startswith("-l") and name != "-l":
            name, value, equals = "-l", word[2:].removeprefix("="), "="
        if name not in OPTIONS:
            hint = did_you_mean(name, (*OPTIONS, *EVERYWHERE)) or f"; it may have {', '.join(OPTIONS)} and -A"
            raise ValueError(f'"{reference}" has an unknown part "{word}"{hint}')
        if not equals:
            if not words:
                raise ValueError(f'"{reference}" has no value after {word}')
            value = words.pop(0)
        setattr(selection, OPTIONS[name], value)
    return selection
