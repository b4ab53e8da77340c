"""Old state from manifests: objects that exist before the checked manifests are applied."""

from __future__ import annotations

from kubist.model.meta.object import Object
from kubist.testing.offline import order
from kubist.testing.offline.findings import WARNING, Checked, Report, add_status
from kubist.testing.offline.manifests import Manifest
from kubist.testing.offline.server import OfflineServer
from kubist.testing.offline.state import State, without_webhook


class OldState:
    """Stores the objects of manifests as the old state."""

    def __init__(self, server: OfflineServer, state: State, namespace: str, report: Report) -> None:
        self._server = server
        self._state = state
        self._namespace = namespace
        self._report = report

    async def load(self, manifests: list[Manifest], crds: list[Manifest]) -> list[Object]:
        """Stores the objects, and returns the policies among them, which take effect later. An object that cannot be
        stored gives a warning, and its manifest is checked as a new object. `crds` are those of the new state: a kind
        that the old state has and does not define is theirs."""
        missing = {(crd.api_version, crd.name) for crd in crds if order.is_crd(crd)}
        missing -= {(crd.api_version, crd.name) for crd in manifests if order.is_crd(crd)}
        wanted = {(manifest.api_version.rpartition("/")[0], manifest.kind) for manifest in manifests}
        for crd in crds:
            if (crd.api_version, crd.name) in missing and _defined_by(crd) in wanted:
                await self._store(crd, order.CRDS)  # its own check reports its errors
        for stage, manifest in order.in_order(manifests, set()):
            if stage != order.POLICIES:
                self._report.problems += (await self._store(manifest, stage)).findings
        return [manifest.value for manifest in manifests if order.is_policy(manifest) and manifest.name]

    async def _store(self, manifest: Manifest, stage: int) -> Checked:
        checked = Checked(manifest)
        found = self._server.find(manifest.api_version, manifest.kind)
        if found is None or not manifest.name:
            text = "the old state has an object of a kind that is not known, or without a name; it is ignored"
            checked.add(WARNING, "OldState", text)
            return checked
        if found.namespaced:
            checked.namespace = manifest.namespace or self._namespace
            await self._state.ensure_namespace(checked.namespace)
        value = without_webhook(manifest.value) if stage == order.CRDS else manifest.value
        answer = await self._state.apply(found, checked.namespace, manifest.name, value)
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
