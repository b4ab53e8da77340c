"""Simulated nodes, scheduler and kubelet: pods behave as if they ran, but no container runs."""

from __future__ import annotations

from kubist.api.config import Config
from kubist.cluster.control.loop import Loop
from kubist.cluster.control.node_lifecycle import NodeLifecycle
from kubist.cluster.control.orphaned_pods import OrphanedPods
from kubist.cluster.control.taint_eviction import TaintEviction
from kubist.cluster.simulation.kubelet import Kubelet
from kubist.cluster.simulation.nodes import Nodes
from kubist.cluster.simulation.scheduler import Scheduler
from kubist.cluster.simulation.stages.watcher import StageWatcher


def loops(config: Config) -> list[type[Loop]]:
    """Simulated components. Without workloads, the scheduler and the controllers run elsewhere. ValueError if the
    files with Stages cannot be used."""
    if config.stages:
        # Saves start-up time: few servers have Stages.
        from kubist.cluster.simulation.stages import sources

        sources.load(config.stages)
    if not config.workloads:
        return [StageWatcher, Nodes, Kubelet]
    return [NodeLifecycle, TaintEviction, OrphanedPods, StageWatcher, Nodes, Scheduler, Kubelet]
