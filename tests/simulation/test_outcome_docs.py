"""Examples of docs/workloads.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kubist.cluster.simulation.outcomes import CLAUSES
from kubist.cluster.simulation.shell.commands import COMMANDS
from kubist.testing import Cluster
from tests.waiting import wait_for

PAGE = (Path(__file__).parents[2] / "docs/workloads.md").read_text()
SECTION = PAGE.partition("## Pod outcomes")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `([^`]+)` \| (\w+) \| .* \| `(\w+)` \|$", SECTION, re.MULTILINE)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"nodeName": "kubist-node-0", "containers": [{"name": "web", "image": "nginx:1"}]},
}


def shown(server: Cluster) -> dict[str, str]:
    """STATUS of every pod, as kubectl prints it."""
    accept = {
        "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io",
        "Authorization": f"Bearer {server.token}",
    }
    table = json.loads(server._connections.send("GET", "/api/v1/namespaces/default/pods", None, accept)[1])
    names = [column["name"] for column in table["columnDefinitions"]]
    return {row["cells"][0]: row["cells"][names.index("Status")] for row in table["rows"]}


def test_every_outcome_is_documented() -> None:
    assert len(ROWS) >= len(CLAUSES)
    first = {row[0].split()[0] for row in ROWS}
    assert first | {"ImagePullBackOff"} == set(CLAUSES)


def test_every_command_is_documented() -> None:
    commands = SECTION.partition("### Commands")[2].partition("###")[0]
    for name in COMMANDS:
        assert re.search(rf"`{re.escape(name)}[ `]", commands), name


def test_outcomes_of_the_table_show_the_documented_status(server: Cluster) -> None:
    for number, (outcome, policy, _) in enumerate(ROWS):
        metadata = {"name": f"row-{number}", "annotations": {"kubist.io/outcome": outcome}}
        spec = {"containers": [{"name": "c", "image": "c:1"}], "restartPolicy": policy}
        server.load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    wanted = {f"row-{number}": status for number, (_, _, status) in enumerate(ROWS)}
    seen: set[tuple[str, str]] = set()

    def have_been_shown() -> bool:
        seen.update(shown(server).items())
        return wanted.items() <= seen

    wait_for(have_been_shown, 30, pause=0.05, explain=lambda: wanted.items() - seen)


@pytest.mark.kubist(workloads=True)
def test_python_example(cluster: Cluster) -> None:
    code = SECTION.partition("### From Python")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"POD": POD}
    exec(code, names)
    names["test_operator_replaces_broken_pods"](cluster)
