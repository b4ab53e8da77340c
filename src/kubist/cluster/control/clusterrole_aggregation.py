"""Cluster role aggregation: a role with an aggregationRule gets the rules of all roles that it selects."""

from __future__ import annotations

import asyncio

import orjson

from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import label_selector
from kubist.storage.cache.cache import Change, Entry

GROUP = "rbac.authorization.k8s.io"
PER_TURN = 20
"""Selectors that are matched with all roles in one turn of the event loop."""


class ClusterRoleAggregation(Loop):
    name = "clusterrole-aggregation"

    def follow(self) -> None:
        self._aggregated: set[str] = set()
        self.watch("clusterroles", self._role_changed, group=GROUP)

    def _role_changed(self, change: Change) -> None:
        name = entry_of(change).name
        if change.new is not None and b'"aggregationRule":' in change.new.tail:
            self._aggregated.add(name)
        else:
            self._aggregated.discard(name)
        if change.old is None or change.new is None or _matters(change.old, change.new):
            for aggregated in self._aggregated:
                self.queue.add(aggregated)

    async def reconcile(self, key: str) -> None:
        role = self.client.get("clusterroles", key, group=GROUP)
        if role is None or not role.get("aggregationRule"):
            return
        rules = await self._selected(key, role["aggregationRule"].get("clusterRoleSelectors") or [])
        if rules == (role.get("rules") or []):
            return

        def edit(current: Object) -> Object:
            current["rules"] = rules or None
            return current

        await self.client.update("clusterroles", key, "", edit, group=GROUP)

    async def _selected(self, key: str, selectors: list[Object]) -> list[Object]:
        """Rules of the roles that the selectors match, each rule once."""
        rules: dict[bytes, Object] = {}
        left = {
            entry.name: entry
            for entry in self.client.collection("clusterroles", group=GROUP).entries.values()
            if entry.name != key
        }
        distinct = {orjson.dumps(selector, option=orjson.OPT_SORT_KEYS): selector for selector in selectors}
        for number, selector in enumerate(distinct.values()):
            if number % PER_TURN == PER_TURN - 1:
                await asyncio.sleep(0)
            matches = label_selector(selector).matches
            for entry in [entry for entry in left.values() if matches(entry.labels)]:
                del left[entry.name]
                for rule in entry.object().get("rules") or ():
                    rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
        return list(rules.values())


def _matters(old: Entry, new: Entry) -> bool:
    before, after = old.object(), new.object()
    return old.labels != new.labels or any(
        before.get(part) != after.get(part) for part in ("rules", "aggregationRule")
    )
