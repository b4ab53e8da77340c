"""Rules as sets of permissions: which of some rules are not covered by others.

The bootstrap adds what its roles lack; the check against escalation refuses what the caller lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubist.kinds.strategy import Object


def uncovered(owner: list[Object], wanted: list[Object]) -> list[Object]:
    """Permissions of `wanted`, each a rule of one verb on one thing, that no rule of `owner` gives."""
    return [
        permission
        for rule in wanted
        if not any(covers(other, rule) for other in owner)
        for permission in permissions(rule)
        if not any(covers(other, permission) for other in owner)
    ]


def permissions(rule: Object) -> Iterator[Object]:
    """A rule as rules that allow one thing each."""
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                single = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                if not rule.get("resourceNames"):
                    yield single
                for name in rule.get("resourceNames") or ():
                    yield {**single, "resourceNames": [name]}
    for url in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def covers(owner: Object, rule: Object) -> bool:
    """Whether everything that `rule` allows is allowed by `owner` alone."""
    names, own_names = rule.get("resourceNames") or (), owner.get("resourceNames") or ()
    return (
        _has_all(owner.get("verbs") or (), rule.get("verbs") or ())
        and _has_all(owner.get("apiGroups") or (), rule.get("apiGroups") or ())
        and all(_covers_resource(owner.get("resources") or (), r) for r in rule.get("resources") or ())
        and all(_covers_url(owner.get("nonResourceURLs") or (), u) for u in rule.get("nonResourceURLs") or ())
        and (not own_names or (bool(names) and set(own_names).issuperset(names)))
    )


def _has_all(owned: Iterable[str], wanted: Iterable[str]) -> bool:
    return "*" in owned or set(owned).issuperset(wanted)


def _covers_resource(owned: Iterable[str], resource: str) -> bool:
    if "*" in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def _covers_url(owned: Iterable[str], url: str) -> bool:
    return any(own == url or (own.endswith("*") and url.startswith(own.rstrip("*"))) for own in owned)
