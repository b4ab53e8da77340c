"""Commands of simulated containers: finds the simple ones, whose end can be foreseen."""

from __future__ import annotations

import hashlib
import math

from kubist.meta.object import Object
from kubist.meta.times import parse_time
from kubist.simulation import shell
from kubist.simulation.shell import Run
from kubist.simulation.shell_commands import COMMANDS

TERMINATION_LOG = "/dev/termination-log"
INDEX = "batch.kubernetes.io/job-completion-index"
_STARTERS = frozenset((*shell.SHELLS, *COMMANDS)) - {"exit", "set", "export", "trap", "exec", ":"}
"""Commands that exist as programs."""


def run_of(pod: Object, container: Object, attempt: int, files: set[str]) -> Run | None:
    """Run of a container, as far as its command and args tell. `attempt` is the number of earlier runs, `files` are
    the paths that exist in the container. None if the end of the run is not known."""
    words = container.get("command") or []
    arguments = container.get("args") or []
    if not words and not arguments:
        return Run(seconds=math.inf) if _is_pause(container.get("image", "")) else None
    argv = [*words, *arguments]
    if shell.basename(argv[0]) not in _STARTERS:
        return None
    created = pod["metadata"].get("creationTimestamp")
    started = int(parse_time(created)) if created else 0
    return shell.run(argv, _environment(pod, container, attempt), files, started)


def _is_pause(image: str) -> bool:
    """Whether this is the image of Kubernetes whose program does nothing and does not end."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0] == "pause"


def _environment(pod: Object, container: Object, attempt: int) -> dict[str, str]:
    """Environment variables whose values the pod itself has."""
    metadata = pod["metadata"]
    seed = f"{metadata.get('uid', '')}/{container['name']}/{attempt}".encode()
    found = {
        "HOSTNAME": metadata.get("name", ""),
        "RANDOM": str(int.from_bytes(hashlib.sha256(seed).digest()[:2], "big") >> 1),
    }
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if not source:
            found[variable["name"]] = variable.get("value", "")
        elif (
            "fieldRef" in source
            and (value := _field(pod, source["fieldRef"].get("fieldPath", ""))) is not None
        ):
            found[variable["name"]] = value
    return found


def _field(pod: Object, path: str) -> str | None:
    metadata = pod["metadata"]
    simple: dict[str, str | None] = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": pod["spec"].get("nodeName"),
    }
    if path in simple:
        return simple[path]
    for part in ("annotations", "labels"):
        if path.startswith(f"metadata.{part}['") and path.endswith("']"):
            value: str | None = (metadata.get(part) or {}).get(path[len(part) + 11 : -2])
            return value
    return None


def termination_message(container: Object, run: Run) -> str:
    """Message of a container that ended: the content of its termination log, or its output after a failure if
    terminationMessagePolicy says so."""
    message = run.written.get(container.get("terminationMessagePath", TERMINATION_LOG), "")
    if not message and run.code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = run.output
    return message


def file_scopes(pod: Object, container: Object) -> list[tuple[str, str]]:
    """Mounts of volumes that keep files between runs: mount path and a key of the directory behind it. The longest
    mount paths come first."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    found = []
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"]) or {}
        below = mount.get("subPath", "")
        if "hostPath" in volume:
            key = f"host/{pod['spec'].get('nodeName', '')}/{volume['hostPath']['path']}/{below}"
        else:
            key = f"pod/{pod['metadata'].get('uid', '')}/{mount['name']}/{below}"
        found.append((mount["mountPath"].rstrip("/"), key.rstrip("/")))
    return sorted(found, key=lambda pair: -len(pair[0]))
