"""Cluster role aggregation: a role with an aggregationRule gets the rules of all roles that it selects."""

from __future__ import annotations

from kubist.control.loop import Loop, entry_of
from kubist.meta.object import Object
from kubist.meta.selectors import label_selector
from kubist.storage.cache import Change, Entry

GROUP = "rbac.authorization.k8s.io"


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
        rules: list[Object] = []
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            matches = label_selector(selector).matches
            words = [word.encode() for word in selector.get("matchLabels") or ()]
            for entry in list(self.client.collection("clusterroles", group=GROUP).entries.values()):
                if not all(word in entry.tail for word in words):
                    continue  # most roles are not parsed
                if entry.name != key and matches(entry.labels):
                    rules += [rule for rule in entry.object().get("rules") or () if rule not in rules]
        if rules == (role.get("rules") or []):
            return

        def edit(held: Object) -> Object:
            held["rules"] = rules or None
            return held

        await self.client.update("clusterroles", key, "", edit, group=GROUP)


def _matters(old: Entry, new: Entry) -> bool:
    before, after = old.object(), new.object()
    return old.labels != new.labels or any(
        before.get(part) != after.get(part) for part in ("rules", "aggregationRule")
    )
