"""Simulated nodes, scheduler and kubelet: pods behave as if they ran, but no container runs."""

from __future__ import annotations

from kubist.api.config import Config
from kubist.control.loop import Loop
from kubist.control.nodelifecycle import NodeLifecycle
from kubist.control.orphanedpods import OrphanedPods
from kubist.control.tainteviction import TaintEviction
from kubist.simulation.kubelet import Kubelet
from kubist.simulation.nodes import Nodes
from kubist.simulation.scheduler import Scheduler
from kubist.simulation.stages.watcher import StageWatcher


def loops(config: Config) -> list[type[Loop]]:
    """Simulated components. Without workloads, the scheduler and the controllers run elsewhere. ValueError if the
    files with Stages cannot be used."""
    if config.stages:
        # Saves start-up time: few servers have Stages.
        from kubist.simulation.stages import sources

        sources.load(config.stages)
    if not config.workloads:
        return [StageWatcher, Nodes, Kubelet]
    return [NodeLifecycle, TaintEviction, OrphanedPods, StageWatcher, Nodes, Scheduler, Kubelet]
