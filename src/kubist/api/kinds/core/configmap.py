"""ConfigMap: text and binary values by key, optionally immutable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta import names, objectmeta
from kubist.model.meta.fields import forbidden, invalid, too_long
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context

SIZE_LIMIT = 1024 * 1024


class ConfigMapStrategy(Strategy):
    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        errors: Errors = []
        if old is not None:
            errors += validate_immutable(new, old, "data", "binaryData")
            errors += objectmeta.validate_create(
                new["metadata"], namespaced=True, validate_name=self.validate_name
            )
        size = 0
        binary = new.get("binaryData") or {}
        for key, value in (new.get("data") or {}).items():
            errors += [invalid(f"data[{key}]", key, message) for message in names.config_map_key(key)]
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(value.encode())
        for key, value in binary.items():
            errors += [invalid(f"binaryData[{key}]", key, message) for message in names.config_map_key(key)]
            size += decoded_size(value)
        if size > SIZE_LIMIT:
            errors.append(too_long("[]", SIZE_LIMIT))
        return errors


def validate_immutable(new: Object, old: Object, *fields: str) -> Errors:
    """Rejects changes of `immutable` and of the given fields once `immutable` is true."""
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden("immutable", detail)]
    return errors + [forbidden(field, detail) for field in fields if new.get(field) != old.get(field)]


def decoded_size(base64: str | None) -> int:
    """Number of bytes that a canonical base64 text encodes."""
    return len(base64) * 3 // 4 - base64.count("=", -2) if base64 else 0


strategy = ConfigMapStrategy()
