"""AuthenticationConfiguration documents for tests."""

from __future__ import annotations

from typing import Any

import yaml

from kubist.model.meta.object import Object

VALID = {
    "issuer": {"url": "https://a", "audiences": ["me"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
}


def document(*jwt: Object, version: str = "v1", **more: Any) -> str:
    kind = {"apiVersion": f"apiserver.config.k8s.io/{version}", "kind": "AuthenticationConfiguration"}
    return yaml.safe_dump({**kind, "jwt": list(jwt), **more})
