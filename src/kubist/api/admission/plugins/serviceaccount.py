"""ServiceAccount: assigns a service account to each pod, mounts its token and adds its image pull secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from kubist.api.admission.plugin import CREATE, UPDATE, Pending, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta import names
from kubist.model.meta.object import Object

DEFAULT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access-"
MIRROR = "kubernetes.io/config.mirror"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
TOKEN_SECONDS = 3607
TRUE = ("1", "t", "T", "true", "TRUE", "True")
ATTEMPTS, PAUSE = 10, 0.15
"""Number of attempts and pause in seconds while waiting for the `default` account, which a controller creates."""


class ServiceAccount(Plugin):
    resources = ("pods", "pods/ephemeralcontainers")
    operations = (CREATE, UPDATE)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        assert new is not None
        return self._admit(ctx, new) if old is None else None

    async def _admit(self, ctx: Context, new: Object) -> None:
        if not _is_mirror(new):
            spec = new["spec"]
            if not spec.get("serviceAccountName"):
                spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
            account = await _account(ctx, new)
            if _automounts(account, spec):
                mount_token(spec)
            pull = account.get("imagePullSecrets") or ()
            if pull and not spec.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [{"name": secret.get("name", "")} for secret in pull]
        await self._validate(ctx, new, None)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> Pending:
        assert new is not None
        if old is not None and ctx.subresource != "ephemeralcontainers":
            return None
        return self._validate(ctx, new, old)

    async def _validate(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is None and _is_mirror(new):
            _check_mirror(ctx, new)
            return
        if not new["spec"].get("serviceAccountName"):
            name = new["metadata"].get("name", "")
            raise forbidden(ctx, new, f"no service account specified for pod {ctx.namespace}/{name}")
        account = await _account(ctx, new)
        if (account["metadata"].get("annotations") or {}).get(ENFORCE) in TRUE:
            lists = ("ephemeralContainers",) if old is not None else ("initContainers", "containers")
            why = _unreferenced(account, new["spec"], lists)
            if why:
                raise forbidden(ctx, new, why)


def _is_mirror(pod: Object) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


async def _account(ctx: Context, pod: Object) -> Object:
    name = pod["spec"]["serviceAccountName"]
    for attempt in range(ATTEMPTS if name == DEFAULT else 1):
        if attempt:
            await asyncio.sleep(PAUSE)
        account = ctx.objects.get("serviceaccounts", name, ctx.namespace)
        if account is not None:
            return account
    why = f'error looking up service account {ctx.namespace}/{name}: serviceaccount "{name}" not found'
    raise forbidden(ctx, pod, why)


def _automounts(account: Object, spec: Object) -> bool:
    for wish in (spec, account):
        if wish.get("automountServiceAccountToken") is not None:
            return bool(wish["automountServiceAccountToken"])
    return True


def mount_token(spec: Object) -> None:
    """Mounts a token, the cluster's root certificates and the namespace name into every container that has no other
    mount at this path."""
    volume_names = [v["name"] for v in spec.get("volumes") or () if v.get("name", "").startswith(VOLUME)]
    name = volume_names[0] if volume_names else names.generate(VOLUME)
    needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            needed = True
    if needed and not volume_names:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _projection()}]


def _projection() -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"sources": sources, "defaultMode": 0o644}


def _check_mirror(ctx: Context, pod: Object) -> None:
    """Rejects a mirror pod that uses a service account, secrets or tokens."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        raise forbidden(ctx, pod, "a mirror pod may not reference service accounts")
    if any(secrets_of(spec)):
        raise forbidden(ctx, pod, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                why = "a mirror pod may not use ServiceAccountToken volume projections"
                raise forbidden(ctx, pod, why)


def secrets_of(spec: Object) -> Iterator[str]:
    """Names of all secrets that a pod refers to."""
    for reference in spec.get("imagePullSecrets") or ():
        yield reference.get("name", "")
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            yield from (name for _, name in _container_secrets(container))
    for volume in spec.get("volumes") or ():
        for source in volume.values():
            if isinstance(source, dict):
                for field in ("secretRef", "secretName", "nodePublishSecretRef"):
                    if source.get(field):
                        reference = source[field]
                        yield reference if isinstance(reference, str) else reference.get("name", "")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("secret") is not None:
                yield source["secret"].get("name", "")


def _container_secrets(container: Object) -> Iterator[tuple[str, str]]:
    """(source, secret name) for each secret in a container's environment."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield f"envVar {variable.get('name', '')}", reference.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield "envFrom", source["secretRef"].get("name", "")


_WORDS = {
    "initContainers": "init container",
    "containers": "container",
    "ephemeralContainers": "ephemeral container",
}


def _unreferenced(account: Object, spec: Object, lists: tuple[str, ...]) -> str:
    """Error message for the first secret that the pod uses but its account does not list; "" if there is none."""
    who = account["metadata"]["name"]
    mountable = {secret.get("name", "") for secret in account.get("secrets") or ()}
    tail = f"is not allowed because service account {who} does not reference that"
    whole = "containers" in lists
    for volume in (spec.get("volumes") or ()) if whole else ():
        name = (volume.get("secret") or {}).get("secretName", "")
        if volume.get("secret") is not None and name not in mountable:
            return f'volume with secret.secretName="{name}" {tail} secret'
    for field in lists:
        for container in spec.get(field) or ():
            for how, name in _container_secrets(container):
                if name not in mountable:
                    what = f"{_WORDS[field]} {container.get('name', '')} with {how}"
                    return f'{what} referencing secret.secretName="{name}" {tail} secret'
    pullable = {secret.get("name", "") for secret in account.get("imagePullSecrets") or ()}
    for index, secret in enumerate((spec.get("imagePullSecrets") or ()) if whole else ()):
        if secret.get("name", "") not in pullable:
            return f'imagePullSecrets[{index}].name="{secret.get("name", "")}" {tail} imagePullSecret'
    return ""
