"""Refusals of nodes, and the message that kube-scheduler makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Refusal(NamedTuple):
    """Reasons of one plugin against a node. `resolvable`: the pod might fit if other pods were gone."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = True


def summary(nodes: int, refusals: Iterable[Refusal]) -> str:
    """Message about nodes that were all refused: how often each reason occurs."""
    counts = Counter(reason for refusal in refusals for reason in refusal.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}." if listed else f"0/{nodes} nodes are available:"
