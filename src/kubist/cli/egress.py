"""File of `--egress-selector-config-file`. Only direct connections are accepted, because Kubist makes no others."""

from __future__ import annotations

from typing import Any

PROXIED = "a selection uses a proxy"
_VERSIONS = ("apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1")


def mistake(path: str) -> str:
    """Error message for a file that is unreadable, malformed or not only direct (`PROXIED`); empty otherwise."""
    # Saves start-up time: only this flag needs it.
    import yaml

    try:
        with open(path, "rb") as file:
            found: Any = yaml.safe_load(file)
    except OSError as error:
        return f"{path}: {error.strerror}"
    except (yaml.YAMLError, ValueError):
        return f"{path} is not YAML"
    if (
        not isinstance(found, dict)
        or found.get("kind") != "EgressSelectorConfiguration"
        or found.get("apiVersion") not in _VERSIONS
    ):
        return f"{path} is not an EgressSelectorConfiguration of {_VERSIONS[0]}"
    selections = found.get("egressSelections") or []
    if not isinstance(selections, list):
        return f"{path}: egressSelections must be a list"
    for selection in selections:
        connection = selection.get("connection") if isinstance(selection, dict) else None
        if not isinstance(connection, dict) or connection.get("proxyProtocol") != "Direct":
            return PROXIED
    return ""
