"""Rules of one role, parsed once and indexed by resource and verb."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from kubist.base.caching import BoundedCache
from kubist.base.turns import Turns
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry

STEP = 64
"""Rules that are handled between two looks at the clock."""
PAIRS = 64
"""Maximum number of pairs of a resource and a verb that one rule adds to the index of its role. A rule with more is
compared with each question, because the index could get much larger than the role."""
QUESTIONS = 1024
"""Maximum number of questions whose matches a role caches."""

Question = tuple[str, ...]
"""Verb, and either group, resource and subresource, or the path."""


class Rule:
    """A PolicyRule in a form for fast checks. `said` is the original rule, for reviews and the escalation check."""

    __slots__ = ("groups", "names", "resources", "said", "urls", "verbs")

    def __init__(self, said: Object) -> None:
        self.said = said
        self.verbs = frozenset(said.get("verbs") or ())
        self.groups = frozenset(said.get("apiGroups") or ())
        self.resources = frozenset(said.get("resources") or ())
        self.names = frozenset(said.get("resourceNames") or ())
        self.urls = tuple(said.get("nonResourceURLs") or ())

    def allows(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule covers the verb and resource. The caller checks `names` (empty: all)."""
        if not ("*" in self.verbs or verb in self.verbs):
            return False
        if not ("*" in self.groups or group in self.groups):
            return False
        resources = self.resources
        if "*" in resources:
            return True
        if not subresource:
            return resource in resources
        return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources

    def allows_path(self, verb: str, path: str) -> bool:
        if not ("*" in self.verbs or verb in self.verbs):
            return False
        return any(
            url == path or (url.endswith("*") and path.startswith(url.rstrip("*"))) for url in self.urls
        )


class Match(NamedTuple):
    """Objects for which a role allows a verb on a resource or path: all, or those with certain names."""

    everything: bool
    names: frozenset[str]


NOTHING = Match(False, frozenset())
EVERYTHING = Match(True, frozenset())


class Needs:
    """Values of rules that somebody wants to grant. Only rules that share some of them can cover the wanted rules."""

    def __init__(self, rules: Iterable[Object]) -> None:
        self.verbs, self.groups, self.resources = {"*"}, {"*"}, {"*"}
        self.names: set[str] = set()
        self.urls = False
        for rule in rules:
            self.verbs.update(rule.get("verbs") or ())
            self.groups.update(rule.get("apiGroups") or ())
            self.names.update(rule.get("resourceNames") or ())
            self.urls |= bool(rule.get("nonResourceURLs"))
            for resource in rule.get("resources") or ():
                self.resources.add(resource)
                _, slash, subresource = resource.partition("/")
                if slash:
                    self.resources.add(f"*/{subresource}")

    def include(self, rule: Rule) -> bool:
        if rule.verbs.isdisjoint(self.verbs):
            return False
        if self.urls and rule.urls:
            return True
        if rule.resources.isdisjoint(self.resources) or rule.groups.isdisjoint(self.groups):
            return False
        return not rule.names or not rule.names.isdisjoint(self.names)


class Role:
    """A stored Role or ClusterRole. `load` parses it on first use."""

    def __init__(self, entry: Entry) -> None:
        self.loaded = False
        self.rules: list[Rule] = []
        self.resource_rules: list[Object] = []
        """The rules of resources as reviews show them."""
        self.non_resource_rules: list[Object] = []
        self._entry: Entry | None = entry
        self._loading = asyncio.Lock()
        self._by_resource: dict[str, dict[str, list[Rule]]] = {}
        """Rules by resource and verb. Those with too many pairs stand below "*", which every question looks at."""
        self._by_verb: dict[str, list[Rule]] = {}
        """Rules of non-resource URLs, in the same way."""
        self._names: set[str] = set()
        """All names to which rules of resources are limited."""
        self._all_limited = True
        """Whether every rule of resources is limited to names."""
        self._matches: BoundedCache[Question, Match] = BoundedCache(entries=QUESTIONS, key_length=256)

    async def load(self, turns: Turns) -> None:
        """Parses and indexes the rules, in turns."""
        async with self._loading:
            entry = self._entry
            if entry is None:
                return
            self.rules, self.resource_rules, self.non_resource_rules = [], [], []
            self._by_resource, self._by_verb = {}, {}
            self._names, self._all_limited = set(), True
            for place, said in enumerate(entry.object().get("rules") or ()):
                self._add(Rule(said))
                if place % STEP == 0:
                    await turns.pause()
            self._entry = None
            self.loaded = True

    def _add(self, rule: Rule) -> None:
        said = rule.said
        self.rules.append(rule)
        if rule.resources:
            self.resource_rules.append(_select(said, "apiGroups", "resources", "resourceNames"))
            self._names |= rule.names
            self._all_limited &= bool(rule.names)
        if rule.urls:
            self.non_resource_rules.append(_select(said, "nonResourceURLs"))
            for verb in rule.verbs if len(rule.verbs) <= PAIRS else ("*",):
                self._by_verb.setdefault(verb, []).append(rule)
        is_narrow = len(rule.resources) * len(rule.verbs) <= PAIRS
        for resource in rule.resources if is_narrow else ("*",):
            by_verb = self._by_resource.setdefault(resource, {})
            for verb in rule.verbs if is_narrow else ("*",):
                by_verb.setdefault(verb, []).append(rule)

    def known(self, question: Question) -> Match | None:
        """Cached match."""
        return self._matches.get(question)

    def forget(self) -> None:
        """Drops the cached matches."""
        self._matches.clear()

    async def match(self, question: Question, turns: Turns) -> Match:
        """Objects for which the role allows the request."""
        if len(question) == 2:
            match = await self._match_path(question, turns)
        else:
            match = await self._match_resource(question, turns)
        self._matches[question] = match
        return match

    async def _match_resource(self, question: Question, turns: Turns) -> Match:
        verb, group, resource, subresource = question
        names: set[str] = set()
        spelled = (f"{resource}/{subresource}", f"*/{subresource}") if subresource else (resource,)
        place = 0
        for rules in self._indexed({"*", *spelled}, {"*", verb}):
            for rule in rules:
                if rule.allows(verb, group, resource, subresource):
                    if not rule.names:
                        return EVERYTHING
                    names |= rule.names
                place += 1
                if place % STEP == 0:
                    await turns.pause()
        return Match(False, frozenset(names)) if names else NOTHING

    async def _match_path(self, question: Question, turns: Turns) -> Match:
        verb, path = question
        for key in {"*", verb}:
            for rule in self._by_verb.get(key, ()):
                if rule.allows_path(verb, path):
                    return EVERYTHING
                await turns.pause()
        return NOTHING

    def _indexed(self, resources: Iterable[str], verbs: Iterable[str]) -> Iterator[list[Rule]]:
        for resource in resources:
            by_verb = self._by_resource.get(resource)
            if by_verb is not None:
                for verb in verbs:
                    if verb in by_verb:
                        yield by_verb[verb]

    async def relevant(self, needs: Needs, turns: Turns) -> list[Object]:
        """Rules that may cover some of the wanted rules, as reviews show them."""
        if self._all_limited and not needs.urls and needs.names.isdisjoint(self._names):
            return []
        if len(needs.resources) * len(needs.verbs) > len(self.rules):
            lists = [self.rules]
        else:
            lists = list(self._indexed(needs.resources, needs.verbs))
            if needs.urls:
                lists += [self._by_verb[verb] for verb in needs.verbs if verb in self._by_verb]
        rules: list[Object] = []
        seen: set[Rule] = set()
        for place, rule in enumerate(chain.from_iterable(lists)):
            if rule not in seen and needs.include(rule):
                seen.add(rule)
                if rule.resources:
                    rules.append(_select(rule.said, "apiGroups", "resources", "resourceNames"))
                if rule.urls:
                    rules.append(_select(rule.said, "nonResourceURLs"))
            if place % STEP == 0:
                await turns.pause()
        return rules


def _select(rule: Object, *fields: str) -> Object:
    """Fields of a rule that a review shows. Most rules have no others."""
    selected = {name: rule[name] for name in ("verbs", *fields) if rule.get(name)}
    return rule if list(rule) == list(selected) else selected
