"""ServiceAccount: an identity for programs. Its `/token` issues signed tokens, optionally bound to an object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from kubist.api.kinds.core.serviceaccount_token import ServiceAccountToken
from kubist.api.resources.strategy import Connect, Create, Errors, Scale, Strategy, Update
from kubist.model.meta import objectmeta
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    returns_deleted = True
    subresources: ClassVar[dict[str, Update | Scale | Create | Connect]] = {"token": ServiceAccountToken()}

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _keep_names_of_secrets(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        _keep_names_of_secrets(new)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> Errors:
        return [
            *objectmeta.validate_update(new["metadata"], old["metadata"]),
            *objectmeta.validate_create(new["metadata"], namespaced=True, validate_name=self.validate_name),
        ]

    def warnings_on_create(self, ctx: Context, obj: Object) -> Iterable[str]:
        return _warnings(obj)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> Iterable[str]:
        annotated = MOUNTABLE_SECRETS in (old["metadata"].get("annotations") or {})
        return () if annotated else _warnings(new)


def _keep_names_of_secrets(account: Object) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


def _warnings(account: Object) -> Iterable[str]:
    if MOUNTABLE_SECRETS in (account["metadata"].get("annotations") or {}):
        advice = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; {advice}"


strategy = ServiceAccountStrategy()
