"""Legacy service-account tokens: a token Secret that names a service account gets a token, and is deleted
with the account.

Auto-generated Secrets that were not used for 365 days are marked invalid, and deleted 365 days after that.
"""

from __future__ import annotations

import base64
import datetime
from pathlib import Path

from kubist.api.object_client import ObjectClient
from kubist.cluster.control.loop import Loop, entry_of
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.cache.cache import Change, Entry

TYPE = b'"kubernetes.io/service-account-token"'
ACCOUNT = "kubernetes.io/service-account.name"
UID = "kubernetes.io/service-account.uid"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
UNUSED_DAYS = 365
DAY = 86_400.0


class ServiceAccountTokens(Loop):
    name = "serviceaccount-token"

    def __init__(self, client: ObjectClient) -> None:
        super().__init__(client)
        path = self.config.root_ca_file
        self._ca = Path(path).read_bytes() if path else b""

    def follow(self) -> None:
        if self.client.tokens is not None:
            self.watch("secrets", self._secret_changed)
            self.watch("serviceaccounts", self._account_changed)

    def _secret_changed(self, change: Change) -> None:
        if change.new is not None and TYPE in change.new.tail:
            self.enqueue(change)

    def _account_changed(self, change: Change) -> None:
        if change.new is not None and change.old is not None:
            return
        account = entry_of(change)
        for entry in self.client.labelled("secrets", account.namespace):
            if TYPE in entry.tail:
                self.queue.add((entry.namespace, entry.name))

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        secret = self.client.get("secrets", name, namespace)
        if secret is None or secret.get("type") != TYPE.decode().strip('"'):
            return
        annotations = secret["metadata"].get("annotations") or {}
        account = self.client.get("serviceaccounts", annotations.get(ACCOUNT, ""), namespace)
        uid = account["metadata"]["uid"] if account is not None else None
        if account is None or annotations.get(UID, uid) != uid:
            await self._delete(secret)
            return
        data = secret.get("data") or {}
        if UID in annotations and data.get("token") and data.get("ca.crt") == _encoded(self._ca):
            return
        token = data.get("token") or _encoded(self._token(secret, account).encode())

        def edit(current: Object) -> Object:
            current["metadata"].setdefault("annotations", {})[UID] = uid
            current["data"] = {
                **(current.get("data") or {}),
                "ca.crt": _encoded(self._ca),
                "namespace": _encoded(namespace.encode()),
                "token": token,
            }
            return current

        await self.client.update("secrets", name, namespace, edit)

    def _token(self, secret: Object, account: Object) -> str:
        """Token without expiry. It is valid as long as its Secret exists."""
        assert self.client.tokens is not None
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        said = "kubernetes.io/serviceaccount/"
        return self.client.tokens.sign(
            {
                "iss": "kubernetes/serviceaccount",
                "sub": f"system:serviceaccount:{namespace}:{name}",
                f"{said}namespace": namespace,
                f"{said}secret.name": secret["metadata"]["name"],
                f"{said}service-account.name": name,
                f"{said}service-account.uid": account["metadata"]["uid"],
            }
        )

    async def _delete(self, secret: Object) -> None:
        metadata = secret["metadata"]
        try:
            await self.client.delete(
                "secrets", metadata["name"], metadata["namespace"], preconditions={"uid": metadata["uid"]}
            )
        except APIError as error:
            if error.code not in (404, 409):
                raise


class LegacyTokenCleaner(Loop):
    """Cleans up Secrets that their service account lists and that no pod mounts, once a day."""

    name = "legacy-serviceaccount-token-cleaner"

    def follow(self) -> None:
        self.queue.add("all")

    async def reconcile(self, key: str) -> None:
        self.queue.add_after(key, DAY)
        today = _date(times.today())
        for entry in list(self.client.collection("secrets").entries.values()):
            if TYPE in entry.tail and self._made_automatically(entry):
                await self._look_at(entry, today)

    def _made_automatically(self, entry: Entry) -> bool:
        metadata = entry.object()["metadata"]
        name = (metadata.get("annotations") or {}).get(ACCOUNT, "")
        account = self.client.get("serviceaccounts", name, entry.namespace)
        if account is None or entry.name not in [each.get("name") for each in account.get("secrets") or ()]:
            return False
        return not any(
            (volume.get("secret") or {}).get("secretName") == entry.name
            for pod in self.client.list("pods", entry.namespace)
            for volume in pod["spec"].get("volumes") or ()
        )

    async def _look_at(self, entry: Entry, today: datetime.date) -> None:
        metadata = entry.object()["metadata"]
        labels = metadata.get("labels") or {}
        since = labels.get(LAST_USED) or metadata["creationTimestamp"][:10]
        if (today - _date(since)).days < UNUSED_DAYS:
            return
        marked = labels.get(INVALID_SINCE)
        resource = self.client.resource("secrets")
        if marked and (today - _date(marked)).days >= UNUSED_DAYS:
            await self.client.delete_entry(resource, entry, preconditions={"uid": metadata["uid"]})
        elif not marked:

            def edit(current: Object) -> Object:
                current["metadata"].setdefault("labels", {})[INVALID_SINCE] = today.isoformat()
                return current

            await self.client.update("secrets", entry.name, entry.namespace, edit)


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return datetime.date.max


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
