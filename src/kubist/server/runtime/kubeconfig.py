"""Kubeconfig files: generated for one cluster, written, and merged into the user's kubeconfig."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kubist.base import files

CONTEXT = "kubist"
PARTS = ("clusters", "users", "contexts")
LOCK_WAIT = 5.0
"""Seconds to wait for the lock of a kubeconfig. kubectl holds it for milliseconds."""


def document(url: str, ca: bytes, certificate: bytes, key: bytes) -> dict[str, Any]:
    """Kubeconfig for one cluster and one user, with all certificates and keys inline."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": url, "certificate-authority-data": _data(ca)}}],
        "users": [
            {
                "name": f"{CONTEXT}-admin",
                "user": {"client-certificate-data": _data(certificate), "client-key-data": _data(key)},
            }
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": f"{CONTEXT}-admin"}}],
        "current-context": CONTEXT,
    }


def _data(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def write(path: Path, config: dict[str, Any]) -> None:
    """Writes a kubeconfig atomically, readable by its owner only. A symbolic link is followed, not replaced."""
    files.write(path.resolve(), yaml.safe_dump(config, sort_keys=False).encode())


def merge(config: dict[str, Any]) -> Path:
    """Adds or replaces Kubist's cluster, user and context in the user's kubeconfig. Selects the context if
    none is selected."""
    path = Path((os.environ.get("KUBECONFIG") or "").split(os.pathsep)[0] or Path.home() / ".kube/config")
    with _locked(path):
        _merge_into(path, config)
    return path


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds kubectl's lock of a kubeconfig, the file PATH.lock, so that a simultaneous change is not lost."""
    lock = path.with_name(path.name + ".lock")
    files.make_directory(path.parent)
    deadline = time.monotonic() + LOCK_WAIT
    while True:
        try:
            descriptor = files.create(lock)
            break
        except FileExistsError:
            if time.monotonic() >= deadline:
                raise ValueError(
                    f"{lock} exists, so another program is changing {path}: delete the lock if none is"
                ) from None
            time.sleep(0.05)
    os.close(descriptor)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _merge_into(path: Path, config: dict[str, Any]) -> None:
    try:
        old = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        old = {}
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ValueError(f"{path} is not a kubeconfig") from None
    if not isinstance(old, dict) or not all(_is_named(old.get(part)) for part in PARTS):
        raise ValueError(f"{path} is not a kubeconfig")
    merged = {"apiVersion": "v1", "kind": "Config", **old}
    for part in PARTS:
        ours = config[part]
        names = {item["name"] for item in ours}
        merged[part] = [item for item in merged.get(part) or [] if item["name"] not in names] + ours
    merged["current-context"] = merged.get("current-context") or CONTEXT
    write(path, merged)


def _is_named(items: object) -> bool:
    """Whether the value is a list of objects with names, or None."""
    if items is None:
        return True
    return isinstance(items, list) and all(isinstance(item, dict) and "name" in item for item in items)
