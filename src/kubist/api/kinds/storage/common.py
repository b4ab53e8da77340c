"""Validation of provisioners, driver names and driver parameters."""

from __future__ import annotations

from kubist.model.meta import fields, names
from kubist.model.meta.fields import FieldError

MAX_PARAMETERS = 512
MAX_PARAMETERS_SIZE = 256 * 1024


def validate_provisioner(provisioner: str, path: str) -> list[FieldError]:
    """Validates the name of a provisioner or driver: a qualified name, in upper or lower case."""
    if not provisioner:
        return [fields.required(path)]
    return [fields.invalid(path, provisioner.lower(), m) for m in names.qualified_name(provisioner.lower())]


def validate_parameters(
    parameters: dict[str, str] | None, path: str, *, allow_empty: bool
) -> list[FieldError]:
    parameters = parameters or {}
    if len(parameters) > MAX_PARAMETERS:
        return [fields.too_long(path, MAX_PARAMETERS)]
    errors = []
    if "" in parameters:
        errors.append(fields.invalid(path, "", "field can not be empty."))
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
        > MAX_PARAMETERS_SIZE
    ):
        errors.append(fields.too_long(path, MAX_PARAMETERS_SIZE))
    if not parameters and not allow_empty:
        errors.append(fields.required(path, "must contain at least one key/value pair"))
    return errors


def text_size(texts: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())


def validate_driver_name(name: str, path: str) -> list[FieldError]:
    """Validates the name of a CSI driver."""
    if not name:
        return [fields.required(path)]
    errors = [fields.too_long(path, 63)] if len(name.encode()) > 63 else []
    return errors + [fields.invalid(path, name, message) for message in names.dns_subdomain(name.lower())]
