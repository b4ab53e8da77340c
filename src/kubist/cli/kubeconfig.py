"""Kubeconfig files: written by `serve` for its admin, merged into the user's own, or printed."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import yaml

from kubist import files
from kubist.cli import flags
from kubist.runtime.run import explain, fail

CONTEXT = "kubist"
PARTS = ("clusters", "users", "contexts")
FLAGS = (
    flags.Flag("data-dir", "string", "", "Data directory of `kubist serve`."),
    flags.Flag(
        "merge", "bool", "false", "Add a context `kubist` to the user's own kubeconfig instead of printing."
    ),
)


def default_data_dir() -> Path:
    """Where `serve` keeps its data unless told otherwise."""
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(home) / "kubist"


def document(url: str, ca: bytes, certificate: bytes, key: bytes) -> dict[str, Any]:
    """A kubeconfig for one cluster and one user, everything within it."""
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
    """Write a kubeconfig that only its owner can read, whole or not at all. A link keeps pointing to it."""
    files.write(path.resolve(), yaml.safe_dump(config, sort_keys=False).encode())


def merge(config: dict[str, Any]) -> Path:
    """Add or replace our cluster, user and context in the user's kubeconfig; use the context if none is."""
    path = Path((os.environ.get("KUBECONFIG") or "").split(os.pathsep)[0] or Path.home() / ".kube/config")
    try:
        found = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        found = {}
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ValueError(f"{path} is not a kubeconfig") from None
    if not isinstance(found, dict) or not all(_is_named(found.get(part)) for part in PARTS):
        raise ValueError(f"{path} is not a kubeconfig")
    merged = {"apiVersion": "v1", "kind": "Config", **found}
    for part in PARTS:
        ours = config[part]
        names = {item["name"] for item in ours}
        merged[part] = [item for item in merged.get(part) or [] if item["name"] not in names] + ours
    merged["current-context"] = merged.get("current-context") or CONTEXT
    write(path, merged)
    return path


def _is_named(items: object) -> bool:
    """Whether this is a list of things with names, or nothing."""
    if items is None:
        return True
    return isinstance(items, list) and all(isinstance(item, dict) and "name" in item for item in items)


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    try:
        values = flags.parse(arguments, known)
        merging = flags.is_on(values, "merge")
    except flags.FlagError as error:
        return fail(str(error))
    if "help" in values:
        print(flags.usage("Usage:\n  kubist kubeconfig [flags]", FLAGS), end="")
        return 0
    directory = Path(values["data-dir"][-1]) if "data-dir" in values else default_data_dir()
    try:
        text = (directory / "kubeconfig").read_text()
        if merging:
            print(f"added the context {CONTEXT!r} to {merge(yaml.safe_load(text))}")
        else:
            print(text, end="")
    except FileNotFoundError:
        return fail(f"there is no kubeconfig in {directory}: `kubist serve` writes one when it starts")
    except OSError as error:
        return fail(explain(error))
    except ValueError as error:
        return fail(str(error))
    return 0
