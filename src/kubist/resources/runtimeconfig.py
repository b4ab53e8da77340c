"""`--runtime-config`: API versions to serve. Kubist serves a fixed set and rejects a request for another set."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kubist.resources.resource import Resources

log = logging.getLogger("kubist")


def check_runtime_config(wanted: Mapping[str, str], resources: Resources) -> None:
    """Raises ValueError if a version is enabled but not served, or disabled but served."""
    if not wanted:
        return
    served = set()
    for each in resources:
        versions = [f"{each.group}/{each.version}"] if each.group else [each.version, f"api/{each.version}"]
        served |= {*versions, *(f"{version}/{each.resource}" for version in versions)}
    for name, value in wanted.items():
        if value not in ("true", "false"):
            raise ValueError(f"--runtime-config={name}={value} is not valid: the value must be true or false")
        if name in ("api/alpha", "api/beta"):
            if value == "true":
                log.info("--runtime-config=%s=true has no effect here: only GA versions are served", name)
        elif name in ("api/all", "api/ga") or name in served:
            if value == "false":
                raise ValueError(f"--runtime-config={name}=false is not supported: {name} is always served")
        elif value == "true":
            raise ValueError(f"--runtime-config={name}=true is not supported: this server has no {name}")
