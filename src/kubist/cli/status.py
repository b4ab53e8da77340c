"""`kubist status`: the server of a data directory and its health."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubist.api.config import KUBERNETES_VERSION
from kubist.base.terminal import paint
from kubist.cli import flags, help
from kubist.cli.columns import aligned, size
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import FAILED, NOT_RUNNING
from kubist.cli.instance import LOG, Record, holder, in_memory_servers, now, read_record
from kubist.model.meta.durations import human_duration

OUTPUT = flags.Flag("output", "text|json", "text", "Form of the output.", short="o")
FLAGS = (DATA_DIR, OUTPUT)
TITLE = """\
Shows whether a server runs on a data directory, its address, and its health. The exit code is 0 if it is ready, 3 if
none runs, and 1 if it runs and is not ready.

Usage:
  kubist status [flags]
  kubist status --output json"""
SECONDS = 5.0
"""Time limit of one request to the server."""
_DATABASE = ("kubist.db", "kubist.db-wal")


def main(arguments: list[str]) -> int:
    values = flags.parse(arguments, {flag.name: flag for flag in FLAGS})
    if "help" in values:
        return help.show(TITLE, FLAGS)
    form = values.get("output", ["text"])[-1]
    if form not in ("text", "json"):
        raise flags.FlagError(f'invalid argument "{form}" for "--output" flag: must be text or json')
    directory = data_dir(values)
    facts = examine(directory)
    if form == "json":
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(_lines(facts, directory)))
    if not facts["running"]:
        return NOT_RUNNING
    return 0 if facts["ready"] else FAILED


def examine(directory: Path) -> dict[str, Any]:
    """Facts about the server of a directory, as `--output json` prints them."""
    pid = holder(directory)
    facts: dict[str, Any] = {"running": pid is not None, "ready": False, "dataDir": str(directory.absolute())}
    if pid is None:
        return facts
    facts["pid"] = pid
    record = read_record(directory, pid)
    if record is None:
        return {**facts, "health": "starting"}
    facts |= {
        "address": record.url,
        "uptimeSeconds": max(0, int(now() - record.started)),
        "version": record.version,
        "kubernetesVersion": KUBERNETES_VERSION,
        "kubeconfig": record.kubeconfig,
        "inMemory": record.in_memory,
        "etcdServers": list(record.etcd_servers),
        "log": str((directory / LOG).absolute()) if record.detached else None,
        "storeBytes": None if record.in_memory or record.etcd_servers else _store_bytes(directory),
    }
    return facts | health_of(directory, record)


def _store_bytes(directory: Path) -> int:
    return sum((directory / name).stat().st_size for name in _DATABASE if (directory / name).exists())


def health_of(directory: Path, record: Record) -> dict[str, Any]:
    """Asks the server whether it is ready. If it is not, the failed checks and their reasons."""
    pki = directory / "pki"
    address = urlsplit(record.url)
    try:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=context, timeout=SECONDS
        )
        try:
            connection.request("GET", "/readyz?verbose")
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            if answer.status != 200:
                failed = [
                    f"{name} ({_reason(connection, name)})"
                    for name in re.findall(r"^\[-\](\S+)", text, re.MULTILINE)
                ]
                return {"ready": False, "health": f"not ready: {', '.join(failed) or text.strip()[:200]}"}
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode(errors="replace")
        finally:
            connection.close()
    except TimeoutError:
        return {"ready": False, "health": f"no response in {SECONDS:g} s"}
    except (OSError, http.client.HTTPException) as error:
        return {"ready": False, "health": f"no response: {error}"}
    counts = re.findall(r"^apiserver_resource_objects\{[^}]*\} (\d+)", metrics, re.MULTILINE)
    return {"ready": True, "health": "ready", "objects": sum(map(int, counts))}


def _reason(connection: http.client.HTTPConnection, name: str) -> str:
    """Reason of a failed check, which /readyz withholds."""
    connection.request("GET", f"/readyz/{name}")
    text = connection.getresponse().read().decode(errors="replace")
    return text.removeprefix("internal server error: ").strip()[:500]


def _lines(facts: dict[str, Any], directory: Path) -> list[str]:
    if not facts["running"]:
        return not_running(directory)
    head = paint("Kubist is ready", "green", "bold")
    if not facts["ready"]:
        head = paint(
            f"Kubist runs, but is not ready: {facts['health'].removeprefix('not ready: ')}", "yellow", "bold"
        )
    rows = [("Process", str(facts["pid"]) if facts["pid"] else "in another container")]
    if "address" in facts:
        stored = "in memory" if facts["inMemory"] else facts["dataDir"]
        if facts["etcdServers"]:
            stored = f"in etcd at {', '.join(facts['etcdServers'])}"
        if facts["storeBytes"] is not None:
            stored += f" ({size(facts['storeBytes'])})"
        rows = [
            ("Address", facts["address"]),
            *rows,
            ("Uptime", human_duration(facts["uptimeSeconds"])),
            ("Version", f"kubist {facts['version']} (Kubernetes {facts['kubernetesVersion']})"),
            ("Data", stored),
            *([("Objects", f"{facts['objects']:,}")] if "objects" in facts else []),
            ("Kubeconfig", facts["kubeconfig"]),
            ("Log", facts["log"] or "on the terminal of the server"),
        ]
    return [head, *aligned(rows)]


def not_running(directory: Path) -> list[str]:
    """Lines that report that no server runs on a directory, and list those in memory."""
    lines = [f"No server runs on {directory.absolute()}: `kubist serve` starts one."]
    others = in_memory_servers()
    if others:
        lines.append("Servers in memory:")
        lines += [f"  --data-dir {shlex.quote(str(other))}" for other in others]
    return lines
