"""Simulated nodes, scheduler and kubelet: pods behave as if they ran, but no container runs."""

from __future__ import annotations

from kubist.control.loop import Loop
from kubist.simulation.kubelet import Kubelet
from kubist.simulation.nodes import Nodes
from kubist.simulation.scheduler import Scheduler


def loops() -> list[type[Loop]]:
    return [Nodes, Scheduler, Kubelet]
