"""Commands of simulated containers: recognizes simple ones, whose end is predictable."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from kubist.cluster.simulation.containers import user_of
from kubist.cluster.simulation.shell.budget import FORESEEN, Budget
from kubist.cluster.simulation.shell.container import Clock, Container, Sink
from kubist.cluster.simulation.shell.environment import TERMINATION_LOG, command_of, environment, known_files
from kubist.cluster.simulation.shell.errors import Endless, NoSpace, Unsupported
from kubist.cluster.simulation.shell.file_store import UNKNOWN, FileStore
from kubist.cluster.simulation.shell.shell import Shell, is_program, separately
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

MAX_OUTPUT = 4096


@dataclass(slots=True)
class Run:
    """Run of a container."""

    seconds: float = 0.0
    """Infinity: the command does not end."""
    code: int = 0
    reason: str = ""
    """Empty: Completed for code 0, else Error."""
    files: set[str] = field(default_factory=set)
    """Paths of the files that exist afterwards. Those of directories end with a slash."""
    output: str = ""
    """First characters of the output."""
    written: dict[str, str] = field(default_factory=dict)
    """First characters of the termination log, by its path, if the command wrote it."""


def run_of(pod: Object, container: Object, attempt: int, files: set[str]) -> Run | None:
    """Run of a container, as far as its command and args determine it. `attempt` is the number of earlier runs, `files`
    are the paths that exist in the container. None if the end of the run is not known."""
    words = container.get("command") or container.get("args")
    if not words:
        return Run(seconds=math.inf) if _is_pause(container.get("image", "")) else None
    if not is_program(words[0]):
        return None
    # The status changes, but not the run.
    pod = {**pod, "status": {}}
    env = environment(pod, container, None)
    command = command_of(container, env)
    if not command:
        return None
    created = pod["metadata"].get("creationTimestamp")
    started = parse_time(created) if created else 0
    output = Sink(4 * MAX_OUTPUT)
    box = Container(
        "",
        FileStore(lambda _: True).of(pod, container["name"]),
        known_files(pod, container, None),
        output,
        Clock(lambda: started, waits=False),
        user_of(pod["spec"], container),
        random_number(pod, container["name"], attempt),
        foresees=True,
        budget=Budget(FORESEEN),
    )
    try:
        code = _finished(_run(box, env, command, files))
    except (Unsupported, NoSpace):
        return None
    log = container.get("terminationMessagePath") or TERMINATION_LOG
    message = box.files.files.get(log)
    written = {log: message.content[:MAX_OUTPUT].decode(errors="replace")} if message is not None else {}
    seconds = math.inf if code is None else box.clock.computed
    text = output.output.decode(errors="replace")[:MAX_OUTPUT]
    return Run(seconds, code or 0, "", box.written(), text, written)


async def _run(box: Container, env: dict[str, str], command: list[str], files: set[str]) -> int | None:
    """Exit code of a command. None if it does not end."""
    box.budget.spend(len(files))
    for path in files:
        if path.endswith("/"):
            box.files.make_directory(path.rstrip("/"))
        else:
            box.files.put(path, UNKNOWN)
    try:
        return await separately(Shell(box, env).call(command))
    except Endless:
        return None


def _finished(coroutine: Coroutine[Any, Any, int | None]) -> int | None:
    """Result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        code: int | None = end.value
        return code
    coroutine.close()
    raise RuntimeError("a foreseen command waits")


def random_number(pod: Object, container: str, attempt: int) -> int:
    """Value of RANDOM. It is always the same for the same run of a container."""
    seed = f"{pod['metadata'].get('uid', '')}/{container}/{attempt}".encode()
    return int.from_bytes(hashlib.sha256(seed).digest()[:2], "big") >> 1


def _is_pause(image: str) -> bool:
    """Whether this is Kubernetes' pause image, whose program does nothing and never ends."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0] == "pause"


def termination_message(container: Object, run: Run) -> str:
    """Message of a container that ended: the content of its termination log, or its output after a failure if
    terminationMessagePolicy requires it."""
    message = run.written.get(container.get("terminationMessagePath", TERMINATION_LOG), "")
    if not message and run.code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = run.output
    return message


def file_scopes(pod: Object, container: Object) -> list[tuple[str, str]]:
    """Mounts of volumes that keep files between runs: mount path and a key of the directory behind it. The longest
    mount paths come first."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    scopes = []
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"]) or {}
        below = mount.get("subPath", "")
        if "hostPath" in volume:
            key = f"host/{pod['spec'].get('nodeName', '')}/{volume['hostPath']['path']}/{below}"
        else:
            key = f"pod/{pod['metadata'].get('uid', '')}/{mount['name']}/{below}"
        scopes.append((mount["mountPath"].rstrip("/"), key.rstrip("/")))
    return sorted(scopes, key=lambda pair: -len(pair[0]))
