"""Old state from manifests: objects that exist before the checked manifests are applied."""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.offline import order
from kubist.offline.findings import WARNING, Checked, Report, add_status
from kubist.offline.manifests import Manifest
from kubist.offline.server import OfflineServer
from kubist.offline.state import State, without_webhook


async def load_old_state(
    server: OfflineServer, state: State, manifests: list[Manifest], namespace: str, report: Report
) -> list[Object]:
    """Stores the objects of manifests, and returns the policies among them, which take effect later. An object that
    cannot be stored gives a warning, and its manifest is checked as a new object."""
    policies = [manifest.value for manifest in manifests if order.is_policy(manifest) and manifest.name]
    for stage, manifest in order.in_order(manifests, set()):
        if stage == order.POLICIES:
            continue
        checked = Checked(manifest)
        found = server.find(manifest.api_version, manifest.kind)
        if found is None or not manifest.name:
            text = "the old state has an object of a kind that is not known, or without a name; it is ignored"
            checked.add(WARNING, "OldState", text)
        else:
            checked.namespace = (manifest.namespace or namespace) if found.namespaced else ""
            if found.namespaced:
                await state.ensure_namespace(checked.namespace)
            value = without_webhook(manifest.value) if stage == order.CRDS else manifest.value
            answer = await state.apply(found, checked.namespace, manifest.name, value)
            if not answer.is_success:
                add_status(checked, answer.status, severity=WARNING)
            elif stage == order.CRDS:
                await state.establish(manifest.name)
        report.problems += checked.findings
    return policies
