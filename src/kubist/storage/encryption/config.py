"""EncryptionConfiguration file: the providers and keys of each resource.

Parsing is strict and follows kube-apiserver's validation. An error is a one-line ValueError that contains no
key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.storage.encryption.ciphers import AesCbc, AesGcm, Choice, Identity, Secretbox, Transformer

API_VERSION = "apiserver.config.k8s.io/v1"
NO_REST = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")


class Provider(NamedTuple):
    """Cipher provider: prefix of stored values, cipher class, allowed key sizes in bytes, and the name used in
    messages."""

    prefix: bytes
    cipher: type[AesCbc] | type[AesGcm] | type[Secretbox]
    sizes: tuple[int, ...]
    name: str


PROVIDERS = {
    "aesgcm": Provider(b"k8s:enc:aesgcm:v1:", AesGcm, (16, 24, 32), "AES"),
    "aescbc": Provider(b"k8s:enc:aescbc:v1:", AesCbc, (16, 24, 32), "AES"),
    "secretbox": Provider(b"k8s:enc:secretbox:v1:", Secretbox, (32,), "Secretbox"),
}
KINDS = ("kms", *PROVIDERS, "identity")


class GroupResource(NamedTuple):
    group: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> GroupResource:
        resource, _, group = text.partition(".")
        return cls(group, resource)

    def __str__(self) -> str:
        if not self.group:
            return "*." if self.resource == "*" else self.resource
        return f"{self.resource}.{self.group}"


EVERYTHING = GroupResource("*", "*")


class Encryption:
    """Parsed EncryptionConfiguration."""

    def __init__(self, transformers: Mapping[GroupResource, Choice], content_hash: str = "") -> None:
        self._transformers = transformers
        self.content_hash = content_hash

    def transformer(self, of: GroupResource) -> Transformer | None:
        """Transformer of a resource: the one of the most specific matching name. None: stored in plain text."""
        for name in (of, GroupResource(of.group, "*"), EVERYTHING):
            if (transformer := self._transformers.get(name)) is not None:
                return transformer
        return None


def digest(path: str) -> str:
    """SHA-256 of the file. It changes with the file and reveals nothing about the keys."""
    return "sha256:" + hashlib.sha256(_content(path)).hexdigest()


def read(path: str) -> Encryption:
    content = _content(path)
    try:
        config = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        # The parser's message would quote lines of the file, which may contain keys.
        raise ValueError(f"the encryption configuration {path} is not valid YAML") from None
    try:
        encryption = parse(config)
    except ValueError as error:
        raise ValueError(f"the encryption configuration {path} is not valid: {error}") from None
    encryption.content_hash = "sha256:" + hashlib.sha256(content).hexdigest()
    return encryption


def _content(path: str) -> bytes:
    content = Path(path).read_bytes()
    if not content:
        raise ValueError(f"the encryption configuration {path} is empty")
    return content


def parse(config: Any) -> Encryption:
    """Transformers by resource from a decoded EncryptionConfiguration."""
    if not isinstance(config, dict) or config.get("kind") != "EncryptionConfiguration":
        raise ValueError("its kind is not EncryptionConfiguration")
    if config.get("apiVersion") != API_VERSION:
        raise ValueError(f"its apiVersion is not {API_VERSION}")
    errors = [*_shape(config), *_validate(config)]
    if errors:
        raise ValueError(fields.summary(errors))
    rules: dict[GroupResource, list[tuple[bytes, Transformer]]] = {}
    for entry in config["resources"]:
        options = [_option(provider) for provider in entry["providers"]]
        for text in entry["resources"]:
            name = GroupResource.parse(text)
            for wider in (GroupResource(name.group, "*"), EVERYTHING):
                if wider in rules:
                    raise ValueError(f'resource "{name}" is masked by earlier rule "{wider}"')
            rules.setdefault(name, []).extend(options)
    return Encryption({name: Choice(options, "no matching prefix found") for name, options in rules.items()})


def _option(provider: dict[str, Any]) -> tuple[bytes, Transformer]:
    (kind,) = (kind for kind in KINDS if provider.get(kind) is not None)
    if kind == "identity":
        return b"", Identity()
    if kind == "kms":
        raise ValueError("the provider kms is not supported here; use aesgcm, aescbc or secretbox")
    prefix, cipher, _, name = PROVIDERS[kind]
    keys = [
        (f"{key['name']}:".encode(), cipher(base64.b64decode(key["secret"])))
        for key in provider[kind]["keys"]
    ]
    return prefix, Choice(keys, f"no matching key was found for the provided {name} transformer")


def _shape(config: dict[str, Any]) -> Iterator[FieldError]:
    """Errors for unknown fields, because the file is decoded strictly."""
    yield from _unknown(config, "", ("kind", "apiVersion", "resources"))
    for i, entry in enumerate(_maps(config.get("resources"))):
        path = f"resources[{i}]"
        yield from _unknown(entry, f"{path}.", ("resources", "providers"))
        for j, provider in enumerate(_maps(entry.get("providers"))):
            yield from _unknown(provider, f"{path}.providers[{j}].", KINDS)


def _unknown(mapping: dict[str, Any], path: str, known: tuple[str, ...]) -> Iterator[FieldError]:
    for name in mapping:
        if name not in known:
            yield fields.invalid(f"{path}{name}", "", "unknown field")


def _maps(value: Any) -> list[dict[str, Any]]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _validate(config: dict[str, Any]) -> Iterator[FieldError]:
    entries = _maps(config.get("resources"))
    if not entries:
        yield fields.required("resources", "at least one resources is required")
    for i, entry in enumerate(entries):
        path = f"resources[{i}].resources"
        resources = [str(name) for name in entry.get("resources") or ()]
        if not resources:
            yield fields.required(path, f"at least one {path} is required")
        yield from _validate_overlap(resources, path)
        for j, name in enumerate(resources):
            if (problem := _name_problem(name)) is not None:
                yield fields.invalid(f"{path}[{j}]", name, problem)
        path = f"resources[{i}].providers"
        providers = _maps(entry.get("providers"))
        if not providers:
            yield fields.required(path, f"at least one {path} is required")
        for j, provider in enumerate(providers):
            yield from _validate_provider(provider, f"{path}[{j}]")


def _validate_overlap(resources: list[str], path: str) -> Iterator[FieldError]:
    names = [GroupResource.parse(name) for name in resources]
    if len(set(names)) < len(names):
        yield fields.invalid(path, resources, "the same resource cannot be specified multiple times")
    others = [(one, other) for one in names for other in names if one != other]
    if any(
        one == EVERYTHING or (one.group == other.group and "*" in (one.resource, other.resource))
        for one, other in others
    ):
        why = (
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed "
            "as they will be masked"
        )
        yield fields.invalid(path, resources, why)


def _name_problem(name: str) -> str | None:
    parsed = GroupResource.parse(name)
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in NO_REST:
        return "resources which do not have REST API/s cannot be encrypted"
    if parsed.group == "events.k8s.io":
        return (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. "
            "Use 'events' instead in the config file"
        )
    if parsed.group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if parsed.group == "*" and parsed.resource != "*":
        return "encrypting the same resource across groups is not supported"
    return None


def _validate_provider(provider: dict[str, Any], path: str) -> Iterator[FieldError]:
    kinds = [kind for kind in KINDS if provider.get(kind) is not None]
    if not kinds:
        why = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
        yield fields.invalid(path, "", why)
    elif len(kinds) > 1:
        why = (
            "more than one provider specified in a single element, should split into different list elements"
        )
        yield fields.invalid(path, ", ".join(kinds), why)
    elif kinds[0] in PROVIDERS:
        sizes = PROVIDERS[kinds[0]].sizes
        settings = provider[kinds[0]]
        keys = _maps(settings.get("keys")) if isinstance(settings, dict) else []
        path = f"{path}.{kinds[0]}.keys"
        if not keys:
            yield fields.required(path, "at least one keys is required")
        for i, key in enumerate(keys):
            yield from _validate_key(key, f"{path}[{i}]", sizes)


def _validate_key(key: dict[str, Any], path: str, sizes: tuple[int, ...]) -> Iterator[FieldError]:
    yield from _unknown(key, f"{path}.", ("name", "secret"))
    name, secret = key.get("name"), key.get("secret")
    if not name or not isinstance(name, str):
        yield fields.required(f"{path}.name", "name is a mandatory field for a key")
    if not secret or not isinstance(secret, str):
        yield fields.required(f"{path}.secret", "secret is a mandatory field for a key")
        return
    try:
        size = len(base64.b64decode(secret.replace("\n", "").replace("\r", ""), validate=True))
    except (binascii.Error, ValueError):
        yield fields.invalid(f"{path}.secret", "REDACTED", "secrets must be base64 encoded")
        return
    if size not in sizes:
        expected = f"[{' '.join(map(str, sizes))}]"
        why = f"secret is not of the expected length, got {size}, expected one of {expected}"
        yield fields.invalid(f"{path}.secret", "REDACTED", why)
