"""ServiceAccount: an identity for programs. Its `/token` issues signed tokens, optionally bound to an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kubist.api.kinds.core.serviceaccount_token import ServiceAccountToken
from kubist.api.resources.strategy import Strategy, Subresource
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    returns_deleted = True
    metadata_rules = ("update", "object")
    subresources: Mapping[str, Subresource] = {"token": ServiceAccountToken()}

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        _keep_names_of_secrets(new)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        annotated = old is not None and MOUNTABLE_SECRETS in (old["metadata"].get("annotations") or {})
        return () if annotated else _warnings(new)


def _keep_names_of_secrets(account: Object) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


def _warnings(account: Object) -> Iterable[str]:
    if MOUNTABLE_SECRETS in (account["metadata"].get("annotations") or {}):
        advice = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; {advice}"


strategy = ServiceAccountStrategy()
