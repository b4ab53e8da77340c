"""Text that `kubist serve` prints when it is ready: the address, the way to use it, and next commands."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import NamedTuple

from kubist.base.terminal import paint
from kubist.base.version import __version__
from kubist.cli.columns import aligned

SIMULATED = "Pods are simulated: no container runs."
NOT_SIMULATED = "Pods do not run: --workloads simulates nodes, a scheduler and the workload controllers."


class Served(NamedTuple):
    """Facts that the banner shows."""

    url: str
    directory: str
    kubeconfig: str
    in_memory: bool
    etcd_servers: tuple[str, ...]
    workloads: bool
    detached: bool
    selection: str
    """Flags by which `kubist status` and similar commands find this server; empty for the default directory."""
    merged: str = ""
    """The user's kubeconfig, if it got a context for this server."""

    def to_json(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Served:
        fields = json.loads(text)
        return cls(**{**fields, "etcd_servers": tuple(fields["etcd_servers"])})


def banner(served: Served) -> str:
    """The text, with colours if standard output has them. Scripts read the line `export KUBECONFIG=…`."""
    title = paint(f"Kubist serves Kubernetes v1.36 on {paint(served.url, 'cyan')}", "bold")
    lines = [
        title,
        f"  {paint(f'export KUBECONFIG={shlex.quote(served.kubeconfig)}', 'green')}",
        "",
        *aligned(_facts(served)),
        "",
        paint("Next:", "bold"),
        *aligned(_next(served), "green"),
    ]
    return "\n".join(lines)


def _facts(served: Served) -> list[tuple[str, str]]:
    if served.in_memory:
        stored = "in memory: nothing is kept"
    elif served.etcd_servers:
        stored = f"in etcd at {', '.join(served.etcd_servers)}; keys in {served.directory}"
    else:
        stored = served.directory
    facts = [
        ("Version", f"kubist {__version__}"),
        ("Data", stored),
        ("Pods", SIMULATED if served.workloads else NOT_SIMULATED),
    ]
    if served.merged:
        facts.append(("Context", f"Added the context 'kubist' to {served.merged}"))
    return facts


def _next(served: Served) -> list[tuple[str, str]]:
    """Three commands."""
    where = served.selection
    kubist = program()
    rows = [("kubectl get namespaces", "see that it works")]
    if served.detached:
        rows.append((f"{kubist} status{where}", "show its health"))
        rows.append((f"{kubist} stop{where}", "stop it"))
        return rows
    if served.workloads:
        rows.append(("kubectl create deployment web --image=nginx", "pods become ready without a container"))
    else:
        where = " --in-memory" if served.in_memory else where
        rows.append((f"{kubist} serve{where} --workloads", "with simulated pods; stop this server first"))
    rows.append((f"{kubist} help exec", "run tests against a temporary server"))
    return rows


def program() -> str:
    """`kubist` if the shell finds this program by that name, otherwise its path, such as `.venv/bin/kubist`."""
    # Saves start-up time: only suggestions need it.
    import shutil

    started = sys.argv[0]
    if os.path.basename(started) != "kubist" or not os.path.exists(started):
        return "kubist"  # `python -m kubist`
    path = shutil.which("kubist")
    if path is not None and os.path.samefile(path, started):
        return "kubist"
    return shlex.quote(started)
