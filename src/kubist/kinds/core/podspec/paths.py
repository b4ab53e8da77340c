"""File paths inside volumes and containers: relative ones that do not climb."""

from __future__ import annotations

from kubist.meta.fields import FieldError, invalid

Errors = list[FieldError]


def no_backsteps(target: str, path: str) -> Errors:
    """No element of the target is `..`."""
    if ".." in target and ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return []


def local_descending(target: str, path: str) -> Errors:
    """The target is relative and does not climb."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def local_non_reserved(target: str, path: str) -> Errors:
    """The target is relative, does not climb, and leaves names that start with `..` to the system."""
    errors = local_descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors
