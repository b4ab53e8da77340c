"""Taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from kubist.model.meta.object import Object


def tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        if toleration.get("key", "") not in ("", taint["key"]):
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False
