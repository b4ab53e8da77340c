"""Secret: confidential bytes by key. The type determines the required keys and is immutable."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kubist.api.kinds.core.configmap import SIZE_LIMIT, decoded_size, validate_immutable
from kubist.api.kinds.shared.update import immutable
from kubist.api.resources.strategy import Errors, Strategy
from kubist.base.jsontext.json import json_type
from kubist.base.jsontext.syntax import complaint
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import invalid, required, too_long
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
TLS = "kubernetes.io/tls"

_REDACTED = "<secret contents redacted>"
_JSON_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class SecretStrategy(Strategy):
    field_labels: Mapping[str, str] = {"type": "type"}

    def default(self, obj: Object) -> None:
        """Sets the type, and merges the write-only stringData into data. stringData takes precedence."""
        obj.setdefault("type", "Opaque")
        if strings := obj.pop("stringData", None):
            data = obj.setdefault("data", {})
            for key, value in strings.items():
                data[key] = base64.b64encode((value or "").encode()).decode()

    def prepare(self, ctx: Context, new: Object, old: Object | None) -> None:
        if old is not None and not new.get("type"):
            new["type"] = old.get("type", "")

    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors: Errors = []
        if old is not None:
            errors += immutable(new.get("type"), old.get("type"), "type", "string")
            errors += validate_immutable(new, old, "data")
            errors += objectmeta.validate_create(
                new["metadata"], namespaced=True, validate_name=self.validate_name
            )
        data = new.get("data") or {}
        size = 0
        for key, value in data.items():
            errors += [invalid(f"data[{key}]", key, message) for message in names.config_map_key(key)]
            size += decoded_size(value)
        if size > SIZE_LIMIT:
            errors.append(too_long("data", SIZE_LIMIT))
        return errors + _validate_type(new, data)

    def warnings(self, ctx: Context, new: Object, old: Object | None) -> Iterable[str]:
        return _warnings(new)


def _validate_type(secret: Object, data: dict[str, str]) -> Errors:
    kind = secret.get("type", "")
    if kind in _JSON_KEYS:
        key = _JSON_KEYS[kind]
        if key not in data:
            return [required(f"data[{key}]")]
        return _validate_json(data[key], f"data[{key}]")
    if kind == SERVICE_ACCOUNT_TOKEN:
        named = (secret["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME)
        return [] if named else [required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")]
    if kind == "kubernetes.io/basic-auth":
        keys = ("username", "password")
        return [] if any(key in data for key in keys) else [required(f"data[{key}]") for key in keys]
    if kind == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else [required("data[ssh-privatekey]")]
    if kind == TLS:
        return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _validate_json(text: str | None, path: str) -> Errors:
    content = base64.b64decode(text or "")
    try:
        value = json.loads(content)
    except ValueError:
        return [invalid(path, _REDACTED, complaint(content))]
    if value is None or isinstance(value, dict):
        return []
    detail = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
    return [invalid(path, _REDACTED, detail)]


def _warnings(secret: Object) -> Iterable[str]:
    """Warns about a TLS secret with an unusable key pair. The secret is stored anyway."""
    if secret.get("type") != TLS:
        return
    data = secret.get("data") or {}
    if problem := _key_pair_problem(
        base64.b64decode(data.get("tls.crt") or ""), base64.b64decode(data.get("tls.key") or "")
    ):
        yield f"tls: {problem}"


def _key_pair_problem(certificate: bytes, key: bytes) -> str:
    if b"-----BEGIN " not in certificate:
        return "failed to find any PEM data in certificate input"
    if b"-----BEGIN " not in key:
        return "failed to find any PEM data in key input"
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "failed to parse certificate"
    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError):
        return "failed to parse private key"
    if type(private.public_key()) is not type(public):
        return "private key type does not match public key type"
    if private.public_key() != public:
        return "private key does not match public key"
    return ""


strategy = SecretStrategy()
