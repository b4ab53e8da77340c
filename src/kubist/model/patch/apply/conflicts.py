"""Apply conflicts: fields owned by other managers, and the error message for the client."""

from __future__ import annotations

from kubist.base.jsontext.quoting import quoted
from kubist.model.patch.apply import paths, sets
from kubist.model.patch.apply.managers import Identity
from kubist.model.patch.apply.sets import Set
from kubist.model.patch.errors import ApplyConflict

Conflicts = dict[Identity, Set]


def without(conflicts: Conflicts, allowed: Set) -> Conflicts:
    """Conflicts without the fields in `allowed`."""
    rest = {identity: sets.difference(fields, allowed) for identity, fields in conflicts.items()}
    return {identity: fields for identity, fields in rest.items() if fields}


def error(conflicts: Conflicts) -> ApplyConflict:
    by_manager = [
        (_named(identity), [paths.format_path(path) for path in sets.paths(conflicts[identity])])
        for identity in sorted(conflicts, key=lambda identity: identity.text)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, fields in by_manager
        for field in fields
    ]
    if len(causes) == 1:
        what = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [
            "\n".join([f"conflicts with {manager}:", *(f"- {field}" for field in fields)])
            for manager, fields in by_manager
        ]
        what = f"{len(causes)} conflicts: " + "\n".join(lines)
    return ApplyConflict(f"Apply failed with {what}", causes)


def _named(identity: Identity) -> str:
    named = quoted(identity.manager)
    if identity.subresource:
        named += f" with subresource {quoted(identity.subresource)}"
    if identity.operation == "Update":
        named += f" using {identity.api_version}"
    return named
