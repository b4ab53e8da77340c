"""Player of Stages: watches the resources that Stages name, waits for their delays, and carries out their steps."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kubist.api.config import KUBERNETES_VERSION
from kubist.api.object_client import ObjectClient
from kubist.api.resources.resource import Resource
from kubist.cluster.control import staging
from kubist.cluster.control.loop import Loop
from kubist.cluster.simulation.actors import STAGES
from kubist.cluster.simulation.stages import sources
from kubist.cluster.simulation.stages.actions import Actions
from kubist.cluster.simulation.stages.addresses import Addresses
from kubist.cluster.simulation.stages.expressions import Subject
from kubist.cluster.simulation.stages.go_template_evaluation import environment
from kubist.cluster.simulation.stages.limits import StageError
from kubist.cluster.simulation.stages.stage import Lifecycle, Stage
from kubist.cluster.simulation.stages.watcher import is_of_stages
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Collection, Entry

log = logging.getLogger("kubist.stages")

SEED = 0
GOVERNED = ("pods", "nodes", "persistentvolumeclaims")
"""Resources whose objects a controller leaves to Stages."""
REPETITIONS = 10
"""Maximum number of times in a row that a Stage is played for one object without delay. Then it waits for PAUSE."""
PAUSE = 1.0
RETRIED = (409, 429, 500, 503, 504)
"""HTTP codes after which a step is tried again."""


class Ref(NamedTuple):
    """Object in the queue."""

    prefix: str
    key: str


@dataclass(slots=True)
class Job:
    """Stage that is next for one version of an object."""

    revision: int
    lifecycle: Lifecycle
    stage: Stage | None
    due: float
    step: int = 0
    """Number of steps that are done."""
    is_done: bool = False
    missing_node: str = ""
    """Node that a pod waits for."""


@dataclass(slots=True)
class History:
    """Decisions about an object, which make the random numbers of the next one."""

    decisions: int = 0
    last: Stage | None = None
    repetitions: int = 0


class Stages(Loop):
    """Plays the Stages of `--stages` and those that are objects of the server."""

    name = "kwok-stages"
    component = "kwok_controller"
    actor = STAGES
    workers = 8

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        self._started = self.clock.now()
        self._addresses = Addresses(self.client)
        self._actions = Actions(self.client, self.events)
        self._of_files = {stage.name: stage for stage in sources.load(self.config.stages)}
        self._of_objects: dict[str, Stage | None] = {}
        """Stages that are objects, by name. None for an object that cannot be used."""
        self._lifecycles: dict[str, tuple[Resource, Lifecycle]] = {}
        """Resources with Stages, by key prefix."""
        self._unknown: set[tuple[str, str]] = set()
        """Kinds that Stages name but the server does not serve (yet): apiVersion and kind."""
        self._prefixes = {name: self.client.resource(name).prefix for name in GOVERNED}
        self._homeless: dict[str, set[Ref]] = {}
        """Pods by the name of their node, which does not exist."""
        self._jobs: dict[Ref, Job] = {}
        self._histories: dict[Ref, History] = {}

    def follow(self) -> None:
        staging.claim(self.client, self._governs)
        cache = self.client.registry.cache
        cache.followers.add(self)
        loaded = [collection for collection in cache.collections.values() if collection.loaded]
        for collection in loaded:
            if is_of_stages(collection):
                self._read_stages(list(collection.entries.values()))
        self._arrange()

    async def stop(self) -> None:
        staging.release(self.client)
        self.client.registry.cache.followers.discard(self)
        await super().stop()

    # Stages

    def filled(self, collection: Collection) -> None:
        """A collection was loaded: that of a custom resource, which may be Stage itself."""
        if collection.kind.prefix in self._lifecycles:
            self._look_at_all(collection)
        if is_of_stages(collection):
            self._read_stages(list(collection.entries.values()))
            self._arrange()
        elif self._unknown:
            self._arrange()

    def changed(self, collection: Collection, changes: list[Change]) -> None:
        prefix = collection.kind.prefix
        if prefix in self._lifecycles:
            for change in changes:
                entry = change.new or change.old
                assert entry is not None
                self.queue.add(Ref(prefix, entry.key))
        if self._homeless and prefix == self._prefixes["nodes"]:
            for change in changes:
                self._give_home(change)
        if is_of_stages(collection):
            for change in changes:
                if change.new is not None:
                    self._read_stages([change.new])
                elif change.old is not None:
                    self._of_objects.pop(change.old.name, None)
            self._arrange()

    def _look_at_all(self, collection: Collection) -> None:
        for key in collection.entries:
            self.queue.add(Ref(collection.kind.prefix, key))

    def _give_home(self, change: Change) -> None:
        """Queues the pods that are bound to a new node."""
        if change.old is None and change.new is not None:
            for ref in self._homeless.pop(change.new.name, ()):
                self._jobs.pop(ref, None)
                self.queue.add(ref)

    def _read_stages(self, entries: list[Entry]) -> None:
        for entry in entries:
            obj = entry.object()
            stage = self._of_objects.get(entry.name)
            if stage is not None and stage.object.get("spec") == obj.get("spec"):
                continue
            try:
                self._of_objects[entry.name] = Stage(obj)
            except StageError as error:
                self._of_objects[entry.name] = None
                self._complain(obj, "InvalidStage", f"The Stage is not used: {error}")

    def _arrange(self) -> None:
        """Sorts the Stages by resource. Objects of resources whose Stages changed are queued again."""
        stages = {**self._of_files, **self._of_objects}
        by_kind: dict[tuple[str, str], list[Stage]] = {}
        for stage in stages.values():
            if stage is not None:
                by_kind.setdefault((stage.api_version, stage.kind), []).append(stage)
        before, self._lifecycles = self._lifecycles, {}
        unknown = set()
        for (api_version, kind), stages_of_kind in by_kind.items():
            group, _, version = api_version.rpartition("/")
            resource = self.client.find_kind(group, version, kind)
            if resource is None:
                unknown.add((api_version, kind))
                continue
            lifecycle = Lifecycle(stages_of_kind)
            previous = before.get(resource.prefix)
            if previous is not None and previous[1].stages == lifecycle.stages and previous[0] is resource:
                self._lifecycles[resource.prefix] = previous
                continue
            self._lifecycles[resource.prefix] = (resource, lifecycle)
            self._look_at_all(self.client.registry.collection(resource))
        for key in self._jobs:
            if key.prefix not in self._lifecycles:
                self.queue.add(key)
        for api_version, kind in unknown - self._unknown:
            for stage in by_kind[api_version, kind]:
                message = f"The server has no {kind} of {api_version}. The Stage waits for it."
                self._complain(stage.object, "UnknownResource", message)
        self._unknown = unknown
        if any(before.get(prefix) is not self._lifecycles.get(prefix) for prefix in self._prefixes.values()):
            staging.notify(self.client)

    def _complain(self, stage: Object, reason: str, message: str) -> None:
        """Reports a problem of a Stage: as an Event if it is an object of the server, and in the log."""
        name, message = stage["metadata"]["name"], " ".join(message.split())
        if stage["metadata"].get("uid"):
            self.events.emit(stage, "Warning", reason, message)
        log.warning("Stage %s: %s", name, message)

    def _governs(self, resource: str, obj: Object) -> bool:
        """Rule of `staging.governs`."""
        known = self._lifecycles.get(self._prefixes.get(resource, ""))
        return known is not None and known[1].drives(resource, Subject(obj, self.clock.now(), Random(SEED)))

    # Objects

    async def reconcile(self, key: Ref) -> None:
        known = self._lifecycles.get(key.prefix)
        if known is None:
            self._forget(key)
            return
        resource, lifecycle = known
        collection = self.client.registry.collection(resource)
        entry = collection.get(key.key)
        if entry is None:
            self._forget(key)
            if key.prefix == self._prefixes["pods"]:
                namespace, _, name = key.key.removeprefix(key.prefix).rpartition("/")
                self._addresses.release(namespace, name)
            return
        job = self._jobs.get(key)
        obj: Object | None = None
        if job is None or job.revision != entry.revision or job.lifecycle is not lifecycle:
            obj = await self.client.in_version(resource, entry)
            self._end_job(key)
            job = self._jobs[key] = self._plan(key, lifecycle, entry, obj)
        if job.stage is None or job.is_done:
            return
        left = job.due - self.clock.now()
        if left > 0:
            self.queue.add_after(key, left)
            return
        obj = obj or await self.client.in_version(resource, entry)
        await self._play(job, job.stage, resource, entry, obj)

    def _forget(self, key: Ref) -> None:
        self._end_job(key)
        self._histories.pop(key, None)

    def _end_job(self, key: Ref) -> None:
        """Forgets the plan for an object, including a pod's wait for its node."""
        job = self._jobs.pop(key, None)
        if job is None or not job.missing_node:
            return
        pods = self._homeless.get(job.missing_node, set())
        pods.discard(key)
        if not pods:
            self._homeless.pop(job.missing_node, None)

    def _plan(self, key: Ref, lifecycle: Lifecycle, entry: Entry, obj: Object) -> Job:
        """Chooses the next Stage of an object, and its time."""
        now = self.clock.now()
        if key.prefix == self._prefixes["pods"]:
            node = obj["spec"].get("nodeName") or ""
            if not node or self.client.get("nodes", node) is None:
                if node:
                    self._homeless.setdefault(node, set()).add(key)
                return Job(entry.revision, lifecycle, None, now, missing_node=node)
        history = self._histories.setdefault(key, History())
        history.decisions += 1
        subject = Subject(obj, now, Random(f"{SEED} {key.key} {history.decisions}"))
        stage = lifecycle.next(subject)
        if stage is None:
            history.last = None
            return Job(entry.revision, lifecycle, None, now)
        try:
            delay = stage.delay(subject)
        except StageError as error:
            self._complain(stage.object, "FailedDelay", f"{named(obj)}: {error}")
            delay = 0.0
        history.repetitions = history.repetitions + 1 if stage is history.last and delay < PAUSE else 0
        history.last = stage
        if history.repetitions >= REPETITIONS:
            delay = max(delay, PAUSE)
        return Job(entry.revision, lifecycle, stage, now + delay)

    async def _play(self, job: Job, stage: Stage, resource: Resource, entry: Entry, obj: Object) -> None:
        functions = environment(self.clock.now(), self._started, KUBERNETES_VERSION)
        functions |= self._addresses.functions(obj)
        try:
            while job.step < len(stage.steps):
                step = stage.steps[job.step]
                await self._actions.perform(step, resource, entry, obj, functions)
                job.step += 1
                if self._actions.is_deletion(step):
                    self._actions.send_events(stage.steps[job.step :], obj)
                    break
        except StageError as error:
            self._complain(stage.object, "FailedStage", f"{named(obj)}: {error}")
        except APIError as error:
            if error.code in RETRIED:
                raise
            if error.code != 404:
                self._complain(stage.object, "FailedStage", f"{named(obj)}: {error.message}")
        job.is_done = True


def named(obj: Object) -> str:
    metadata = obj["metadata"]
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {where}{metadata['name']}"
