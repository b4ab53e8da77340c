"""Checks manifests: sends each of them to the offline server, in an order in which none depends on a later one.

A manifest of an object that exists in the old state is a server-side apply, any other one a create. Objects that the
rules for other objects depend on are stored; the others are dry runs, because nothing reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

import orjson

from kubist.api.resources.resource import Resource, path_of
from kubist.api.resources.suggestions import suggest_kind, suggest_version
from kubist.model.meta.object import Object
from kubist.testing.offline import order
from kubist.testing.offline.findings import ERROR, WARNING, Checked, Report, add_status, add_warnings
from kubist.testing.offline.manifests import Manifest
from kubist.testing.offline.server import APPLY, JSON, YAML, Answer, Identity, OfflineServer
from kubist.testing.offline.state import State, without_webhook

_ODD_NUMBER = re.compile(rb"[0-9][eE]\+?[0-9]{3}|\.(?:inf|nan)", re.IGNORECASE)
"""Text that may be a number beyond the range of a float."""


@dataclass(frozen=True)
class Options:
    """Options of a validation."""

    namespace: str = "default"
    """Namespace of objects that name none."""
    strict_namespaces: bool = False
    """Whether namespaces must exist. Otherwise missing ones are created."""
    identity: Identity = field(default_factory=Identity)
    field_manager: str = "kubectl"
    pod_templates: bool = True
    """Whether the pods of workloads are checked too."""
    allow_unknown_kinds: bool = False
    keep_objects: bool = True
    """Whether the report has the objects as the server would store them."""


@dataclass
class _Item:
    """A manifest that is being checked."""

    checked: Checked
    resource: Resource
    is_context: bool
    """Whether it was given besides the manifests, with --crds or --policies."""
    old: Object | None = None
    """Stored object that it updates."""


class Checker:
    """Checks all manifests of a run against one server."""

    def __init__(self, server: OfflineServer, state: State, options: Options, report: Report) -> None:
        self._server = server
        self._state = state
        self._options = options
        self._report = report
        self._defined: dict[str, Manifest] = {}

    async def check(self, manifests: list[Manifest], context: list[Manifest], policies: list[Object]) -> None:
        """Checks manifests and `context`, the CRDs and policies that were given besides them. `policies` are those of
        the old state, which take effect with those of the manifests."""
        checked = {manifest.index: Checked(manifest) for manifest in manifests}
        self._report.objects += checked.values()
        keys = {_key(manifest) for manifest in manifests}
        context = [manifest for manifest in context if _key(manifest) not in keys]
        for manifest in context:
            checked[manifest.index] = Checked(manifest)
        known = {manifest.index for manifest in context}
        everything = [*context, *manifests]
        given_policies = [manifest.value for manifest in everything if order.is_policy(manifest)]
        parameters = order.parameter_kinds([*given_policies, *policies])
        staged = order.in_order(everything, parameters)
        first: list[_Item] = []
        for number in (order.NAMESPACES, order.CRDS):
            first += await self._stage(staged, number, checked, known)
        await self._make_namespaces(everything)
        for number in (order.ROLES, order.PARAMETERS):
            first += await self._stage(staged, number, checked, known)
        identity = self._options.identity
        if identity.name:
            await self._state.aggregate_roles()
        await self._activate(policies)
        first += await self._stage(staged, order.POLICIES, checked, known)
        if given_policies or policies or identity.name:
            await self._repeat([item for item in first if not item.is_context])
        for number in (order.EARLY, order.REST):
            await self._stage(staged, number, checked, known, identity)
        for manifest in context:
            self._report.problems += checked[manifest.index].findings

    async def _stage(
        self,
        staged: list[tuple[int, Manifest]],
        number: int,
        checked: dict[int, Checked],
        context: set[int],
        identity: Identity | None = None,
    ) -> list[_Item]:
        """Checks the manifests of one stage. Without an identity, the administrator sends them."""
        done = []
        for _, manifest in (each for each in staged if each[0] == number):
            is_context = manifest.index in context
            item = self._item(checked[manifest.index], is_context)
            if item is None:
                continue
            stored = number != order.REST or "resourceVersion" in manifest.metadata
            if self._is_duplicate(item):
                await self._probe(item, identity)
                continue
            await self._send(item, identity if not is_context else None, dry_run=not stored)
            done.append(item)
        for item in done:
            if order.is_crd(item.checked.manifest) and not item.checked.is_rejected:
                reason, message = await self._state.establish(item.checked.manifest.name)
                if reason:
                    item.checked.add(ERROR, reason, message)
        return done

    def _item(self, checked: Checked, is_context: bool) -> _Item | None:
        """The manifest with its resource; None with a finding if there is no such kind."""
        manifest, resources = checked.manifest, self._server.resources
        if not manifest.kind:
            checked.add(ERROR, "UnknownKind", "the object has no kind")
            return None
        if not manifest.api_version:
            hint = suggest_version(manifest.kind, resources)
            text = f"{manifest.kind} has no apiVersion{hint}"
            checked.add(ERROR, "UnknownKind", text, line=manifest.line_of("kind"))
            return None
        resource = self._server.find(manifest.api_version, manifest.kind)
        if resource is None:
            hint = suggest_kind(manifest.api_version, manifest.kind, resources)
            message = f'no kind "{manifest.kind}" is registered for version "{manifest.api_version}"'
            message += hint or "; is a CRD missing? Name its file or directory with --crds"
            severity = WARNING if self._options.allow_unknown_kinds else ERROR
            checked.add(severity, "UnknownKind", message, line=manifest.line_of("kind"))
            return None
        if resource.namespaced:
            checked.namespace = manifest.namespace or self._options.namespace
        item = _Item(checked, resource, is_context)
        entry = self._state.entry(resource, checked.namespace, manifest.name) if manifest.name else None
        item.old = entry.object() if entry is not None else None
        return item

    def _is_duplicate(self, item: _Item) -> bool:
        """Reports an object that another manifest defines too."""
        manifest = item.checked.manifest
        if not manifest.name:
            return False
        first = self._defined.setdefault(item.resource.key(item.checked.namespace, manifest.name), manifest)
        if first is manifest:
            return False
        item.checked.add(ERROR, "Duplicate", f"the object is already defined in {first.file}:{first.line}")
        return True

    async def _make_namespaces(self, manifests: Iterable[Manifest]) -> None:
        """Creates the namespaces that the manifests use and do not define, and the account of every namespace."""
        if not self._options.strict_namespaces:
            used = {
                manifest.namespace or self._options.namespace
                for manifest in manifests
                if (match := self._server.find(manifest.api_version, manifest.kind)) and match.namespaced
            }
            for name in sorted(used):
                await self._state.ensure_namespace(name)
        await self._state.ensure_accounts()

    async def _activate(self, policies: list[Object]) -> None:
        for policy in policies:
            resource = self._server.find(policy["apiVersion"], policy["kind"])
            if resource is not None:
                await self._state.apply(resource, "", policy["metadata"]["name"], policy)

    async def _send(self, item: _Item, identity: Identity | None, *, dry_run: bool) -> None:
        answer = await self._request(item, identity, dry_run=dry_run)
        self._note(item, answer)
        if answer.code == 400 and "strict decoding error" in answer.status.get("message", ""):
            # The rest of the object is checked too, and objects that depend on it find it.
            self._note(item, await self._request(item, identity, dry_run=dry_run, validation="Ignore"))
        if not answer.is_success or item.checked.is_rejected:
            return
        if self._options.keep_objects:
            item.checked.stored = answer.body
        if self._options.pod_templates and not item.is_context:
            await self._check_pod(item.checked, answer.body)

    async def _request(
        self, item: _Item, identity: Identity | None, *, dry_run: bool, validation: str = "Strict"
    ) -> Answer:
        checked, resource = item.checked, item.resource
        manifest, value = checked.manifest, checked.manifest.value
        if order.is_crd(manifest) and (plain := without_webhook(value)) is not value:
            # The CRD as it is gets a dry run. Without its webhook it is stored.
            await self._probe(item, identity)
            text = "the conversion webhook is not called: versions are converted as by strategy None"
            checked.add(WARNING, "NotConverted", text, field="spec.conversion.strategy")
            value = plain
        query = f"fieldManager={quote(self._options.field_manager)}&fieldValidation={validation}"
        if dry_run:
            query += "&dryRun=All"
        sent, content_type = _body(manifest, value)
        if item.old is None:
            path = path_of(resource, checked.namespace)
            return await self._server.send(
                "POST", path, sent, query=query, content_type=content_type, identity=identity
            )
        if self._state.is_current(resource, checked.namespace, manifest):
            metadata = {key: entry for key, entry in value["metadata"].items() if key != "resourceVersion"}
            sent = orjson.dumps({**value, "metadata": metadata})
        path = path_of(resource, checked.namespace, manifest.name)
        query += "&force=true"
        return await self._server.send(
            "PATCH", path, sent, query=query, content_type=APPLY, identity=identity
        )

    async def _probe(self, item: _Item, identity: Identity | None) -> None:
        """Creates an object in a dry run. All rules apply before the server notices that it exists."""
        sent, content_type = _body(item.checked.manifest, item.checked.manifest.value)
        answer = await self._server.send(
            "POST",
            path_of(item.resource, item.checked.namespace),
            sent,
            query=f"fieldManager={quote(self._options.field_manager)}&fieldValidation=Strict&dryRun=All",
            content_type=content_type,
            identity=identity,
        )
        if answer.code != 409:
            self._note(item, answer)

    async def _repeat(self, items: list[_Item]) -> None:
        """Checks objects again that were stored before the policies took effect, in the name of the user."""
        identity = self._options.identity
        for item in items:
            if item.checked.is_rejected:
                continue
            if item.old is None:
                await self._probe(item, identity)
                continue
            where = (item.resource, item.checked.namespace, item.checked.manifest.name)
            await self._state.restore(*where, item.old)
            self._note(item, await self._request(item, identity, dry_run=False))

    def _note(self, item: _Item, answer: Answer) -> None:
        add_warnings(item.checked, answer.headers)
        if not answer.is_success:
            add_status(item.checked, answer.status)

    async def _check_pod(self, checked: Checked, stored: Object) -> None:
        """Creates a pod of a workload in a dry run, as its controller would."""
        made = _pod_of(stored)
        if made is None:
            return
        pod, prefix, controller = made
        pods = self._server.find("v1", "Pod")
        assert pods is not None
        answer = await self._server.send(
            "POST",
            path_of(pods, checked.namespace),
            orjson.dumps(pod),
            query="dryRun=All",
            identity=controller,
        )
        if not answer.is_success:
            add_status(checked, answer.status, prefix=prefix)


def _body(manifest: Manifest, value: Object) -> tuple[bytes, str]:
    """Body of a request and its type. A document with duplicate keys, or with numbers that JSON does not have, is sent
    as it is, below as many empty lines as precede it in its file, so that the server's message has the right lines."""
    document = manifest.document
    is_plain = not document.complaints and _ODD_NUMBER.search(document.text) is None
    if is_plain or manifest.prefix or value is not manifest.value:
        try:
            return orjson.dumps(value), JSON
        except TypeError:  # a number of more than 64 bits
            return json.dumps(value).encode(), JSON
    return b"\n" * (document.line - 1) + document.text, JSON if _is_json(document.text) else YAML


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _key(manifest: Manifest) -> tuple[str, str, str, str]:
    return manifest.api_version, manifest.kind, manifest.namespace, manifest.name


_ACCOUNTS = {
    ("", "ReplicationController"): "replication-controller",
    ("apps", "DaemonSet"): "daemon-set-controller",
    ("apps", "Deployment"): "replicaset-controller",
    ("apps", "ReplicaSet"): "replicaset-controller",
    ("apps", "StatefulSet"): "statefulset-controller",
    ("batch", "CronJob"): "job-controller",
    ("batch", "Job"): "job-controller",
}
"""Workload → service account of the controller that creates its pods."""


def _pod_of(owner: Object) -> tuple[Object, str, Identity] | None:
    """Pod of a stored workload, the path of its template, and its creator; None if the object is not a workload. The
    pod has the owner's name, so that messages are the same in every run."""
    group = owner["apiVersion"].rpartition("/")[0]
    account = _ACCOUNTS.get((group, owner["kind"]))
    if account is None:
        return None
    spec, path = owner["spec"], "spec.template."
    if owner["kind"] == "CronJob":
        spec, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec.template."
    # Saves start-up time: many runs check no workloads.
    from kubist.cluster.control.workloads.pods import from_template

    pod = from_template(spec["template"], owner, owner["metadata"]["name"])
    return (
        {"apiVersion": "v1", "kind": "Pod", **pod},
        path,
        Identity(f"system:serviceaccount:kube-system:{account}"),
    )
