"""Fault: a rule in use, with its counts."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from weakref import WeakSet

import orjson

from kubist.api.resources.context import Context
from kubist.api.verbs.watch import Watcher
from kubist.model.meta.object import Object
from kubist.testbench.faults.rule import ACTIONS, COMPANIONS, FaultRule
from kubist.testbench.faults.watch_faults import FaultyWriter, faulty_writer

MARK = "kubist.io/faults"
"""Audit annotation of a request with the rules that acted on it, as JSON."""


class Fault:
    """One rule of a server. `spec` is the rule as it was given."""

    def __init__(self, id_: str, spec: Object, rule: FaultRule, stale_version: int) -> None:
        self.id = id_
        self.spec = spec
        self.rule = rule
        names = {*ACTIONS, *COMPANIONS} - {"seed"}
        self._actions = {name: value for name, value in spec.items() if name in names and value is not None}
        self.stale_version = stale_version
        """Resource version of stale reads."""
        self.matches = 0
        """Requests that matched, whether the rule acted on them or not."""
        self.hits = 0
        """Requests and watches on which the rule acted."""
        self.spared = 0
        """Requests of the test's own helpers that matched."""
        self.removed = asyncio.Event()
        self._chances = Random(rule.seed)
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
        times = self.rule.times
        return bool(times) and self.hits + self._reserved + self._to_cut() >= times

    def _to_cut(self) -> int:
        """Open watches that this fault is going to cut."""
        return sum(
            isinstance(found.writer, FaultyWriter) and found.writer.is_to_cut(self) for found in self.watchers
        )

    def counts(self) -> bool:
        """Counts a matching request. Returns whether the rule acts on it."""
        rule = self.rule
        if self.is_used_up or self.removed.is_set():
            return False
        self.matches += 1
        if rule.nth:
            return self.matches == rule.nth
        if rule.every:
            return self.matches % rule.every == 0
        return rule.probability is None or self._chances.random() < rule.probability

    def hit(self, ctx: Context) -> None:
        """Counts a request or a watch on which the rule acts, and marks it for recordings and the audit log."""
        self.hits += 1
        marks = acted_on(ctx)
        marks.append({"id": self.id, **self._actions})
        ctx.audit_annotations[MARK] = orjson.dumps(marks).decode()

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
        rule = self.rule
        self.watchers.add(watcher)
        if rule.withhold_bookmarks:
            watcher.withholds_bookmarks = True
        if rule.pause:
            writer.pause(self, rule.pause)
        if rule.delay_events:
            writer.delay(self, rule.delay_events)
        if rule.cut_after is not None:
            writer.cut(self, rule.cut_after, partial(self.hit, watcher.ctx))
        else:
            self.hit(watcher.ctx)

    def remove(self) -> None:
        """Ends the fault: lets held requests and events go."""
        self.removed.set()
        for watcher in self.watchers:
            if isinstance(watcher.writer, FaultyWriter):
                watcher.writer.release(self)


def acted_on(ctx: Context) -> list[Object]:
    """Id and actions of each rule that acted on a request."""
    marks = ctx.audit_annotations.get(MARK)
    return list(orjson.loads(marks)) if marks is not None else []
