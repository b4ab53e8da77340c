"""`kubist clusters`: lists, creates and deletes the clusters of a server with `--clusters`."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from kubist.cli import flags, help
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import NOT_RUNNING, fail
from kubist.cli.instance import holder, read_record
from kubist.cli.status import not_running

ACTIONS = ("list", "create", "delete", "kubeconfig")
_CREATE = "Creation"
FLAGS = (
    DATA_DIR,
    flags.Flag("output", "text|json", "text", "Form of the list.", short="o"),
    flags.Flag("storage", "memory|disk", "memory", "Where a new cluster is stored.", _CREATE),
    flags.Flag("fork", "string", "", "Cluster whose content a new one has.", _CREATE),
    flags.Flag("snapshot", "string", "", "Named snapshot whose content a new one has.", _CREATE),
    flags.Flag("backup", "string", "", "File of `kubist backup` whose content a new one has.", _CREATE),
    flags.Flag("manifests", "stringArray", "", "File of manifests to apply; may be repeated.", _CREATE),
    flags.Flag("time-to-live", "duration", "", "Time after which a new cluster is deleted.", _CREATE),
    flags.Flag("workloads", "bool", "false", "Simulate nodes, a scheduler and running pods.", _CREATE),
)
TITLE = """\
Lists, creates and deletes the clusters of a server that runs with --clusters. `create` and `kubeconfig` print the
kubeconfig of the cluster's administrator. Without a name, `create` chooses one.

Usage:
  kubist clusters [list] [flags]
  kubist clusters create [NAME] [flags] > kubeconfig.yaml
  kubist clusters kubeconfig NAME
  kubist clusters delete NAME"""
PATH = "/kubist/v1/clusters"
SECONDS = 60.0
"""Time limit of one request to the server."""
COLUMNS = ("name", "state", "storage", "created", "expires")


class Refused(Exception):
    """The server rejected a request. The text is its message."""


def main(arguments: list[str]) -> int:
    action, name, rest = _separate(arguments)
    values = flags.parse(rest, {flag.name: flag for flag in FLAGS})
    if "help" in values:
        return help.show(TITLE, FLAGS)
    if action not in ACTIONS:
        raise flags.FlagError(f"unknown action {action!r}: choose {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}")
    if action in ("delete", "kubeconfig") and not name:
        raise flags.FlagError(f"`kubist clusters {action}` needs the name of a cluster")
    directory = data_dir(values)
    pid = holder(directory)
    record = read_record(directory, pid) if pid is not None else None
    if record is None:
        print("\n".join(not_running(directory)))
        return NOT_RUNNING
    try:
        body = _specification(name, values) if action == "create" else None
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}")
    try:
        print(_run(Connection(directory, record.url), action, name, body, values), end="")
    except Refused as error:
        return fail(str(error))
    except (OSError, http.client.HTTPException) as error:
        return fail(f"{record.url} does not respond: {error}. `kubist status` says more")
    return 0


def _separate(arguments: list[str]) -> tuple[str, str, list[str]]:
    """Action, name, and the arguments that are flags."""
    words: list[str] = []
    rest = list(arguments)
    while rest and not rest[0].startswith("-") and len(words) < 2:
        words.append(rest.pop(0))
    action, name = [*words, *("list", "")[len(words) :]]
    return action, name, rest


class Connection:
    """Requests of the administrator of a data directory to its server."""

    def __init__(self, directory: Path, url: str) -> None:
        self._pki = directory / "pki"
        self._url = urlsplit(url)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        host, port = self._url.hostname or "", self._url.port
        connection = http.client.HTTPSConnection(host, port, context=context, timeout=SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read() or b"{}")
        except ValueError:
            raise Refused("the server has no clusters: start it with `kubist serve --clusters`") from None
        finally:
            connection.close()
        if response.status == 404 and not answer.get("details", {}).get("name"):
            raise Refused("the server has no clusters: start it with `kubist serve --clusters`")
        if response.status >= 400:
            raise Refused(str(answer.get("message") or f"the server responded {response.status}"))
        return answer


def _run(server: Connection, action: str, name: str, body: Any, values: dict[str, list[str]]) -> str:
    """Output of an action."""
    path = f"{PATH}/{quote(name, safe='')}"
    match action:
        case "create":
            return _yaml(server.request("POST", PATH, body)["kubeconfig"])
        case "kubeconfig":
            return _yaml(server.request("GET", f"{path}/kubeconfig"))
        case "delete":
            server.request("DELETE", path)
            return f"Deleted the cluster {name}.\n"
    items = server.request("GET", PATH)["items"]
    if values.get("output", ["text"])[-1] == "json":
        return json.dumps(items, indent=2) + "\n"
    return _table(items) if items else "There are no clusters: `kubist clusters create NAME` creates one.\n"


def _specification(name: str, values: dict[str, list[str]]) -> dict[str, Any]:
    """Body of the request that creates a cluster."""
    options = {flag: values[flag][-1] for flag in ("storage", "fork", "snapshot") if flag in values}
    body: dict[str, Any] = {"name": name} | options
    if "time-to-live" in values:
        body["timeToLive"] = values["time-to-live"][-1]
    if "backup" in values:
        body["backup"] = str(Path(values["backup"][-1]).absolute())
    if "workloads" in values:
        body["workloads"] = flags.is_on(values, "workloads")
    if "manifests" in values:
        body["manifests"] = "\n---\n".join(Path(file).read_text() for file in values["manifests"])
    return body


def _yaml(kubeconfig: Any) -> str:
    text: str = yaml.safe_dump(kubeconfig, sort_keys=False)
    return text


def _table(items: list[dict[str, Any]]) -> str:
    rows = [tuple(column.upper() for column in COLUMNS)]
    rows += [tuple(str(item.get(column, "")) for column in COLUMNS) for item in items]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in padded)
