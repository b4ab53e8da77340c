"""API versions: their order of preference, and the storage version hash."""

from __future__ import annotations

import base64
import hashlib
import re

from kubist.base.caching import bounded_cache

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[int, int, int, str]:
    """Sort key, most preferred first: stable before beta before alpha, then the higher number, then other names."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    return (_STAGES[match[2]], -int(match[1]), -int(match[3] or 0), version)


@bounded_cache(entries=4096, key_length=512)
def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Hash of the storage version of a kind, with which clients detect that it changed."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
