"""RBAC rules as sets of permissions: computes the permissions that other rules do not cover.

Bootstrap adds the permissions that its roles lack. The escalation check rejects permissions that the user lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import islice
from operator import and_
from typing import Any

from kubist.model.meta.object import Object

MOST = 5_000
"""Maximum number of missing permissions listed. A role of 3 MB can grant more than 10^12 permissions."""
STEPS = 50_000
"""Maximum number of combinations checked for a rule. A rule that needs more counts as not covered."""
MOST_HELD = 4_096
"""Maximum number of a user's rules that are considered, after rules that differ in one field are merged."""
FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def uncovered(owner: list[Object], rules: list[Object]) -> list[Object]:
    """Permissions of `rules` that no rule of `owner` grants, each as a rule with single values. Empty only if all
    are granted. At most MOST are listed."""
    grants = Held(owner)
    gaps: list[Object] = []
    for rule in rules:
        if len(gaps) >= MOST:
            break
        if (example := grants.lacks(rule)) is None:
            continue
        missing = (one for one in islice(permissions(rule), STEPS) if grants.lacks(one) is not None)
        gaps += list(islice(missing, MOST - len(gaps))) or [example]
    return gaps


def permissions(rule: Object) -> Iterator[Object]:
    """Rules with single values that together equal the rule."""
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


class Held:
    """Rules of a user, indexed by their values. A set of rules is an integer with one bit per rule."""

    def __init__(self, rules: Iterable[Object]) -> None:
        self._masks: dict[str, dict[str, int]] = {field: {} for field in FIELDS}
        self._url_prefixes: dict[str, int] = {}
        self._unnamed = 0
        for index, rule in enumerate(_merged(rules)[:MOST_HELD]):
            bit = 1 << index
            for field, masks in self._masks.items():
                for value in rule.get(field) or ():
                    masks[value] = masks.get(value, 0) | bit
            for url in rule.get("nonResourceURLs") or ():
                if url.endswith("*"):
                    prefix = url.rstrip("*")
                    self._url_prefixes[prefix] = self._url_prefixes.get(prefix, 0) | bit
            if not rule.get("resourceNames"):
                self._unnamed |= bit
        self._prefix_lengths = sorted({len(prefix) for prefix in self._url_prefixes})

    def lacks(self, rule: Object) -> Object | None:
        """A permission of `rule` that no held rule grants; None if all are granted."""
        verbs = self._alike(rule, "verbs", self._named)
        names = self._alike(rule, "resourceNames", self._name) or {self._unnamed: None}
        resources = self._alike(rule, "resources", self._resource)
        groups = self._alike(rule, "apiGroups", self._named)
        if groups and resources and verbs:
            things = [
                ("apiGroups", groups),
                ("resources", resources),
                ("verbs", verbs),
                ("resourceNames", names),
            ]
            if (gap := _Search(things).missing()) is not None:
                return gap
        urls = self._alike(rule, "nonResourceURLs", self._url)
        if not urls or not verbs:
            return None
        return _Search([("nonResourceURLs", urls), ("verbs", verbs), ("", {self._unnamed: None})]).missing()

    def _alike(self, rule: Object, field: str, mask: Callable[[str, str], int]) -> dict[int, str | None]:
        """One value for each set of rules that match it. Values that match the same rules need no second check."""
        values: dict[int, str | None] = {}
        for value in rule.get(field) or ():
            values.setdefault(mask(field, value), value)
        return values

    def _named(self, field: str, value: str) -> int:
        masks = self._masks[field]
        return masks.get(value, 0) | masks.get("*", 0)

    def _name(self, field: str, value: str) -> int:
        return self._masks[field].get(value, 0) | self._unnamed

    def _resource(self, field: str, value: str) -> int:
        mask = self._named(field, value)
        _, slash, subresource = value.partition("/")
        return mask | self._masks[field].get(f"*/{subresource}", 0) if slash else mask

    def _url(self, field: str, value: str) -> int:
        mask = self._masks[field].get(value, 0)
        for length in self._prefix_lengths:
            if length > len(value):
                break
            mask |= self._url_prefixes.get(value[:length], 0)
        return mask


class _Search:
    """Search for a combination of values, one of each field, that no rule matches as a whole."""

    def __init__(self, fields: list[tuple[str, dict[int, str | None]]]) -> None:
        self._fields = fields
        self._steps = 0
        self._always = [-1]
        for _, values in reversed(fields):
            self._always.append(reduce(and_, values, self._always[-1]))
        self._always.reverse()

    def missing(self, level: int = 0, rules: int = -1) -> Object | None:
        """Missing combination as a rule. `rules` match the values chosen at earlier levels."""
        if rules & self._always[level]:
            return None
        if level == len(self._fields):
            return {}
        field, values = self._fields[level]
        for mask, value in values.items():
            self._steps += 1
            gap = self.missing(level + 1, rules & mask)
            if gap is not None or self._steps > STEPS:
                return {field: [value], **(gap or {})} if value is not None else gap or {}
        return None


def _merged(rules: Iterable[Object]) -> list[Object]:
    """Fewer rules with the same permissions. Rules that differ in one field are merged."""
    merged = [{field: tuple(dict.fromkeys(rule.get(field) or ())) for field in FIELDS} for rule in rules]
    for field in FIELDS:
        joined: dict[tuple[Any, ...], dict[str, None]] = {}
        for rule in merged:
            # A rule without names applies to all names, so it is not merged with a rule that has names.
            key = tuple(rule[other] for other in FIELDS if other != field), bool(rule[field])
            joined.setdefault(key, {}).update(dict.fromkeys(rule[field]))
        merged = []
        for (others, _), values in joined.items():
            rest = dict(zip((other for other in FIELDS if other != field), others, strict=True))
            merged.append({**rest, field: tuple(values)})
    return merged
