"""Fault: a rule in use, with its counts."""

from __future__ import annotations

import asyncio
from random import Random
from weakref import WeakSet

from kubist.bench.fault_rules import Rule
from kubist.bench.watch_faults import FaultyWriter, faulty_writer
from kubist.meta.object import Object
from kubist.verbs.watch import Watcher


class Fault:
    """One rule of a server. `spec` is the rule as it was given."""

    def __init__(self, id_: str, spec: Object, rule: Rule, stale_version: int) -> None:
        self.id = id_
        self.spec = spec
        self.rule = rule
        self.stale_version = stale_version
        """Resource version of stale reads."""
        self.matches = 0
        """Requests that matched, whether the rule acted on them or not."""
        self.hits = 0
        """Requests and watches on which the rule acted."""
        self.spared = 0
        """Requests of the test's own helpers that matched."""
        self.removed = asyncio.Event()
        self._chances = Random(rule.criteria.seed)
        self._reserved = 0
        """Watches that are about to get this fault."""
        self.watchers: WeakSet[Watcher] = WeakSet()
        """Watches that have this fault."""

    def state(self) -> Object:
        return {"id": self.id, **self.spec, "matches": self.matches, "hits": self.hits}

    def summary(self) -> str:
        """The rule in one line, and how many requests matched it."""
        rule = ", ".join(f"{name}={value!r}" for name, value in self.spec.items())
        spared = f"; it spared {self.spared} requests of the test's own helpers" if self.spared else ""
        return f"{rule}; {self.matches} requests matched{spared}"

    @property
    def is_used_up(self) -> bool:
        times = self.rule.criteria.times
        return bool(times) and self.hits + self._reserved + self._to_cut() >= times

    def _to_cut(self) -> int:
        """Open watches that this fault is going to cut."""
        return sum(
            isinstance(found.writer, FaultyWriter) and found.writer.is_to_cut(self) for found in self.watchers
        )

    def counts(self) -> bool:
        """Counts a matching request. Returns whether the rule acts on it."""
        criteria = self.rule.criteria
        if self.is_used_up or self.removed.is_set():
            return False
        self.matches += 1
        if criteria.nth:
            return self.matches == criteria.nth
        if criteria.every:
            return self.matches % criteria.every == 0
        return criteria.probability is None or self._chances.random() < criteria.probability

    def _count_hit(self) -> None:
        self.hits += 1

    # Watches

    def reserve(self) -> None:
        """Counts a watch that is about to start, so that `times` is exact."""
        self._reserved += 1

    def unreserve(self) -> None:
        self._reserved -= 1

    def act_on(self, watcher: Watcher) -> None:
        """Puts this fault on an open watch."""
        writer = faulty_writer(watcher)
        if writer is None or self.removed.is_set():
            return
        actions = self.rule.actions
        self.watchers.add(watcher)
        if actions.withhold_bookmarks:
            watcher.withholds_bookmarks = True
        if actions.pause:
            writer.pause(self, actions.pause)
        if actions.delay_events:
            writer.delay(self, actions.delay_events)
        if actions.cut_after is not None:
            writer.cut(self, actions.cut_after, self._count_hit)
        else:
            self._count_hit()

    def remove(self) -> None:
        """Ends the fault: lets held requests and events go."""
        self.removed.set()
        for watcher in self.watchers:
            if isinstance(watcher.writer, FaultyWriter):
                watcher.writer.release(self)
