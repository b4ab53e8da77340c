"""State of the offline server: objects that exist before the manifests are checked."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import orjson

from kubist.api.crd import definition
from kubist.api.object_client import CONTROLLER_MANAGER
from kubist.api.resources.resource import Resource, path_of
from kubist.api.verbs.bodies import body
from kubist.base import eager_task
from kubist.base.jsontext.errors import DecodeError
from kubist.cluster.control.clusterrole_aggregation import GROUP as RBAC_GROUP
from kubist.cluster.control.clusterrole_aggregation import ClusterRoleAggregation
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry
from kubist.testing.offline import order
from kubist.testing.offline.findings import WARNING, Checked, Report, add_status
from kubist.testing.offline.manifests import Manifest
from kubist.testing.offline.server import APPLY, Answer, OfflineServer

ESTABLISH_SECONDS = 30.0
AGGREGATIONS = 4
"""Number of times that rules are aggregated: a role may select roles that are aggregated themselves."""
SYSTEM_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class State:
    """Writes objects as the administrator."""

    def __init__(self, server: OfflineServer, field_manager: str) -> None:
        self.server = server
        self._field_manager = field_manager
        self._namespaces: set[str] = set()
        self._versions: dict[str, str] = {}
        """resourceVersion that an inserted object had on its own server, by key."""

    def entry(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        return self.server.registry.collection(resource).get(resource.key(namespace, name))

    def has_namespace(self, name: str) -> bool:
        resource = self.server.find("v1", "Namespace")
        assert resource is not None
        return self.entry(resource, "", name) is not None

    async def ensure_namespace(self, name: str) -> None:
        """Creates a namespace if it does not exist, with the service account that a control loop creates there."""
        if name in self._namespaces:
            return
        self._namespaces.add(name)
        if not self.has_namespace(name):
            await self.server.send("POST", "/api/v1/namespaces", orjson.dumps({"metadata": {"name": name}}))
        accounts = self.server.find("v1", "ServiceAccount")
        assert accounts is not None
        if self.entry(accounts, name, "default") is None:
            account = orjson.dumps({"metadata": {"name": "default"}})
            await self.server.send("POST", path_of(accounts, name), account)

    async def ensure_accounts(self) -> None:
        """Creates the default service account of every namespace."""
        for namespace in list(self.server.api.cluster.list("namespaces", None)):
            await self.ensure_namespace(namespace["metadata"]["name"])

    async def apply(self, resource: Resource, namespace: str, name: str, obj: Object) -> Answer:
        """Applies an object of the old state. An object that the server would reject today is stored as it is."""
        metadata = {key: value for key, value in obj["metadata"].items() if key not in SYSTEM_FIELDS}
        obj = {**obj, "metadata": metadata}
        query = f"fieldManager={quote(self._field_manager)}&force=true"
        sent = orjson.dumps(obj)
        answer = await self.server.send(
            "PATCH", path_of(resource, namespace, name), sent, query=query, content_type=APPLY
        )
        if answer.code in (403, 422) and resource.api_version == resource.storage_version:
            if resource.namespaced:
                metadata["namespace"] = namespace
            try:
                decoded = body.decode_parsed(obj, [], body.expected(resource)).object
                resource.strategy.default(decoded)
                await self.insert(resource, decoded)
            except (status.APIError, DecodeError, body.Mistaken):
                return answer
            return Answer(201)
        return answer

    async def insert(self, resource: Resource, obj: Object) -> None:
        """Stores an object of another server unchanged. An existing object of its name is replaced."""
        namespace = obj["metadata"].get("namespace", "")
        if version := obj["metadata"].pop("resourceVersion", ""):
            self._versions[resource.key(namespace, obj["metadata"]["name"])] = version
        entry = self.entry(resource, namespace, obj["metadata"]["name"])
        if entry is None:
            await self.server.registry.insert(resource, namespace, obj)
        else:
            await self.server.registry.replace(resource, entry, obj)

    def is_current(self, resource: Resource, namespace: str, manifest: Manifest) -> bool:
        """Whether a manifest has the resourceVersion that the object had on its own server."""
        version = manifest.metadata.get("resourceVersion")
        return bool(version) and self._versions.get(resource.key(namespace, manifest.name)) == version

    async def restore(self, resource: Resource, namespace: str, name: str, old: Object) -> None:
        """Puts an object back to an earlier version."""
        entry = self.entry(resource, namespace, name)
        if entry is not None:
            await self.server.registry.replace(resource, entry, old)

    async def establish(self, name: str) -> tuple[str, str]:
        """Waits until a CRD is served. Returns reason and message if it cannot be."""
        crds = self.server.find("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert crds is not None
        try:
            async with eager_task.timeout(ESTABLISH_SECONDS):
                while (entry := self.entry(crds, "", name)) is not None:
                    crd = entry.object()
                    if definition.established(crd):
                        break
                    if refusal := _refusal(crd):
                        return refusal
                    await asyncio.sleep(0.001)
        except TimeoutError:
            return "NotEstablished", f"the CRD was not established within {ESTABLISH_SECONDS:g} s"
        return "", ""

    async def aggregate_roles(self) -> None:
        """Fills ClusterRoles that have an aggregationRule, as a control loop does."""
        aggregation = ClusterRoleAggregation(self.server.api.cluster.acting_as(CONTROLLER_MANAGER))
        for _ in range(AGGREGATIONS):
            for role in list(self.server.api.cluster.list("clusterroles", None, group=RBAC_GROUP)):
                if role.get("aggregationRule"):
                    await aggregation.reconcile(role["metadata"]["name"])


def _refusal(crd: Object) -> tuple[str, str] | None:
    """Reason and message of the condition that keeps a CRD from being served; None if it may be served soon."""
    for condition in (crd.get("status") or {}).get("conditions") or ():
        is_final = condition["type"] == "NamesAccepted" or condition.get("reason") == "InvalidCABundle"
        if condition["status"] == "False" and is_final:
            return condition.get("reason", ""), condition.get("message", "")
    return None


def without_webhook(crd: Object) -> Object:
    """The CRD without its conversion webhook, which cannot be called offline."""
    spec = crd.get("spec")
    conversion = spec.get("conversion") if isinstance(spec, dict) else None
    if not isinstance(conversion, dict) or conversion.get("strategy") != "Webhook":
        return crd
    assert isinstance(spec, dict)
    return {**crd, "spec": {**spec, "conversion": {"strategy": "None"}}}


class OldState:
    """Stores the objects of manifests as the old state."""

    def __init__(self, server: OfflineServer, state: State, namespace: str, report: Report) -> None:
        self._server = server
        self._state = state
        self._namespace = namespace
        self._report = report

    async def load(self, manifests: list[Manifest], crds: list[Manifest]) -> list[Object]:
        """Stores the objects, and returns the policies among them, which take effect later. An object that cannot be
        stored gives a warning, and its manifest is checked as a new object. `crds` are those of the new state. They
        define the kinds that the old state uses but does not define."""
        missing = {(crd.api_version, crd.name) for crd in crds if order.is_crd(crd)}
        missing -= {(crd.api_version, crd.name) for crd in manifests if order.is_crd(crd)}
        kinds = {(manifest.api_version.rpartition("/")[0], manifest.kind) for manifest in manifests}
        for crd in crds:
            if (crd.api_version, crd.name) in missing and _defined_by(crd) in kinds:
                await self._store(crd, order.CRDS)  # its own check reports its errors
        for stage, manifest in order.in_order(manifests, set()):
            if stage != order.POLICIES:
                self._report.problems += (await self._store(manifest, stage)).findings
        return [manifest.value for manifest in manifests if order.is_policy(manifest) and manifest.name]

    async def _store(self, manifest: Manifest, stage: int) -> Checked:
        checked = Checked(manifest)
        resource = self._server.find(manifest.api_version, manifest.kind)
        if resource is None or not manifest.name:
            text = "the old state has an object of a kind that is not known, or without a name; it is ignored"
            checked.add(WARNING, "OldState", text)
            return checked
        if resource.namespaced:
            checked.namespace = manifest.namespace or self._namespace
            await self._state.ensure_namespace(checked.namespace)
        value = without_webhook(manifest.value) if stage == order.CRDS else manifest.value
        answer = await self._state.apply(resource, checked.namespace, manifest.name, value)
        if not answer.is_success:
            add_status(checked, answer.status, severity=WARNING)
        elif stage == order.CRDS:
            await self._state.establish(manifest.name)
        return checked


def _defined_by(crd: Manifest) -> tuple[str, str]:
    """Group and kind that a CRD defines."""
    spec = crd.value.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    names = spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else ""
    return str(spec.get("group")), str(kind)
