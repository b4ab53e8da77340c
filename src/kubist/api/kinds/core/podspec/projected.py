"""Validation of downward API volumes, and of projected secrets, config maps and tokens."""

from __future__ import annotations

from kubist.api.kinds.core.podspec import paths
from kubist.api.kinds.core.podspec.env import VOLUME_FIELDS, validate_field_ref, validate_resource_field_ref
from kubist.api.kinds.core.podspec.options import Options
from kubist.model.meta.fields import FieldError, forbidden, invalid, required
from kubist.model.meta.object import Object

Errors = list[FieldError]

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_DUPLICATE = "conflicting duplicate paths"


def validate_mode(source: Object, field: str, path: str) -> Errors:
    mode = source.get(field)
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(f"{path}.{field}", mode, _MODE)]


def validate_items(source: Object, path: str) -> Errors:
    """Validates the mapping of keys to files."""
    errors: Errors = []
    for index, item in enumerate(source.get("items") or ()):
        errors += _item(item, f"{path}.items[{index}]")
    return errors


def _item(item: Object, path: str) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    errors += paths.local_non_reserved(item.get("path", ""), f"{path}.path")
    return errors + validate_mode(item, "mode", path)


def validate_downward_api(source: Object, path: str, _options: Options) -> Errors:
    errors = validate_mode(source, "defaultMode", path)
    for file in source.get("items") or ():
        errors += _downward_file(file, path)
    return errors


def _downward_file(file: Object, path: str) -> Errors:
    errors = [] if file.get("path") else [required(f"{path}.path")]
    errors += paths.local_non_reserved(file.get("path", ""), f"{path}.path")
    if "fieldRef" in file:
        errors += validate_field_ref(file["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef")
        if "resourceFieldRef" in file:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", why))
    elif "resourceFieldRef" in file:
        ref = file["resourceFieldRef"]
        errors += validate_resource_field_ref(ref, f"{path}.resourceFieldRef", volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + validate_mode(file, "mode", path)


class _Files:
    """Files of one projected volume. Two files with the same path conflict."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen: set[str] = set()

    def take(self, file: str, value: str) -> Errors:
        if file in self.seen:
            return [invalid(self.path, value, _DUPLICATE)]
        self.seen.add(file)
        return []


def validate_projected(volume: Object, path: str, options: Options) -> Errors:
    errors = validate_mode(volume, "defaultMode", path)
    files = _Files(path)
    for index, source in enumerate(volume.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for field in ("secret", "configMap"):
            if field in source:
                errors += _keys(source[field], f"{where}.{field}", files)
        if "downwardAPI" in source:
            for file in source["downwardAPI"].get("items") or ():
                errors += _downward_file(file, f"{where}.downwardAPI")
                if file.get("path"):
                    errors += files.take(file["path"], file["path"])
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            errors += _token(token, f"{where}.serviceAccountToken", path, options)
        if len(source) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _keys(source: Object, path: str, files: _Files) -> Errors:
    name = source.get("name", "")
    errors = [] if name else [required(f"{path}.name")]
    for index, item in enumerate(source.get("items") or ()):
        errors += _item(item, f"{path}.items[{index}]")
        if item.get("path"):
            errors += files.take(item["path"], name)
    return errors


def _token(token: Object, path: str, volume_path: str, options: Options) -> Errors:
    expiration = token.get("expirationSeconds", 0)
    errors: Errors = []
    if expiration < 600:
        why = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{path}.expirationSeconds", expiration, why))
    if expiration > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{path}.expirationSeconds", expiration, why))
    file = token.get("path", "")
    if not file:
        errors.append(required(f"{volume_path}.path"))
    elif not options.non_local_token_paths:
        errors += paths.local_non_reserved(file, f"{volume_path}.path")
    return errors
