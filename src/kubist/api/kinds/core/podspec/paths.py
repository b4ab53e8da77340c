"""Validation of file paths in volumes and containers."""

from __future__ import annotations

from kubist.model.meta.fields import FieldError, invalid

Errors = list[FieldError]


def no_backsteps(target: str, path: str) -> Errors:
    """Rejects a path with an element `..`."""
    if ".." in target and ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return []


def local_descending(target: str, path: str) -> Errors:
    """Rejects absolute paths and elements `..`."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def local_non_reserved(target: str, path: str) -> Errors:
    """Rejects absolute paths, elements `..`, and names that start with `..`, which are reserved."""
    errors = local_descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors
