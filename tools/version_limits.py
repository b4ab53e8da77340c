"""Versions in which resources and types exist, for the tools that make tables from the facts of an API.

The facts list what the newest version has, and for each older one what it removed and added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

Limits = dict[str, str]


def limits(
    facts: Path, section: str, newest: Iterable[str], name: Callable[[Any], str] = str
) -> dict[str, Limits]:
    """`since` and `until` of everything that does not exist in all versions.

    `section` of versions.json lists the differences, `newest` names what the newest version has.
    """
    versions = json.loads((facts / "versions.json").read_text())
    order = sorted(versions, key=lambda text: [int(number) for number in text.split(".")], reverse=True)
    present = {order[0]: set(newest)}
    for newer, older in pairwise(order):
        change = versions[older][section]
        present[older] = present[newer] - set(map(name, change["removed"])) | set(map(name, change["added"]))
    order.reverse()
    found: dict[str, Limits] = {}
    for each in sorted(set().union(*present.values())):
        has = [each in present[version] for version in order]
        first, last = has.index(True), len(has) - has[::-1].index(True)
        assert all(has[first:last]), each
        found[each] = {"since": order[first]} if first else {}
        if last < len(order):
            found[each]["until"] = order[last]
    return {each: bounds for each, bounds in found.items() if bounds}
